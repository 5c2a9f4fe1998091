"""What applications import says what it takes, gives and raises."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest

import engram
from engram import errors, ports
from engram.client.memory import MemoryStore

_RAISE_NOTHING: Final = {
    *("MemoryStore.close", "MemoryStore.run_of", "MemoryStore.run_url", "Embedder.encode_terms"),
    *(
        f"{port}Repository.{step}"
        for port in ("Memory", "Maintenance")
        for step in ("arrivals", "arrived", "replacements")
    ),
}


def _exported() -> Iterator[tuple[str, Callable[..., Any]]]:
    for name in engram.__all__:
        if inspect.isfunction(member := getattr(engram, name)):
            yield name, member
    owners: list[type] = [MemoryStore, *(c for c in vars(ports).values() if inspect.isclass(c))]
    for owner in owners:
        for name, member in inspect.getmembers(owner, inspect.isfunction):
            if not name.startswith("_") and member.__module__.startswith("engram"):
                yield f"{owner.__name__}.{name}", member


EXPORTED: Final = dict(_exported())


@pytest.mark.parametrize("name", EXPORTED)
def test_a_method_says_what_it_takes_gives_and_raises(name: str) -> None:
    """Each argument is described, and so are the answer and the errors where there are any."""
    member = EXPORTED[name]
    text, signature = inspect.getdoc(member) or "", inspect.signature(member)
    for parameter in signature.parameters.values():
        if parameter.name != "self":
            assert re.search(rf"^    {parameter.name}: \S", text, re.MULTILINE), parameter.name
    if signature.return_annotation != "None":
        assert re.search(r"^(Returns|Yields):$", text, re.MULTILINE)
    if name not in _RAISE_NOTHING:
        assert re.search(r"^Raises:$", text, re.MULTILINE)


def test_each_error_says_when_it_is_raised() -> None:
    """Every class of engram.errors has words of its own."""
    classes = [c for _, c in inspect.getmembers(errors, inspect.isclass)]
    texts = [c.__doc__ for c in classes if c.__module__ == errors.__name__]
    assert len(texts) == len(set(texts)) > 30
    assert None not in texts
