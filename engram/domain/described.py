"""What the fields of a model are for: read from its source when somebody asks.

Pydantic can do so too (`use_attribute_docstrings`), but wherever the class is made: every program
and every command would read the source of the settings that nobody there wants described.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from functools import cache
from itertools import pairwise
from typing import Any

from pydantic import BaseModel


def texts_at_fields(model: type[BaseModel]) -> dict[str, str]:
    """The text behind each field of a class and of those that it is derived from."""
    texts: dict[str, str] = {}
    for each in reversed(model.mro()):
        if issubclass(each, BaseModel) and each.__module__.startswith("engram."):
            texts |= _own_texts(each)
    return texts


# A class's source stays as it is, and finding it reads the whole of its module.
@cache
def _own_texts(model: type[BaseModel]) -> dict[str, str]:
    (made,) = ast.parse(textwrap.dedent(inspect.getsource(model))).body
    assert isinstance(made, ast.ClassDef)  # noqa: S101 - the source of a class
    return {
        field.target.id: inspect.cleandoc(text.value.value)
        for field, text in pairwise(made.body)
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(text, ast.Expr)
        and isinstance(text.value, ast.Constant)
        and isinstance(text.value.value, str)
    }


def describe(schema: dict[str, Any], model: type[BaseModel]) -> None:
    """Say in the JSON Schema of a model what its fields are for (`json_schema_extra`)."""
    for name, text in texts_at_fields(model).items():
        schema["properties"][name]["description"] = text
