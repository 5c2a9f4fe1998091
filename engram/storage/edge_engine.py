"""The in-process engine: its import, its errors, and how it wants conditions and points."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from engram.distribution import how_to_install
from engram.errors import EmbeddedPartMissing, EngramError, StorageError
from engram.ports import SparseVector
from engram.storage.filters import Range
from engram.storage.payload import DENSE, SPARSE
from engram.storage.points import NewPoint, RankedPoint, RankQuery

__all__ = ["EdgeDialect", "engine", "engine_errors", "nearest", "new_point", "sparse", "spelled"]

try:
    import qdrant_edge as engine
except ImportError as missing:
    raise EmbeddedPartMissing(
        "The in-process store needs the package qdrant-edge-py, which is not installed.",
        allowed="Linux and macOS on x86-64 and arm64",
        hint=f"Run {how_to_install('embedded')}, or use the connected mode with a Qdrant server "
        "(engram.connect, ENGRAM_QDRANT_URL).",
    ) from missing


_BEFORE_ID: Final = 'ScoredPoint(id="'
_BEHIND_ID: Final = '"'
_ID: Final = slice(len(_BEFORE_ID), len(_BEFORE_ID) + 36)


@contextmanager
def engine_errors(doing: str, hint: str | None = None) -> Iterator[None]:
    """Turn whatever the engine raises into a :class:`StorageError`; it has no classes of its own.

    Args:
        doing: What was being done, in words, for the message.
        hint: What to do about it.
    """
    try:
        yield
    except EngramError:
        raise
    except Exception as error:
        # The engine's text can quote a payload: it stays in the cause, out of the message.
        raise StorageError(f"The in-process store failed while {doing}.", hint=hint) from error


class EdgeDialect:
    """Conditions as the engine's own classes."""

    def equals(self, field: str, value: str | int) -> engine.Filter:
        """The field holds the value."""
        return _one(engine.FieldCondition(field, match=engine.MatchValue(value)))

    def any_of(self, field: str, values: list[str]) -> engine.Filter:
        """The field holds one of the values."""
        return _one(engine.FieldCondition(field, match=engine.MatchAny(values)))

    def within(self, field: str, bounds: Range, *, time: bool) -> engine.Filter:
        """The field lies within the bounds."""
        kind = engine.RangeDateTime if time else engine.RangeFloat
        limits = kind(gte=bounds.gte, gt=bounds.gt, lte=bounds.lte, lt=bounds.lt)  # type: ignore[arg-type]  # texts for times, numbers for the rest
        return _one(engine.FieldCondition(field, range=limits))

    def missing(self, field: str) -> engine.Filter:
        """The field is absent, null or empty."""
        return _one(engine.IsEmptyCondition(field))

    def ids(self, ids: list[str]) -> engine.Filter:
        """The point is one of these."""
        return _one(engine.HasIdCondition(set(ids)))

    def every(self, filters: Sequence[engine.Filter]) -> engine.Filter:
        """All of these hold; plain conjunctions are flattened, which the planner likes better."""
        must: list[engine.ConditionType] = []
        for inner in filters:
            only_must = not (inner.should or inner.must_not or inner.min_should)
            must.extend((inner.must or []) if only_must else [inner])
        return engine.Filter(must=must)

    def either(self, filters: Sequence[engine.Filter]) -> engine.Filter:
        """At least one of these holds."""
        return engine.Filter(should=list(filters))

    def negation(self, inner: engine.Filter) -> engine.Filter:
        """This does not hold."""
        return engine.Filter(must_not=[inner])


def spelled(points: Sequence[RankedPoint]) -> list[str]:
    """The texts of the ids of points, as memories have them.

    The engine makes a UUID anew each time an id is asked for. What it shows of a point that was
    found without payload and vectors begins with the text of its id, and takes half as long.
    """
    shown = [*map(repr, points)]
    if shown and not (shown[0].startswith(_BEFORE_ID) and shown[0][_ID.stop] == _BEHIND_ID):
        return [str(point.id) for point in points]
    return [text[_ID] for text in shown]


def _one(condition: engine.ConditionType) -> engine.Filter:
    return engine.Filter(must=[condition])


def new_point(new: NewPoint) -> engine.Point:
    """A new memory as the engine takes it."""
    if new.vectors is None:
        return engine.Point(new.memory_id, {}, new.payload)
    vector: dict[str, engine.NamedVector] = {
        DENSE: list(new.vectors.dense),
        SPARSE: sparse(new.vectors.sparse),
    }
    return engine.Point(new.memory_id, vector, new.payload)


def sparse(vector: SparseVector) -> engine.SparseVector:
    """The words by which a memory is found, as the engine takes them."""
    return engine.SparseVector(list(vector.indices), list(vector.values))


def nearest(query: RankQuery) -> engine.Query:
    """What is nearest to the vector of a question."""
    vector = query.vector
    if isinstance(vector, SparseVector):
        return engine.Query.Nearest(sparse(vector), SPARSE)
    return engine.Query.Nearest(list(vector), DENSE)
