"""Word lists as data, read once when first needed."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any


@cache
def load(name: str) -> dict[str, Any]:
    """The tables of ``vocabulary/{name}.toml``. Callers must not change what they get."""
    return tomllib.loads(files(__name__).joinpath(f"{name}.toml").read_text(encoding="utf-8"))


@cache
def words(name: str, key: str) -> frozenset[str]:
    """A word list of ``vocabulary/{name}.toml``; in the file, one text of words or a list."""
    value = load(name)[key]
    return frozenset(value.split() if isinstance(value, str) else value)
