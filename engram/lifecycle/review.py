"""Reviewing memories: everything that is due happens to them, on condition, and is counted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from engram.contracts.lifecycle import (
    MOST_QUOTED,
    Change,
    DecayReport,
    PassReport,
    ReviewOutput,
    RuleCount,
    WalkInput,
    summed,
)
from engram.domain.memories import (
    AnyMemory,
    DerivedMemory,
    Episode,
    MemoryStatus,
    MemoryType,
    NegationFact,
    SemanticMemory,
    is_digest,
)
from engram.domain.scope import Scope
from engram.domain.turns import SaidAt
from engram.embedding.bm25 import encode_document
from engram.lifecycle.decisions import Rulebook, Settled, Transition, disputed, rulebook
from engram.lifecycle.denials import denials_among, still_denying
from engram.lifecycle.due import DueScan, review_stamp
from engram.lifecycle.links import heirs_of, parted, referred_to
from engram.lifecycle.recomposed import RECOMPOSED, Basis
from engram.lifecycle.table import Aspect
from engram.ports import AnyOf, Embedder, MaintenanceRepository
from engram.storage.rewording import words_let_go
from engram.storage.updates import NewWriteId, all_of, update_memories, update_those

# Memories that one activity looks at: a few seconds of work.
MOST_AT_ONCE: Final = 1000
# What profiles and topics are composed from.
_DIGESTED: Final = (MemoryType.SEMANTIC, MemoryType.PROCEDURAL)


@dataclass(slots=True)
class Steps:
    """What happened to which memory, in the last attempt at each.

    Attributes:
        made: By the id of a memory, its type and its steps.
        basis: What digests are made of that go with erased turns.
        told: Is told of these before they go: who tries again does not find them any more.
    """

    made: dict[str, tuple[MemoryType, tuple[Transition, ...]]] = field(default_factory=dict)
    basis: Basis = field(default_factory=Basis)
    told: Callable[[Basis], None] = lambda _: None

    def note(self, memory: AnyMemory, transitions: Sequence[Transition]) -> None:
        """These are the memory's steps; what was noted of it before is void."""
        self.made[memory.id] = (memory.type, tuple(transitions))

    def moved(self) -> tuple[str, ...]:
        """Knowledge and habits whose status changed."""
        return tuple(
            memory_id
            for memory_id, (memory_type, transitions) in self.made.items()
            if memory_type in _DIGESTED
            and any(step.aspect is Aspect.STATUS for step in transitions)
        )

    def of(self, ids: Iterable[str]) -> tuple[tuple[RuleCount, ...], tuple[Change, ...]]:
        """The steps of these memories, counted, and the first of them quoted."""
        counts: list[RuleCount] = []
        changes: list[Change] = []
        for memory_id in ids:
            memory_type, transitions = self.made.get(memory_id, (None, ()))
            for step in transitions:
                counts.append(
                    RuleCount(
                        rule=step.rule,
                        aspect=step.aspect,
                        source=step.source,
                        target=step.target,
                        memories=1,
                    )
                )
                if memory_type is not None and len(changes) < MOST_QUOTED:
                    changes.append(
                        Change(
                            memory_id=memory_id,
                            memory_type=memory_type,
                            rule=step.rule,
                            source=step.source,
                            target=step.target,
                            why=step.why,
                        )
                    )
        return summed(counts), tuple(changes)


@dataclass(frozen=True, slots=True)
class Reviewer:
    """Does to memories what the rules say. Every method may run twice, and beside others.

    Args:
        repository: Where memories are kept; what is written is stamped by the rules given.
        embedder: Knows how long vectors are.
        new_write_id: Makes a fresh value for each write.
    """

    repository: MaintenanceRepository
    embedder: Embedder
    new_write_id: NewWriteId

    async def review(
        self,
        request: WalkInput,
        begun: ReviewOutput | None = None,
        progress: Callable[[ReviewOutput], None] = lambda _: None,
    ) -> ReviewOutput:
        """Walk over what is due, for some time.

        Args:
            request: Whose, by which rules, from where.
            begun: How far an earlier attempt came.
            progress: Told after each batch how far this one is.
        """
        walk = DueScan(
            self.repository, request.scope, request.rules, request.now, request.population
        )
        nothing = DecayReport(dry_run=request.dry_run, population=request.population)
        done = begun or ReviewOutput(report=nothing, position=request.position)
        while done.position is not None and done.report.reviewed < MOST_AT_ONCE:
            memories, position = await walk.page(done.position, request.batch)
            before = done

            def told(basis: Basis, before: ReviewOutput = before) -> None:
                progress(_resting(before, basis))

            steps = Steps(told=told)
            part = await self.settle(memories, request, steps=steps)
            report = before.report.plus(DecayReport.model_validate(dict(part)))
            moved = (*before.moved, *steps.moved())
            done = _resting(before, steps.basis).model_copy(
                update={"report": report, "position": position, "moved": moved}
            )
            progress(done)
        return done

    async def settle(
        self,
        memories: Sequence[AnyMemory],
        request: WalkInput,
        only: Aspect | None = None,
        steps: Steps | None = None,
    ) -> PassReport:
        """Let happen to these memories, all of one type, what is due.

        Args:
            memories: As they were read.
            request: By which rules and as of when; whether to write.
            only: Leave those alone in which no such state would change.
            steps: Notes what happened to which.
        """
        scope, now = request.scope, request.now
        book = rulebook(request.rules, scope.namespace)
        steps, erasable = steps or Steps(), dict[str, AnyMemory]()

        def by_then(memory: AnyMemory, *, erasing: bool = True) -> Settled:
            return book.settle(memory, now, erasing=erasing, since=request.present)

        ending = [memory for memory in memories if _may_stay(memory) and _goes(by_then(memory))]
        goes_too = _nothing_goes if request.present is None else lambda one: _goes(by_then(one))
        kept = await self._concluded_from(scope, ending, goes_too)
        kept |= await self._denying(scope, ending)

        def change(memory: AnyMemory) -> AnyMemory | None:
            # Somebody else may have been faster: then nothing is due any more.
            if not _is_due(memory, now, book):
                return None
            settled = by_then(memory, erasing=memory.id not in kept)
            if only is not None and all(step.aspect is not only for step in settled.transitions):
                return None
            steps.note(memory, settled.transitions)
            if settled.memory is None:
                erasable[memory.id] = memory
            return settled.memory

        if request.dry_run or not memories:
            for memory in memories:
                change(memory)
            changed = frozenset(steps.made)
        else:
            changed = await self._write(request, memories, change, erasable, steps)
        counts, changes = steps.of(m.id for m in memories if m.id in changed)
        gone = len(erasable.keys() & changed)
        return PassReport(
            dry_run=request.dry_run,
            population=request.population,
            reviewed=len(memories),
            transitions=counts,
            changes=changes,
            erased=gone,
        )

    async def _write(
        self,
        request: WalkInput,
        memories: Sequence[AnyMemory],
        change: Callable[[AnyMemory], AnyMemory | None],
        erasable: Mapping[str, AnyMemory],
        steps: Steps,
    ) -> frozenset[str]:
        """Change these memories, and erase those that ``change`` put among the erasable."""
        scope, kind = request.scope, memories[0].type
        written = await update_memories(
            self.repository,
            scope,
            [memory.id for memory in memories],
            change,
            new_write_id=self.new_write_id,
            types=(kind,),
            stamp=review_stamp(request.rules),
        )
        erased = await self._erase(scope, kind, erasable, steps)
        await self._free_rivals(scope, memories, written.changed | erased)
        return frozenset(written.changed | erased)

    async def _denying(self, scope: Scope, ending: Sequence[AnyMemory]) -> frozenset[str]:
        """Denials that would be erased, but for what they deny, which would answer again.

        They are looked at again every day: a denial goes after the last that it denies.
        """
        return await still_denying(self.repository, self.embedder, scope, denials_among(ending))

    async def _concluded_from(
        self, scope: Scope, ending: Sequence[AnyMemory], goes_too: Callable[[AnyMemory], bool]
    ) -> frozenset[str]:
        """Turns that would be erased, but for what was concluded from them and is there still.

        They are looked at again every day: a turn goes after its last conclusion. Who looks ahead
        knows which of those will be gone.
        """
        over = {one.id for one in ending if isinstance(one, Episode)}
        found = set[str]()
        if not over:
            return frozenset()
        where = (AnyOf("source_episode_ids", tuple(sorted(over))),)
        for memory in await all_of(self.repository, scope, DerivedMemory, where=where):
            drawn_from = over.intersection(memory.source_episode_ids)
            if not drawn_from - found or is_digest(memory):
                continue
            if not goes_too(memory):  # type: ignore[arg-type]  # every derived memory is an AnyMemory
                found |= drawn_from
        return frozenset(found)

    async def _free_rivals(
        self, scope: Scope, memories: Sequence[AnyMemory], changed: AbstractSet[str]
    ) -> None:
        """Let what was in dispute with something that expired be so no more.

        Where this is cut short, the next look of the dispute's review does it.
        """
        argued = {
            m.id: m.disputed_with
            for m in memories
            if isinstance(m, SemanticMemory) and m.disputed_with and m.id in changed
        }
        if not argued:
            return
        left = await self.repository.get(scope, argued, (MemoryType.SEMANTIC,), fresh=True)
        over = {
            one for one in argued if one not in left or left[one].status is MemoryStatus.EXPIRED
        }
        rivals = {rival for one in over for rival in argued[one]}

        def freed(memory: SemanticMemory) -> SemanticMemory | None:
            after = disputed(memory, with_=(), settled=over)
            return None if after == memory else after

        await update_those(
            self.repository,
            scope,
            SemanticMemory,
            sorted(rivals),
            freed,
            new_write_id=self.new_write_id,
        )

    async def _erase(
        self, scope: Scope, memory_type: MemoryType, ended: Mapping[str, AnyMemory], steps: Steps
    ) -> frozenset[str]:
        """Erase these; the digests that name them first, so that a retry finds both due."""
        if not ended:
            return frozenset()
        turns = [one for one in ended.values() if isinstance(one, Episode)]
        await words_let_go(self.repository, scope, map(SaidAt.of, turns), encode_document)
        await self._erase_digests(scope, [turn.id for turn in turns], steps)
        revisions = {memory_id: memory.revision for memory_id, memory in ended.items()}
        await self.repository.delete_unchanged(scope, memory_type, revisions)
        left = await self.repository.get(scope, revisions, (memory_type,), fresh=True)
        gone = frozenset(revisions) - left.keys()
        steps.basis.composed -= gone
        steps.basis.boxed -= gone
        await self._part(scope, [one for key, one in ended.items() if key in gone])
        return gone

    async def _erase_digests(self, scope: Scope, turns: Sequence[str], steps: Steps) -> None:
        """Erase every version of every digest that names one of these turns."""
        where = (RECOMPOSED, AnyOf("source_episode_ids", tuple(sorted(turns))))
        found = await all_of(self.repository, scope, SemanticMemory, where=where) if turns else []
        for digest in found:
            steps.basis.add(digest)
        if found:
            steps.told(steps.basis)
            await self.repository.delete(scope, MemoryType.SEMANTIC, [one.id for one in found])
            await self._part(scope, found)

    async def _part(self, scope: Scope, gone: Sequence[AnyMemory]) -> None:
        """Have nothing lead to what was erased; nothing comes back in its place."""
        derived = [memory for memory in gone if isinstance(memory, DerivedMemory)]
        ids, heirs = {memory.id for memory in derived}, heirs_of(derived)

        def change(memory: DerivedMemory) -> DerivedMemory | None:
            after = parted(memory, ids, heirs)
            return None if after == memory else after

        await update_those(
            self.repository,
            scope,
            DerivedMemory,
            referred_to(derived) - ids,
            change,
            new_write_id=self.new_write_id,
        )


def _resting(done: ReviewOutput, basis: Basis) -> ReviewOutput:
    """With what these digests rest on, which is composed again."""
    more = {
        "composed": tuple(sorted(basis.composed.union(done.composed))),
        "boxed": tuple(sorted(basis.boxed.union(done.boxed))),
        "ended": tuple(sorted(basis.ended.union(done.ended))),
    }
    return done.model_copy(update=more)


def _may_stay(memory: AnyMemory) -> bool:
    """Whether it may be kept for the sake of others when it is to be erased."""
    return isinstance(memory, Episode | NegationFact)


def _goes(settled: Settled) -> bool:
    return settled.memory is None


def _nothing_goes(_: AnyMemory) -> bool:
    return False


def _is_due(memory: AnyMemory, now: datetime, book: Rulebook) -> bool:
    if memory.policy_fingerprint != book.fingerprint:
        return True
    return memory.review_at is not None and memory.review_at <= now
