"""Taking up what turns state: reconcile, write, read back, retire, mark the turns as read.

One call does all of it for several batches, one after the other, so that each meets what the
one before it left. An attempt may end between any two writes: what it wrote is found again by
the next one, because reconciling the same statements with half of what they lead to gives the
other half.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from datetime import datetime, timedelta

from engram.consolidation.apply import PlanWriter
from engram.consolidation.denials import Denials
from engram.consolidation.keep import Circumstances
from engram.consolidation.known import KnownMemories
from engram.consolidation.reconcile import reconcile
from engram.consolidation.summaries import summaries
from engram.contracts.consolidation import (
    ConsolidateTurnsInput,
    ConsolidateTurnsOutput,
    ExtractOutput,
    ModelUse,
    PlanEffect,
    PlanOutput,
)
from engram.domain.memories import (
    Episode,
    MemoryForm,
    MemoryType,
    Provenance,
    SemanticMemory,
    Unread,
)
from engram.domain.plan import Action, ConsolidationPlan, Statement, StoreEpisode, StoreNote
from engram.domain.scope import Scope
from engram.giving_way import computed, give_way
from engram.ports import AnyOf, MemoryRepository
from engram.storage.ledger import is_composed
from engram.storage.updates import (
    NewWriteId,
    all_of,
    episodes_by_id,
    existing,
    update_those,
)

_EPISODIC = (MemoryType.EPISODIC,)
# After the first refusal, and twice as long after each further one; then only when asked.
_FIRST_WAIT_AFTER_REFUSAL = timedelta(hours=1)
_MOST_REFUSALS = 10


@dataclass(frozen=True, slots=True)
class TurnConsolidator:
    """Makes what is known of what turns state. Every method may run twice.

    Args:
        repository: Where memories are kept.
        known: Finds what could matter to statements.
        writer: Applies plans.
        new_write_id: Makes a fresh value for each write.
    """

    repository: MemoryRepository
    known: KnownMemories
    writer: PlanWriter
    new_write_id: NewWriteId

    async def take_up(
        self, request: ConsolidateTurnsInput, *, repeated: bool
    ) -> ConsolidateTurnsOutput:
        """Reconcile each batch, write its plan, retire what it replaces; mark the turns of all.

        Summaries follow once, when all batches are written: made anew after each, they would
        cost more than everything else. Turns are marked after that, so that an attempt that
        ends before is made again.

        Args:
            request: The batches, in order.
            repeated: Whether an earlier attempt may have done a part of it. What that did is
                part of the answer: nothing is left unlinked, or out of digests, for a crash.
        """
        done = ConsolidateTurnsOutput()
        for part in request.parts:
            # The engine answers without a pause: others wait for the loop meanwhile.
            await give_way()
            done = _plus(done, await self._take_up(request, part, repeated=repeated))
        done = _plus(done, await self._summed_up(request, done.effect))
        read = (turn for part in request.parts for turn in part.episode_ids)
        # A turn that shared its conclusions with one that was forgotten is due again.
        due_again = frozenset(done.reread)
        marked = await self.mark(
            request.scope, request.now, tuple(turn for turn in read if turn not in due_again)
        )
        return done.model_copy(update={"marked": marked})

    async def _take_up(
        self, request: ConsolidateTurnsInput, part: ExtractOutput, *, repeated: bool
    ) -> ConsolidateTurnsOutput:
        scope, made = request.scope, ConsolidateTurnsOutput()
        if (part.statements or part.verbatim) and part.use is not None:
            maker = made_by(request.workflow_id, request.run_id, part.use)
            plan = await self.plan(
                scope, request.now, part.statements, part.verbatim, maker, summed_up=False
            )
            made = await self._apply(scope, plan)
            if repeated:
                effect = union(made.effect, await self._found_again(request, part.episode_ids))
                made = made.model_copy(update={"effect": effect})
        return _counted(made, await self._affirmed(scope, part, made.effect))

    async def _summed_up(
        self, request: ConsolidateTurnsInput, effect: PlanEffect
    ) -> ConsolidateTurnsOutput:
        used = [part.use for part in request.parts if part.use is not None]
        changed = {*effect.stored, *effect.confirmed, *effect.changed, *effect.retired}
        if not used or not changed:
            return ConsolidateTurnsOutput()
        maker = made_by(request.workflow_id, request.run_id, used[-1])
        return await self.sum_up(request.scope, request.now, changed, maker)

    async def sum_up(
        self, scope: Scope, now: datetime, changed: Set[str], maker: Provenance
    ) -> ConsolidateTurnsOutput:
        """Have the summaries of what was changed say what holds now.

        Args:
            scope: Whose memory it is.
            now: The present of the call.
            changed: Ids of what was changed.
            maker: Who sums up.
        """
        circumstances = Circumstances(scope=scope, now=now, episodes={}, provenance=maker)
        known = await self.known.summed_up_with(scope, changed)
        actions: list[Action] = []
        for is_test in (False, True):
            side = {key: memory for key, memory in known.items() if memory.is_test is is_test}
            actions += summaries(side, (), circumstances, sorted(changed))
        made = await self._apply(scope, ConsolidationPlan(actions=tuple(actions)))
        return _counted(made, made.effect)

    async def end_denials(self, scope: Scope, episode_ids: tuple[str, ...]) -> tuple[str, ...]:
        """End what these turns take back of what was denied; the ids of what is ended.

        Args:
            scope: Whose turns they are.
            episode_ids: The turns; what they state is written.
        """
        denials = Denials(self.repository, self.known.embedder, self.new_write_id)
        return await denials.end(scope, episode_ids)

    async def _affirmed(self, scope: Scope, part: ExtractOutput, effect: PlanEffect) -> PlanEffect:
        ended = await self.end_denials(scope, part.episode_ids)
        return union(effect, PlanEffect(retired=ended)) if ended else effect

    async def plan(
        self,
        scope: Scope,
        now: datetime,
        statements: tuple[Statement, ...],
        verbatim: tuple[str, ...],
        maker: Provenance,
        *,
        summed_up: bool = True,
    ) -> ConsolidationPlan:
        """What statements mean for what is known; writes nothing.

        Args:
            scope: Whose memory it is.
            now: The present of the call.
            statements: What turns state.
            verbatim: Episodes with words that are kept as they are.
            maker: The run, and the model that read them.
            summed_up: Whether summaries follow in the same plan.
        """
        sources = {source for s in statements for source in s.episode_ids} | set(verbatim)
        episodes = await episodes_by_id(self.repository, scope, sources)
        sides = frozenset(episode.is_test for episode in episodes.values())
        known = await self.known.about(scope, statements, sides=sides, summed_up=summed_up)
        later = await self.known.told_later(scope, statements, list(episodes.values()))
        if later:
            known = list({one.id: one for one in (*known, *later)}.values())
            told_by = {source for one in later for source in one.source_episode_ids}
            episodes |= await episodes_by_id(self.repository, scope, told_by)
        quoted = [episodes[e] for e in verbatim if e in episodes]
        known += await self.known.artifacts(scope, quoted)
        circumstances = Circumstances(scope=scope, now=now, episodes=episodes, provenance=maker)
        # Compares each with each, and looks for words to keep: not while others wait.
        plan = await computed(
            reconcile, statements, known, circumstances, quoted, summed_up=summed_up
        )
        return await self._of_words_that_are_there(scope, plan, episodes.keys())

    async def _of_words_that_are_there(
        self, scope: Scope, plan: ConsolidationPlan, read: Set[str]
    ) -> ConsolidationPlan:
        """The plan without what has the words of turns that are gone by now."""
        new = [memory for memory in plan.new_memories() if not is_composed(memory)]
        others = {source for memory in new for source in memory.source_episode_ids} - read
        if not others:
            return plan
        gone = others - await existing(self.repository, scope, others, _EPISODIC)
        lost = {memory.id for memory in new if not gone.isdisjoint(memory.source_episode_ids)}
        kept = (
            action
            for action in plan.actions
            if not isinstance(action, StoreNote | StoreEpisode) or action.memory.id not in lost
        )
        return plan.model_copy(update={"actions": tuple(kept)}) if lost else plan

    async def mark(
        self,
        scope: Scope,
        now: datetime,
        episode_ids: tuple[str, ...],
        refused: str | None = None,
    ) -> int:
        """Note on turns that they were read, or that reading them was refused.

        Args:
            scope: Whose turns they are.
            now: The present of the call: its attempts are known by it.
            episode_ids: The turns.
            refused: The error code of what failed when they were read; None where nothing did.

        Returns:
            How many are marked by this call, whichever attempt did it.
        """
        before: set[str] = set()

        def change(memory: Episode) -> Episode | None:
            if memory.consolidated_at is not None:
                # The moment is the workflow's: an earlier attempt of this very call wrote it.
                if memory.consolidated_at == now:
                    before.add(memory.id)
                return None
            after = _refused(memory, now, refused) if refused else _read(memory, now)
            if after is None:
                before.add(memory.id)
            return after

        updated = await update_those(
            self.repository, scope, Episode, episode_ids, change, new_write_id=self.new_write_id
        )
        return len(updated.changed | before)

    async def _apply(self, scope: Scope, plan: ConsolidationPlan) -> ConsolidateTurnsOutput:
        """Write what is new; only when it was read back, retire what it replaces."""
        written = await self.writer.apply(scope, plan)
        return ConsolidateTurnsOutput(
            effect=effect_of(plan, written),
            reread=written.reread,
            refused_links=written.refused_links,
            actions=plan.counts(),
            reasons=dict(Counter(str(d.reason) for d in plan.discarded())),
        )

    async def _found_again(
        self, request: ConsolidateTurnsInput, episode_ids: Sequence[str]
    ) -> PlanEffect:
        """What rests on these turns: attempts before this one may have written it."""
        where = (AnyOf("source_episode_ids", tuple(sorted(episode_ids))),)
        found = await all_of(self.repository, request.scope, SemanticMemory, where=where)
        resting = [m for m in found if m.detail is None]
        own = [m for m in resting if _is_of(m, request)]
        stored = {m.id for m in own}
        return PlanEffect(
            stored=tuple(m.id for m in own),
            confirmed=tuple(m.id for m in resting if m.id not in stored),
            retired=tuple(dict.fromkeys(old for m in own for old in m.supersedes)),
            unlinkable=_unlinkable(own),
            disputes=tuple(
                sorted({(min(m.id, o), max(m.id, o)) for m in own for o in m.disputed_with})
            ),
        )


def made_by(workflow_id: str, run_id: str, use: ModelUse) -> Provenance:
    """What memories name as their maker: the run, and the model that read the turns."""
    return Provenance(
        workflow_id=workflow_id,
        run_id=run_id,
        model=use.model,
        instructions_version=use.instructions_version,
    )


def effect_of(plan: ConsolidationPlan, written: PlanOutput) -> PlanEffect:
    """What a plan came to, by what was written of it."""
    updates = tuple(plan.amendments())
    confirmed = {u.memory_id for u in updates if u.add_sources}
    changed = {u.memory_id for u in updates if u.survival is None} - confirmed
    pruned = (u.memory_id for u in updates if u.survival is not None and u.survival.pruned)
    stored = frozenset(written.stored)
    return PlanEffect(
        stored=written.stored,
        confirmed=tuple(one for one in written.updated if one in confirmed),
        changed=tuple(one for one in written.updated if one in changed),
        retired=written.retired,
        pruned=tuple(pruned),
        unlinkable=_unlinkable(m for m in plan.new_memories() if m.id in stored),
        disputes=plan.disputes(),
    )


def union(one: PlanEffect, other: PlanEffect) -> PlanEffect:
    """Both together; what one of them stored counts as confirmed by none."""
    both = {
        name: tuple(dict.fromkeys((*getattr(one, name), *getattr(other, name))))
        for name in PlanEffect.model_fields
    }
    stored = frozenset(both["stored"])
    both["confirmed"] = tuple(each for each in both["confirmed"] if each not in stored)
    return PlanEffect(**both)


def _counted(made: ConsolidateTurnsOutput, effect: PlanEffect) -> ConsolidateTurnsOutput:
    """With this effect, and what it comes to in numbers."""
    return made.model_copy(
        update={
            "effect": effect,
            "stored": len(effect.stored),
            "corroborated": len(effect.confirmed),
            "superseded": len(effect.retired),
        }
    )


def _is_of(memory: SemanticMemory, request: ConsolidateTurnsInput) -> bool:
    """Whether this very call stored it, in whichever attempt."""
    return memory.provenance.run_id == request.run_id and memory.created_at == request.now


def _unlinkable(memories: Iterable[SemanticMemory]) -> tuple[str, ...]:
    return tuple(
        m.id for m in memories if m.superseded_by is not None or m.form is not MemoryForm.STATEMENT
    )


def _plus(one: ConsolidateTurnsOutput, other: ConsolidateTurnsOutput) -> ConsolidateTurnsOutput:
    counts = ("stored", "corroborated", "superseded", "refused_links")
    return ConsolidateTurnsOutput(
        effect=union(one.effect, other.effect),
        reread=(*one.reread, *other.reread),
        actions=dict(Counter(one.actions) + Counter(other.actions)),
        reasons=dict(Counter(one.reasons) + Counter(other.reasons)),
        **{name: getattr(one, name) + getattr(other, name) for name in counts},
    )


def _read(episode: Episode, now: datetime) -> Episode:
    rules = None if episode.unread is None else episode.unread.rules
    unread = None if rules is None else Unread(rules=rules)
    return episode.model_copy(update={"consolidated_at": now, "unread": unread})


def _refused(episode: Episode, now: datetime, because: str) -> Episode | None:
    """The turn with one more refusal; None where an earlier attempt of this call noted it."""
    unread = episode.unread or Unread()
    if unread.at == now:
        return None
    refusals = unread.refusals + 1
    wait: int = 2 ** (refusals - 1)
    again = refusals < _MOST_REFUSALS
    counted = {
        "refusals": refusals,
        "because": because,
        "at": now,
        "until": now + _FIRST_WAIT_AFTER_REFUSAL * wait if again else None,
    }
    return episode.model_copy(update={"unread": unread.model_copy(update=counted)})
