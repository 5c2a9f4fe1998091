"""What is handed to engines and what comes back: points, vectors, pages, rankings."""

from __future__ import annotations

import base64
import binascii
import json
import math
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any, Final, Generic, Literal, Protocol, TypeVar

from engram.domain.memories import STORED_TYPES, AnyMemory, MemoryType
from engram.domain.scope import Scope
from engram.errors import InvalidInput, InvalidQuery, WrongVectorSize
from engram.ports import Replacement, SearchRequest, SparseVector, Stamp, TextVectors
from engram.storage.filters import EngineFilter
from engram.storage.payload import encode, encode_change, format_time, is_memory_id

# --- ordered listings that neither skip nor repeat, however many moments are equal
#
# Engines order by a field without saying how ties are ordered, and cannot
# continue after a tie. A page therefore continues after (moment, id): first the
# rest of the tied moment in order of ids, then what comes after that moment; and
# if the engine cuts its answer in the midst of a tie, the tied moment is read
# again in order of ids. At most three reads a page, nothing kept in between.

MAX_PAGE: Final = 1_000
"""As many as the in-process engine reads without holding up the event loop for long."""
_VERSION: Final = 1
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

Payload = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Listing:
    """What is listed, and in which order."""

    memory_type: MemoryType
    order_by: str
    descending: bool


@dataclass(frozen=True, slots=True)
class Position:
    """The last memory of a page: its moment in the store's form, and its id."""

    moment: str
    memory_id: str


def check_limit(limit: int) -> None:
    """Refuse a page size out of range.

    Raises:
        InvalidQuery: always with the range.
    """
    if not 1 <= limit <= MAX_PAGE:
        raise InvalidQuery(f"A page of {limit} was asked for.", allowed=f"1 to {MAX_PAGE}")


def write_cursor(listing: Listing, position: Position) -> str:
    """The opaque text that continues a listing."""
    parts = [_VERSION, listing.memory_type.value, listing.order_by, listing.descending]
    text = json.dumps([*parts, position.moment, position.memory_id], separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def read_cursor(listing: Listing, cursor: str) -> Position:
    """Where a cursor stands.

    Raises:
        InvalidQuery: it is none of ours, or comes from a listing in another order.
    """
    expected = [_VERSION, listing.memory_type.value, listing.order_by, listing.descending]
    try:
        text = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        *parts, moment, memory_id = json.loads(text)
        # Engines read fewer forms of a time than Python: only the one that is written here.
        ours = moment == format_time(datetime.fromisoformat(moment))
        if ours and parts == expected and is_memory_id(memory_id):
            return Position(moment, memory_id)
    except (binascii.Error, ValueError, TypeError, AttributeError, RecursionError):
        pass  # Refused below, together with the cursors of other listings.
    raise InvalidQuery(
        "The cursor does not continue this listing.",
        allowed="the cursor of the page before, with the same type and order",
    )


ReadTie = Callable[[str, str | None, int], Awaitable[list[Payload]]]
"""(moment, after id, limit) -> those of exactly that moment, by ascending id."""
ReadOrdered = Callable[[str | None, int], Awaitable[list[Payload]]]
"""(beyond moment, limit) -> in order of the field, ties in any order."""


async def read_page(
    order_by: str,
    position: Position | None,
    limit: int,
    *,
    tie: ReadTie,
    ordered: ReadOrdered,
) -> list[Payload]:
    """The next ``limit`` payloads after ``position``, by moment and then id."""
    found: list[Payload] = []
    if position is not None:
        found = await tie(position.moment, position.memory_id, limit)
    wanted = limit - len(found)
    if wanted <= 0:
        return found
    later = await ordered(position.moment if position else None, wanted)
    if len(later) < wanted:
        return found + in_order(later, order_by)
    last = later[-1][order_by]
    whole = [payload for payload in later if payload[order_by] != last]
    cut_off = await tie(last, None, wanted - len(whole))
    return found + in_order(whole, order_by) + cut_off


def in_order(payloads: list[Payload], order_by: str) -> list[Payload]:
    """Ties by id; the moments are in the engine's order already, up or down."""
    result: list[Payload] = []
    start = 0
    for index in range(1, len(payloads) + 1):
        if index == len(payloads) or payloads[index][order_by] != payloads[start][order_by]:
            result += sorted(payloads[start:index], key=lambda payload: str(payload["id"]))
            start = index
    return result


class StoredPoint(Protocol):
    """A point as engines read it."""

    @property
    def id(self) -> object:
        """Its id."""

    @property
    def payload(self) -> Payload | None:
        """Its payload."""

    @property
    def order_value(self) -> int | float | None:
        """Microseconds since 1970 of the moment it was listed by, as its index has it."""


def stored_payload(point: StoredPoint) -> Payload:
    """The payload of a point; of one whose payload is lost, or another's, its id alone."""
    memory_id, payload = str(point.id), point.payload
    return payload if payload and payload.get("id") == memory_id else lost_payload(memory_id)


def lost_payload(memory_id: str) -> Payload:
    """What is known of a point whose payload is damaged: enough to tell that it cannot be read."""
    return {"id": memory_id}


def listed_payload(order_by: str | None, point: StoredPoint, payload: Payload) -> Payload:
    """A payload that has the moment it was ordered by, if by any, also where it is damaged."""
    if order_by is not None and order_by not in payload and point.order_value is not None:
        moment = _EPOCH + timedelta(microseconds=point.order_value)
        payload[order_by] = format_time(moment)
    return payload


# --- vectors are checked before anything is written: engines accept some broken ones silently

MAX_TERM_ID = 2**32 - 1


def check_vectors(vectors: TextVectors, dimensions: int) -> None:
    """Refuse vectors that do not fit the store.

    Raises:
        WrongVectorSize: wrong length, not finite, or a malformed sparse vector.
    """
    if len(vectors.dense) != dimensions:
        raise WrongVectorSize(
            f"A dense vector has {len(vectors.dense)} dimensions.",
            allowed=f"{dimensions} dimensions in this store",
            hint="The store is bound to the embedder it was made with.",
            details={"size": len(vectors.dense), "expected": dimensions},
        )
    # The sum is finite if all parts are, short of overflow, and is far cheaper than a loop.
    if not math.isfinite(sum(vectors.dense)) and not all(map(math.isfinite, vectors.dense)):
        raise WrongVectorSize(
            "A dense vector holds a number that is not finite.", allowed="finite numbers"
        )
    _check_sparse(vectors.sparse)


def _check_sparse(sparse: SparseVector) -> None:
    indices = sparse.indices
    if len(indices) != len(sparse.values):
        raise WrongVectorSize(
            f"A sparse vector has {len(indices)} term ids and {len(sparse.values)} weights.",
            allowed="one weight per term id",
        )
    if indices and not (
        indices[0] >= 0
        and indices[-1] <= MAX_TERM_ID
        and all(left < right for left, right in pairwise(indices))
    ):
        raise WrongVectorSize(
            "The term ids of a sparse vector are out of order or out of range.",
            allowed=f"ascending, unique, 0 to {MAX_TERM_ID}",
        )
    if not all(map(math.isfinite, sparse.values)):
        raise WrongVectorSize(
            "A sparse vector holds a weight that is not finite.", allowed="finite numbers"
        )


# --- what is handed to engines, and in which portions

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class NewPoint:
    """What an engine stores of a new memory."""

    memory_id: str
    vectors: TextVectors | None
    """None: it is found by its id only."""
    payload: Payload


class HeldMemory(Protocol):
    """What an engine that nobody else writes to knows to be stored of a memory."""

    def payload(self) -> Payload:
        """A copy of it."""
        ...

    def read(self) -> AnyMemory:
        """The memory."""
        ...


@dataclass(frozen=True, slots=True)
class PreparedReplacement:
    """A replacement, ready to be written.

    Attributes:
        item: The replacement.
        payload: The whole of it.
        came_of: What was held of the memory when it was prepared, if anything was.
        few: What differs from that, with None for what goes; None where that is not known.
    """

    item: Replacement
    payload: Payload
    came_of: HeldMemory | None = None
    few: Payload | None = None


@dataclass(frozen=True, slots=True)
class Overwrite(Generic[EngineFilter]):
    """A payload to be put in place of the one that the filter matches, if it matches one.

    Attributes:
        where: Makes the filter, which matches one revision of one memory.
        payload: The whole of it.
        revision: The one that it replaces; None where payloads have none.
        prepared: Where the payload comes from; None where it is no memory's.
    """

    where: Callable[[], EngineFilter]
    payload: Payload
    revision: int | None = None
    prepared: PreparedReplacement | None = None


def prepare(
    scope: Scope, item: Replacement, stamp: Stamp, held: HeldMemory | None
) -> PreparedReplacement:
    """A replacement with its payload, stamped.

    Args:
        scope: Whose it is.
        item: The replacement.
        stamp: Applied to it.
        held: What is known to be stored of the memory.

    Raises:
        InvalidInput: nobody could tell whether it won, or it cannot be stored.
    """
    if not item.memory.write_id or item.memory.revision <= item.expected_revision:
        raise InvalidInput(
            "A replacement has no write id, or no higher revision than the one it replaces.",
            allowed="successors made by engram.domain.memories.next_revision",
            details={"id": item.memory.id},
        )
    after = stamp(item.memory)
    if held is None:
        return PreparedReplacement(item, encode(scope, after))
    payload, few = encode_change(scope, held.read(), held.payload(), after)
    return PreparedReplacement(item, payload, held, few)


def unique_batches(
    items: list[PreparedReplacement], size: int
) -> Iterator[tuple[MemoryType, list[PreparedReplacement]]]:
    """Batches of one type in which no id comes twice: a second write would hide the first."""
    batch: dict[str, PreparedReplacement] = {}
    current: MemoryType | None = None
    for one in sorted(items, key=lambda each: STORED_TYPES.index(each.item.memory.type)):
        memory = one.item.memory
        if current is not None and (
            memory.type is not current or memory.id in batch or len(batch) >= size
        ):
            yield current, list(batch.values())
            batch = {}
        current = memory.type
        batch[memory.id] = one
    if current is not None:
        yield current, list(batch.values())


def portions(items: Iterable[T], sizes: Iterable[int], most: int) -> Iterator[list[T]]:
    """``items`` in order, in lists whose sizes add up to ``most`` or less; a larger one alone."""
    part: list[T] = []
    taken = 0
    for item, size in zip(items, sizes, strict=True):
        if part and taken + size > most:
            yield part
            part, taken = [], 0
        part.append(item)
        taken += size
    if part:
        yield part


# --- from two rankings of ids to candidates, the same way on every engine

# A user's memories are searched exactly up to this many KB of vectors (20,000 at
# 256 dimensions), by a graph of that user's own memories beyond. There is no
# graph over everybody: no search ever spans users.
EXACT_BELOW_KB: Final = 20_000
TENANT_GRAPH_EDGES: Final = 16
GRAPH_EFFORT: Final = 128
MAX_LIMIT: Final = 10_000
_RANK_MARGIN: Final = 8
_MOST_TIES: Final = 4096
_GROWTH: Final = 4
# Shorter lists are always filled: who asks for so few looks at every one.
_FEW: Final = 32

Side = Literal["dense", "sparse"]


@dataclass(frozen=True, slots=True)
class RankQuery:
    """One side of a search: the nearest ``limit`` ids to one vector.

    Attributes:
        side: Which.
        vector: Of the question.
        limit: So many.
        spoken: The vector in the engine's own words, said once for all types.
    """

    side: Side
    vector: tuple[float, ...] | SparseVector
    limit: int
    spoken: Any = None


class RankedPoint(Protocol):
    """A point with its score on one side, as an engine answers it."""

    @property
    def id(self) -> Any:
        """In the engine's own form."""
        ...

    @property
    def score(self) -> float:
        """Higher is nearer."""
        ...


def sides(request: SearchRequest) -> list[RankQuery]:
    """What to ask an engine. A side that says nothing (all zeros, no terms) is left out."""
    limit = request.limit + _RANK_MARGIN
    found: list[RankQuery] = []
    if any(request.vectors.dense):
        found.append(RankQuery("dense", request.vectors.dense, limit))
    if any(request.vectors.sparse.values):
        found.append(RankQuery("sparse", request.vectors.sparse, limit))
    return found


def wider(query: RankQuery, answer: Sequence[RankedPoint], limit: int) -> RankQuery | None:
    """The query to ask instead, if equal scores reach past what the engine answered.

    Which of several equals an engine returns is up to its segments. Cutting by
    id needs all of them, so more are asked for, up to a bound; unless enough
    stand before them (see :func:`cut`).
    """
    if len(answer) < query.limit or query.limit >= max(_MOST_TIES, limit + _RANK_MARGIN):
        return None
    if answer[-1].score < answer[limit - 1].score or _before_last(answer) >= _enough(limit):
        return None
    return replace(query, limit=min(query.limit * _GROWTH, _MOST_TIES))


def cut(
    answer: Sequence[RankedPoint],
    query: RankQuery,
    limit: int,
    spelled: Callable[[Sequence[RankedPoint]], list[str]],
) -> dict[str, float]:
    """The best ``limit`` ids with their scores, ties by id.

    Where equal scores reach past the answer, and at least half of ``limit`` stand
    before them, none of these equals is taken: any choice would be the engine's.

    Args:
        answer: Best first.
        query: What was asked.
        limit: So many at most.
        spelled: The texts of ids, which take longer than anything else here.
    """
    scores = [point.score for point in answer]
    if len(scores) >= query.limit and scores[-1] >= scores[limit - 1]:
        before = _before_last(answer)
        if before >= _enough(limit):
            answer, scores = answer[:before], scores[:before]
    if len(scores) > limit and scores[limit - 1] <= scores[limit]:
        # The last place is tied: the id tells who has it.
        before, tied = scores.index(scores[limit - 1]), scores.count(scores[limit - 1])
        texts = spelled(answer[: before + tied])
        last = sorted(texts[before:])[: limit - before]
        return dict(zip([*texts[:before], *last], scores, strict=False))
    return dict(zip(spelled(answer[:limit]), scores, strict=False))


def _before_last(answer: Sequence[RankedPoint]) -> int:
    """How many stand before the equals at the end."""
    last = answer[-1].score
    return next((at for at, ranked in enumerate(answer) if ranked.score <= last), len(answer))


def _enough(limit: int) -> int:
    return max(_FEW, limit // 2)
