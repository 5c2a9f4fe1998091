"""Every setting with its variable, default, range and meaning."""

from __future__ import annotations

import json
import types
from collections.abc import Iterator
from copy import copy
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt
from pydantic import BaseModel, SecretStr, TypeAdapter
from pydantic.fields import FieldInfo

from engram.domain.described import texts_at_fields
from engram.settings import Settings

# The first setting of each section.
SECTIONS = {
    "data_dir": "Where things are",
    "embedder": "Models",
    "temporal_port": "Embedded mode",
    "http_enabled": "HTTP API",
    "max_turn_bytes": "Writing",
    "consolidate_every": "Consolidating",
    "lifecycle.decay_policy": "Fading and hardening",
    "schedules": "Passes and their schedules",
    "recall_candidates": "Recalling",
    "log_level": "Logging",
}


def settings_of(
    model: type[BaseModel] = Settings, path: str = ""
) -> Iterator[tuple[str, FieldInfo]]:
    """Every setting with its dotted name, nested ones taken apart, and what it is for."""
    texts = texts_at_fields(model)
    for name, declared in model.model_fields.items():
        field = copy(declared)
        field.description = texts.get(name)
        dotted = f"{path}{name}"
        inner = field.annotation
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            yield from settings_of(inner, f"{dotted}.")
        else:
            yield dotted, field


def meaning(field: FieldInfo) -> str:
    """What a setting is for: the text at its field, in one line."""
    return " ".join((field.description or "").split())


def _options(annotation: Any) -> tuple[Any, ...]:
    """The types a value may have, without None."""
    if get_origin(annotation) in (Union, types.UnionType):
        return tuple(option for option in get_args(annotation) if option is not types.NoneType)
    return (annotation,)


def values(field: FieldInfo) -> str:
    """What is allowed, as type and range."""
    (kind,) = _options(field.annotation)
    if get_origin(kind) is Literal:
        return ", ".join(f"`{option}`" for option in get_args(kind))
    if get_origin(kind) is tuple:
        return "JSON list of " + values(FieldInfo(annotation=get_args(kind)[0]))
    if get_origin(kind) is dict:
        return "JSON object of " + values(FieldInfo(annotation=get_args(kind)[1]))
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return f"objects with {', '.join(f'`{name}`' for name in kind.model_fields)}"
    names = {
        SecretStr: "secret",
        timedelta: "duration",
        Path: "path",
        str: "text",
        bool: "`true` or `false`",
        int: "whole number",
        float: "number",
    }
    return ", ".join([names[kind], *_bounds(field)])


def _bounds(field: FieldInfo) -> Iterator[str]:
    for limit in field.metadata:
        if isinstance(limit, Ge):
            yield f"≥ {_written(limit.ge)}"
        elif isinstance(limit, Gt):
            yield f"> {_written(limit.gt)}"
        elif isinstance(limit, Le):
            yield f"≤ {_written(limit.le)}"
        elif isinstance(limit, Lt):
            yield f"< {_written(limit.lt)}"
        elif pattern := getattr(limit, "pattern", None):
            yield f"form `{pattern}`"


def default(field: FieldInfo) -> str:
    """The default, as one would write it in the environment."""
    value = field.default
    if value is None:
        return "*unset*"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, tuple | dict):
        return f"`{json.dumps(value)}`"
    return f"`{_written(value)}`"


def _written(value: Any) -> Any:
    """A duration as ISO 8601 has it; anything else as it is."""
    if isinstance(value, timedelta):
        return TypeAdapter(timedelta).dump_python(value, mode="json")
    return value
