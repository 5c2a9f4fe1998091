"""The turns of phrase of ``expressions.toml``, compiled when first needed."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from pydantic import TypeAdapter

_Entry = str | list[str]
_TABLES: TypeAdapter[dict[str, dict[str, _Entry]]] = TypeAdapter(dict[str, dict[str, _Entry]])
_REFERENCE = re.compile(r"\{([a-z_]+)\}")


@cache
def expression(table: str, name: str, *, exact_case: bool = False) -> re.Pattern[str]:
    """A regular expression by table and name.

    Args:
        table: A table of the data file.
        name: An entry of it.
        exact_case: Whether capitals matter.

    Raises:
        KeyError: there is none of that name.
    """
    return re.compile(_written_out(_tables()[table], name), 0 if exact_case else re.I)


def expression_text(table: str, name: str) -> str:
    """The same, not compiled, to be put into another one."""
    return f"(?:{_written_out(_tables()[table], name)})"


@cache
def word_groups(table: str, name: str) -> tuple[frozenset[str], ...]:
    """The words of each line of a list that is no expression."""
    return tuple(frozenset(line.split()) for line in _tables()[table][name])


@cache
def _tables() -> Mapping[str, Mapping[str, _Entry]]:
    text = files("engram.agents.rules").joinpath("expressions.toml").read_text(encoding="utf-8")
    return _TABLES.validate_python(tomllib.loads(text))


def spaced(text: str) -> str:
    """With any white space for a space."""
    return re.sub(r"(?<!\\) ", r"\\s+", text)


def _written_out(table: Mapping[str, _Entry], name: str) -> str:
    entry = table[name]
    text = entry if isinstance(entry, str) else "|".join(entry)
    return _REFERENCE.sub(lambda one: f"(?:{_written_out(table, one.group(1))})", spaced(text))
