"""Answers of pure functions that are kept for the next question, and let go of with what was said.

What users say reads and scores slowly, and the same words come again and again. Whoever has
something forgotten wants it in no memory of the process either.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import _lru_cache_wrapper, lru_cache
from typing import Protocol, TypeVar
from weakref import WeakSet

Answer = TypeVar("Answer")


class Keeps(Protocol):
    """Something that keeps what users said, to be faster."""

    def cache_clear(self) -> None:
        """Let go of all of it."""
        ...


_kept: WeakSet[Keeps] = WeakSet()


def kept(most: int) -> Callable[[Callable[..., Answer]], _lru_cache_wrapper[Answer]]:
    """Keep the last answers of a pure function of what users say.

    Args:
        most: So many answers at most, 1 or more.
    """

    def keeping(function: Callable[..., Answer]) -> _lru_cache_wrapper[Answer]:
        cached = lru_cache(maxsize=most)(function)
        lets_go(cached)
        return cached

    return keeping


def lets_go(keeper: Keeps) -> None:
    """Have something let go of what it keeps when :func:`let_go` is called, while it lives."""
    _kept.add(keeper)


def let_go() -> None:
    """Keep nothing any more that was kept so far: somebody had something forgotten."""
    for keeper in list(_kept):
        keeper.cache_clear()
