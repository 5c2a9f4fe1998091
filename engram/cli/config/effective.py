"""What is set: every setting with its value, and where the value comes from."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum
from typing import Any

from pydantic import BaseModel, SecretStr, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import to_jsonable_python
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    PydanticBaseSettingsSource,
    SettingsError,
)

from engram.cli.config.reference import meaning, settings_of, values
from engram.settings import NESTING, VARIABLE_PREFIX, Settings, variable_of, wrong_settings

HIDDEN = "**********"


class Origin(StrEnum):
    """Where a value comes from."""

    DEFAULT = "default"
    ENVIRONMENT = "environment"
    OPTION = "option"


class Setting(BaseModel):
    """One setting as it is.

    Attributes:
        name: Its dotted name, as :class:`engram.Settings` has it.
        variable: The environment variable that sets it.
        value: What holds; of a secret, only that there is one.
        origin: Where that comes from.
        default: What would hold otherwise.
        allowed: Type and range.
        meaning: What it is for.
        problem: Why what was given cannot be used; the default is shown then.
    """

    name: str
    variable: str
    value: Any
    origin: Origin
    default: Any
    allowed: str
    meaning: str
    problem: str | None = None


class UnknownVariable(BaseModel):
    """A variable that looks like a setting and is none.

    Attributes:
        variable: As it stands in the environment.
        nearest: The setting that was probably meant.
    """

    variable: str
    nearest: str | None


class Effective(BaseModel):
    """All settings, and what is wrong with those that were given.

    Attributes:
        settings: Every one.
        problems: What cannot be used, and why, by variable.
        unknown: Variables that set nothing.
    """

    settings: tuple[Setting, ...]
    problems: dict[str, str]
    unknown: tuple[UnknownVariable, ...]


def effective(
    environment: Mapping[str, str],
    *,
    options: Mapping[str, Any] | None = None,
    other_variables: Sequence[str] = (),
) -> tuple[Effective, Settings]:
    """What :meth:`Settings.load` makes of this environment, and the settings themselves.

    Where it would refuse a value, the default is used and the problem told.

    Args:
        environment: The variables.
        options: Settings that the command line gives.
        other_variables: Variables that begin like settings and are read elsewhere.
    """
    given = dict(options or {})
    named = {key.upper(): value for key, value in environment.items()}
    # As settings are read: one that is set to nothing is not set.
    loaded = _loaded({key: value for key, value in named.items() if value}, given)
    found = tuple(
        Setting(
            name=name,
            variable=variable_of(name),
            value=_shown(_at(loaded.settings, name)),
            origin=_origin(name, loaded.named, loaded.given),
            default=_shown(field.default),
            allowed=values(field).replace("`", ""),
            meaning=meaning(field).replace("`", ""),
            problem=_problem(name, loaded.problems),
        )
        for name, field in settings_of()
    )
    told = Effective(
        settings=found,
        problems={variable_of(name): said for name, said in loaded.problems.items()},
        unknown=_unknown(named, other_variables),
    )
    return told, loaded.settings


def nearest(name: str, names: Sequence[str]) -> str | None:
    """The name that was probably meant."""
    return next(iter(get_close_matches(name, names, n=1, cutoff=0.75)), None)


def all_variables() -> list[str]:
    """Every variable that sets something, those of whole groups included."""
    fields: dict[str, FieldInfo] = dict(settings_of())
    groups = {name.rpartition(".")[0] for name in fields} - {""}
    for group in tuple(groups):
        parts = group.split(".")
        groups.update(".".join(parts[: end + 1]) for end in range(len(parts)))
    return [variable_of(name) for name in (*fields, *sorted(groups))]


@dataclass
class _Loaded:
    """The settings as far as they can be used, and what had to be left out for that."""

    settings: Settings
    named: dict[str, str]
    given: dict[str, Any]
    problems: dict[str, str]


def _loaded(named: Mapping[str, str], given: Mapping[str, Any]) -> _Loaded:
    left, options, problems = dict(named), dict(given), dict[str, str]()
    # Each round puts at least one value out of the way, so this ends.
    for _ in range(len(named) + len(given) + 1):
        try:
            settings = _from_environment(left)(**options)
        except (ValidationError, SettingsError) as error:
            for name, said in wrong_settings(error).items():
                problems[name] = said
                _leave_out(name, left, options)
        else:
            return _Loaded(settings, left, options, problems)
    raise AssertionError("defaults can be used")


def _leave_out(name: str, named: dict[str, str], given: dict[str, Any]) -> None:
    """Take away what gave this setting its value: the variable nearest to it, else all around."""
    field = name.split(".", maxsplit=1)[0]
    if given.pop(field, None) is not None:
        return
    for candidate in _ways_to_set(name):
        if named.pop(candidate, None) is not None:
            return
    for key in [key for key in named if key.startswith(variable_of(field) + NESTING)]:
        del named[key]


def _ways_to_set(name: str) -> Iterator[str]:
    """The variables that can hold a setting: its own, then those of the groups around it."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        yield variable_of(".".join(parts[:length]))


def _from_environment(named: Mapping[str, str]) -> type[Settings]:
    """Settings that are read from these variables instead of the process's."""

    class GivenSettings(Settings):
        @classmethod
        def settings_customise_sources(
            cls,
            settings_cls: type[BaseSettings],
            init_settings: PydanticBaseSettingsSource,
            env_settings: PydanticBaseSettingsSource,
            dotenv_settings: PydanticBaseSettingsSource,
            file_secret_settings: PydanticBaseSettingsSource,
        ) -> tuple[PydanticBaseSettingsSource, ...]:
            source = EnvSettingsSource(settings_cls)
            source.env_vars = {key.lower(): value for key, value in named.items()}
            return init_settings, source

    return GivenSettings


def _problem(name: str, problems: Mapping[str, str]) -> str | None:
    """What is wrong with it, or with the group that it was given with."""
    for found, said in problems.items():
        if name == found or name.startswith(f"{found}.") or found.startswith(f"{name}."):
            return said
    return None


def _at(settings: Settings, name: str) -> Any:
    value: Any = settings
    for part in name.split("."):
        value = getattr(value, part)
    return value


def _shown(value: Any) -> Any:
    if isinstance(value, SecretStr):
        return HIDDEN
    return to_jsonable_python(value)


def _origin(name: str, named: Mapping[str, str], given: Mapping[str, Any]) -> Origin:
    if name.split(".", maxsplit=1)[0] in given:
        return Origin.OPTION
    parts = name.split(".")
    for depth, candidate in enumerate(_ways_to_set(name)):
        text = named.get(candidate)
        if text is not None and _holds(text, parts[len(parts) - depth :]):
            return Origin.ENVIRONMENT
    return Origin.DEFAULT


def _holds(text: str, path: Sequence[str]) -> bool:
    """Whether a variable of a whole group, written as JSON, says anything of this setting."""
    if not path:
        return True
    try:
        found = json.loads(text)
    except ValueError:
        return False
    for part in path:
        if not isinstance(found, dict) or part not in found:
            return False
        found = found[part]
    return True


def _unknown(
    named: Mapping[str, str], other_variables: Sequence[str]
) -> tuple[UnknownVariable, ...]:
    known = all_variables()
    ours = {*known, *other_variables}
    return tuple(
        UnknownVariable(variable=key, nearest=_nearest_variable(key, [*known, *other_variables]))
        for key in sorted(named)
        if key.startswith(VARIABLE_PREFIX) and key not in ours
    )


def _nearest_variable(key: str, known: Sequence[str]) -> str | None:
    # What is common to all names says nothing: compare what follows.
    tails = {each.removeprefix(VARIABLE_PREFIX): each for each in known}
    found = nearest(key.removeprefix(VARIABLE_PREFIX).replace(NESTING * 2, NESTING), list(tails))
    return tails[found] if found is not None else None
