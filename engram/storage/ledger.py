"""What a store keeps of the forgotten: keyed marks without a word, and the epoch of a user.

Both are points beside the turns, under a tenant that no user can have. A mark is a
keyed hash of an id: whoever holds a list of ids, or guesses what a conclusion says, cannot
tell from it what was forgotten without the key, and erasing the user throws the key away.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final
from uuid import UUID

from engram.domain.identity import operation_id
from engram.domain.memories import (
    AnyMemory,
    DerivedMemory,
    Episode,
    LinkKind,
    MemoryForm,
    ProceduralMemory,
    SemanticMemory,
    is_summary,
)
from engram.domain.scope import Scope
from engram.errors import StorageError
from engram.storage.payload import TENANT

MADE_FROM: Final = frozenset(
    {LinkKind.BELONGS_TO, LinkKind.PROMOTED_TO, LinkKind.CRYSTALLIZED_INTO}
)
"""Links to what a memory is made of: a summary of its members, a habit of what became it."""
ASIDE: Final = "!"
"""The namespace of marks and records: no user's, so that no scope of one is confined to them."""
_ID: Final = re.compile(r"\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b")
# Three of each erasure: so many of them can be reset and are still known to be over.
_OPERATIONS_KEPT: Final = 3 * 10


@dataclass(frozen=True, slots=True)
class Ledger:
    """The record of one user.

    Attributes:
        epoch: How often everything of the user was erased.
        key: Of the marks; None while nothing was ever forgotten.
        revision: Counts the changes; None where there is no record yet.
        operations: The erasures that raised the epoch last.
    """

    epoch: int = 0
    key: str | None = None
    revision: int | None = None
    operations: tuple[str, ...] = ()

    @classmethod
    def of(cls, payload: Mapping[str, Any] | None) -> Ledger:
        """The record as it is stored.

        Raises:
            StorageError: it is damaged. What was forgotten could come back with what is written.
        """
        if payload is None:
            return cls()
        try:
            return cls(
                epoch=payload["epoch"],
                key=payload["key"],
                revision=payload["revision"],
                operations=tuple(payload.get("operations", ())),
            )
        except KeyError:
            raise StorageError(
                "The record of what this user had forgotten cannot be read, so nothing is written.",
                hint="It is damaged: restore a backup of the store.",
            ) from None

    def keyed(self, key: str) -> Ledger:
        """With a key, if it has none, and one revision up."""
        return Ledger(self.epoch, self.key or key, self._next, self.operations)

    def raised(self, operation: str, key: str) -> Ledger:
        """Of the next epoch: with a fresh key, so that the marks of before mean nothing."""
        operations = (*self.operations, operation)[-_OPERATIONS_KEPT:]
        return Ledger(self.epoch + 1, key, self._next, operations)

    def raised_by(self, operation: str) -> int | None:
        """The epoch that an erasure raised; None if it has raised none, or long ago."""
        if operation not in self.operations:
            return None
        raised_since = len(self.operations) - 1 - self.operations.index(operation)
        return self.epoch - raised_since

    def payload(self, scope: Scope, write_id: str) -> dict[str, Any]:
        """The point that keeps it."""
        return {
            "id": ledger_id(scope),
            TENANT: aside(scope).tenant,
            "namespace": ASIDE,
            "epoch": self.epoch,
            "key": self.key,
            "revision": self.revision,
            "write_id": write_id,
            "operations": list(self.operations),
        }

    @property
    def _next(self) -> int:
        return 0 if self.revision is None else self.revision + 1

    def mark(self, *parts: str) -> str:
        """The id of a mark: of a memory, or of a conclusion as drawn from a turn."""
        text = json.dumps(parts, separators=(",", ":"))
        digest = hmac.new((self.key or "").encode(), text.encode(), hashlib.sha256).digest()
        return str(UUID(bytes=digest[:16]))

    def marks_of(self, memory: AnyMemory) -> frozenset[str]:
        """Every mark that decides whether a memory may be written."""
        asked = {self.mark(memory.id), *map(self.mark, rests_on(memory))}
        if isinstance(memory, DerivedMemory):
            asked |= {self.mark(memory.id, source) for source in memory.source_episode_ids}
        return frozenset(asked)

    def refuses(self, memory: AnyMemory, found: Collection[str]) -> bool:
        """Whether a memory is forgotten, or rests on what is.

        A conclusion that was forgotten may be drawn again, from what is said later.

        Args:
            memory: About to be written, or just written.
            found: Those of :meth:`marks_of` that exist.
        """
        if any(self.mark(one) in found for one in rests_on(memory)):
            return True
        if isinstance(memory, DerivedMemory):
            return all(self.mark(memory.id, e) in found for e in memory.source_episode_ids)
        return self.mark(memory.id) in found


def aside(scope: Scope) -> Scope:
    """Where the record and the marks of a user are kept; it does not say whose they are."""
    return Scope(namespace=ASIDE, user_id=ledger_id(scope))


@lru_cache(maxsize=1024)
def ledger_id(scope: Scope) -> str:
    """The id of a user's record; every write asks for it several times."""
    return operation_id("ledger", scope.namespace, scope.user_id)


def mark_payload(scope: Scope, mark: str) -> dict[str, Any]:
    """The point that is a mark."""
    return {"id": mark, TENANT: aside(scope).tenant, "namespace": ASIDE}


def burials(
    ledger: Ledger, ids: Iterable[str], drawn: Mapping[str, Collection[str]]
) -> Sequence[str]:
    """The marks of what is forgotten.

    Args:
        ledger: Has a key.
        ids: Forgotten memories.
        drawn: By the id of a forgotten conclusion: the turns that it is not to be drawn from.
    """
    pairs = (ledger.mark(key, source) for key, sources in drawn.items() for source in sources)
    return tuple(dict.fromkeys((*map(ledger.mark, ids), *pairs)))


def is_composed(memory: DerivedMemory) -> bool:
    """Whether its words come from conclusions: a summary or a habit of them."""
    return isinstance(memory, ProceduralMemory) or is_summary(memory)


def rests_on(memory: AnyMemory) -> frozenset[str]:
    """The memories whose words a memory may hold: its sources, what it quotes, names or sums up."""
    if isinstance(memory, Episode):
        return frozenset()
    found = {*memory.source_episode_ids}
    if is_composed(memory):
        found |= {link.target_id for link in memory.links if link.kind in MADE_FROM}
    if isinstance(memory, SemanticMemory):
        found |= {quote.episode_id for quote in memory.evidence}
        # Guidance counts, and quotes nobody.
        if memory.detail is not None and memory.form is not MemoryForm.GUIDELINE:
            found |= set(_ID.findall(memory.detail.model_dump_json()))
    return frozenset(found - {memory.id})
