"""Inputs and outputs of the consolidation workflow and its activities, digests included."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import Final

from pydantic import Field

from engram.contracts.messages import (
    Failure,
    Message,
    ModelSpent,
    Population,
    ScopedMessage,
    TimedMessage,
    Timeout,
    by_model,
)
from engram.contracts.session import ConsolidationRequest
from engram.domain.digests import ConsolidationEffect
from engram.domain.plan import Action, ConsolidationPlan, Eligibility, Statement
from engram.domain.rules import DigestPolicy, ReviewRules

# --- what passes between the consolidation workflow and the activities of its digest stage


class Done(Message):
    """What consolidation did with a memory."""

    deed: ConsolidationEffect
    memory_id: str


class PendingDigests(Message):
    """What passes have touched since the last digest stage.

    Attributes:
        memory_ids: Memories that were stored, changed or retired.
        episode_ids: Turns that were read.
        ended: Sessions that ended.
        done: What was done with which memory, in order.
    """

    memory_ids: tuple[str, ...] = ()
    episode_ids: tuple[str, ...] = ()
    ended: tuple[str, ...] = ()
    done: tuple[Done, ...] = ()

    @property
    def size(self) -> int:
        """How much there is to do."""
        return len(self.memory_ids) + len(self.episode_ids) + len(self.ended) + len(self.done)

    @property
    def recomposed_from(self) -> tuple[str, ...]:
        """Memories whose digests are composed again: what is told again may have come back."""
        again = (one.memory_id for one in self.done if one.deed is ConsolidationEffect.CONFIRMED)
        return tuple(dict.fromkeys((*self.memory_ids, *again)))

    def after_plan(self, plan: ConsolidationPlan) -> PendingDigests:
        """With what a plan does."""
        stored = tuple(memory.id for memory in plan.new_memories())
        changed = tuple(u.memory_id for u in plan.amendments() if u.survival is None)
        retired = tuple(update.memory_id for update in plan.retirements())
        confirmed = tuple(u.memory_id for u in plan.amendments() if u.add_sources)
        pruned = tuple(
            u.memory_id for u in plan.amendments() if u.survival is not None and u.survival.pruned
        )
        deeds = (
            (ConsolidationEffect.STORED, stored),
            (ConsolidationEffect.CONFIRMED, confirmed),
            (ConsolidationEffect.SUPERSEDED, retired),
            (ConsolidationEffect.PRUNED, pruned),
        )
        done = tuple(Done(deed=deed, memory_id=one) for deed, ids in deeds for one in ids)
        touched = (*self.memory_ids, *stored, *changed, *retired)
        return self.model_copy(
            update={"memory_ids": tuple(dict.fromkeys(touched)), "done": (*self.done, *done)}
        )

    def after(self, effect: PlanEffect) -> PendingDigests:
        """With what plans did."""
        deeds = (
            (ConsolidationEffect.STORED, effect.stored),
            (ConsolidationEffect.CONFIRMED, effect.confirmed),
            (ConsolidationEffect.SUPERSEDED, effect.retired),
            (ConsolidationEffect.PRUNED, effect.pruned),
        )
        done = tuple(Done(deed=deed, memory_id=one) for deed, ids in deeds for one in ids)
        touched = (*self.memory_ids, *effect.stored, *effect.changed, *effect.retired)
        return self.model_copy(
            update={"memory_ids": tuple(dict.fromkeys(touched)), "done": (*self.done, *done)}
        )

    def after_reading(self, episode_ids: tuple[str, ...]) -> PendingDigests:
        """With turns that were read."""
        read = (*self.episode_ids, *episode_ids)
        return self.model_copy(update={"episode_ids": tuple(dict.fromkeys(read))})

    def after_endings(self, session_ids: tuple[str, ...]) -> PendingDigests:
        """With sessions that ended."""
        ended = (*self.ended, *session_ids)
        return self.model_copy(update={"ended": tuple(dict.fromkeys(ended))})


class DigestInput(TimedMessage):
    """Input of the activities that rebuild digests.

    Attributes:
        policy: The numbers to compose by.
        memory_ids: Memories that were touched.
        episode_ids: Turns that were read.
        ended: Sessions that ended.
        workflow_id: Which workflow asks.
        run_id: Which run of it.
    """

    policy: DigestPolicy
    memory_ids: tuple[str, ...] = ()
    episode_ids: tuple[str, ...] = ()
    ended: tuple[str, ...] = ()
    workflow_id: str | None = None
    run_id: str | None = None


class DigestStageInput(TimedMessage):
    """Input of the activity that is a whole digest stage.

    Attributes:
        policy: The numbers to compose by.
        touched: What passes did since the last stage.
        operation: Names the stage, so that a repeat of it counts once.
        workflow_id: Which workflow asks.
        run_id: Which run of it.
    """

    policy: DigestPolicy
    touched: PendingDigests
    operation: str
    workflow_id: str | None = None
    run_id: str | None = None


class LearnInput(TimedMessage):
    """Input of the activity that draws guidance from what became of memories.

    Attributes:
        policy: When guidance is drawn.
        done: What was done with which memory.
        operation: Names the stage, so that a repeat of it counts once.
        workflow_id: Which workflow asks.
        run_id: Which run of it.
    """

    policy: DigestPolicy
    done: tuple[Done, ...]
    operation: str
    workflow_id: str | None = None
    run_id: str | None = None


class DigestOutput(Message):
    """How many digests were written: what did not change is not.

    Attributes:
        profiles: New versions of profiles.
        topics: New versions of topics.
        boxes: Boxes that were sealed.
        guidelines: New versions of the guidance.
        retired: Versions that count no more.
        linked: Links between boxes and what was derived from their turns.
    """

    profiles: int = Field(default=0, ge=0)
    topics: int = Field(default=0, ge=0)
    boxes: int = Field(default=0, ge=0)
    guidelines: int = Field(default=0, ge=0)
    retired: int = Field(default=0, ge=0)
    linked: int = Field(default=0, ge=0)

    def plus(self, other: DigestOutput) -> DigestOutput:
        """Both together."""
        fields = type(self).model_fields
        return DigestOutput(**{f: getattr(self, f) + getattr(other, f) for f in fields})


class DigestStageOutput(DigestOutput):
    """What a digest stage wrote.

    Attributes:
        unlearnt: Whether guidance could not be learnt: nothing waits for it.
    """

    unlearnt: bool = False


# --- what passes between clients, the consolidation workflow and its activities

# Requests for these reasons close a stretch of conversation.
CLOSING_REASONS: Final = frozenset({"session ended", "session idle"})
# Requests of somebody who waits for what is read, or for its links.
READING_AWAITED: Final = "awaited"
LINKS_AWAITED: Final = "links awaited"
# After these, what was extracted is linked at once.
LINKING_REASONS: Final = CLOSING_REASONS | {LINKS_AWAITED}


class ConsolidationPolicy(Message):
    """The numbers a consolidation runs by, fixed by its starter so that replays agree.

    Engram's clients send those of their settings; whoever starts one by hand may leave them out.

    Attributes:
        model_queue: Where models are asked; empty: where settings have it that do not name it.
    """

    consolidate_every: int = Field(default=3, ge=1)
    extraction_batch_turns: int = Field(default=20, ge=1)
    extraction_batch_bytes: int = Field(default=48 * 1024, ge=1)
    pass_episodes: int = Field(default=2000, ge=1)
    candidates_per_memory: int = Field(default=8, ge=1)
    session_idle_minutes: float = Field(default=30.0, gt=0)
    model_timeout: Timeout = timedelta(minutes=5)
    store_timeout: Timeout = timedelta(seconds=30)
    model_queue: str = ""
    digests: DigestPolicy | None = None
    reviews: ReviewRules | None = None

    @classmethod
    def fixed_by(cls, settings: object) -> ConsolidationPolicy:
        """The policy that ``engram.settings.Settings`` describes (same names)."""
        return cls.model_validate(settings, from_attributes=True)


class ModelUse(Message):
    """What one model answer came from and cost.

    Attributes:
        model: The model's name.
        instructions_version: Version of the instructions it was given.
        cost_usd: None when the price is not known.
    """

    model: str
    instructions_version: str
    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = None


_NOT_SUMMED: Final = frozenset(
    {"dry_run", "actions", "changes", "models", "remaining", "failures", "workflow_id", "run_id"}
)
MOST_PLANNED: Final = 200
"""Changes that a dry run quotes."""
_LONGEST_QUOTED: Final = 200


class PlannedChange(Message):
    """What a dry run would do to one memory.

    Attributes:
        action: As plans name it: store_note, update_note and so on.
        reason: Why, as a code.
        memory_id: Which memory; None where a proposal would come to nothing.
        content: The words of what would be new, or why it is done, cut where they are long.
        eligibility: What it rests on: how sure the extraction is, how far the memory has come in
            its life, how important it is, and who proposes it.
    """

    action: str
    reason: str
    memory_id: str | None = None
    content: str = ""
    eligibility: Eligibility = Eligibility()


def planned(plan: ConsolidationPlan) -> tuple[PlannedChange, ...]:
    """The first actions of a plan, to be shown."""
    return tuple(_shown(action) for action in plan.actions[:MOST_PLANNED])


def _shown(action: Action) -> PlannedChange:
    new = getattr(action, "memory", None)
    changed = getattr(action, "memory_id", None) or getattr(action, "first_id", None)
    return PlannedChange(
        action=action.action,
        reason=str(action.reason),
        memory_id=changed if new is None else new.id,
        content=(action.why if new is None else new.content)[:_LONGEST_QUOTED],
        eligibility=action.eligibility,
    )


class ConsolidationReport(Message):
    """What consolidation did, summed over what the report covers.

    Attributes:
        dry_run: Whether nothing was written: the numbers are what a pass would come to.
        changes: Of a dry run, the first changes, one by one; ``actions`` counts all of them.
        passes: Passes over the due episodes.
        episodes: Episodes extracted and marked.
        extractions: Model calls that extracted.
        statements: Statements the model found.
        stored: New memories.
        corroborated: Memories that gained a source.
        superseded: Memories that stopped holding.
        reviews: Disputes for which a review waits since.
        linking_passes: Linking passes.
        links: Links made.
        refused_links: Links for which a memory at one end had no room: they are at neither.
        pruned: Memories a linking pass counted down.
        discarded: Proposals that were not carried out, with a reason in the plan.
        dropped_references: References of the model that nothing resolves.
        dropped_quotes: Quotations of the model that stand in none of their sources.
        dropped_unattested: Statements that no person's turn makes or confirms.
        dropped_masked: Statements about what was masked: a token is no news of anybody.
        dropped_secrets: Statements that tell a password, PIN, card number or key.
        dropped_malformed: Statements of the model that nothing could be made of.
        dropped_actions: Actions of a plan that could not be read; they do nothing.
        dropped_echoes: Turns that repeat a memory in Engram's own words, which is no evidence.
        dropped_retirements: Retirements that one answer proposed beyond what one answer may do.
        actions: How many actions of each kind were carried out.
        profiles: New versions of profiles.
        topics: New versions of topics.
        boxes: Boxes that were sealed.
        guidelines: New versions of the guidance for extractions.
        digest_failures: Digest stages that failed; what they rest on is stored all the same.
        guideline_failures: Times that guidance could not be read or learnt; nothing waited for it.
        refused: Episodes left out because reading them failed for their own sake; still due.
        overfull: Single episodes that state more than one answer holds; the rest is not known.
        remaining: Whether episodes were left for a later pass.
        input_tokens: Tokens of what models were asked, by all attempts.
        output_tokens: Tokens of their answers.
        cost_usd: What is known of their cost; ``models`` says for how many requests it is not.
        models: What models were asked and what that took, failed attempts included.
        failures: Why passes stopped or left episodes out; what was not written is still due.
    """

    dry_run: bool = False
    changes: tuple[PlannedChange, ...] = ()
    passes: int = 0
    episodes: int = 0
    extractions: int = 0
    statements: int = 0
    stored: int = 0
    corroborated: int = 0
    superseded: int = 0
    reviews: int = 0
    linking_passes: int = 0
    links: int = 0
    refused_links: int = 0
    pruned: int = 0
    discarded: int = 0
    dropped_references: int = 0
    dropped_quotes: int = 0
    dropped_unattested: int = 0
    dropped_masked: int = 0
    dropped_secrets: int = 0
    dropped_malformed: int = 0
    dropped_actions: int = 0
    dropped_echoes: int = 0
    dropped_retirements: int = 0
    actions: dict[str, int] = Field(default_factory=dict)
    profiles: int = 0
    topics: int = 0
    boxes: int = 0
    guidelines: int = 0
    digest_failures: int = 0
    guideline_failures: int = 0
    refused: int = 0
    overfull: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float = 0.0
    models: tuple[ModelSpent, ...] = ()
    remaining: bool = False
    failures: tuple[Failure, ...] = ()
    workflow_id: str | None = None
    run_id: str | None = None

    def plus(self, other: ConsolidationReport) -> ConsolidationReport:
        """Both together; ids, and whether anything remains, are the later one's."""
        summed = {
            name: getattr(self, name) + getattr(other, name)
            for name in type(self).model_fields
            if name not in _NOT_SUMMED
        }
        models = by_model((*self.models, *other.models))
        summed["actions"] = dict(Counter(self.actions) + Counter(other.actions))
        # A broken model fails pass after pass: the last few failures say it all.
        return other.model_copy(
            update={
                **summed,
                "dry_run": self.dry_run or other.dry_run,
                "models": models,
                "changes": (*self.changes, *other.changes)[:MOST_PLANNED],
                "failures": (*self.failures, *other.failures)[-5:],
            }
        )


class ConsolidationState(ScopedMessage):
    """All that a consolidation workflow knows; carried whole over continue-as-new.

    Attributes:
        population: Whether it reads test turns, or all others.
        dry_run: Whether it only says what it would do.
        requests: What was asked and is not served yet.
        extractions: Extractions since the last linking pass.
        unlinked: Memories that were stored or confirmed since the last linking pass.
        fresh: Those of them that were stored.
        linking_due: Whether the next pass ends with a linking pass in any case.
        linking_passes: Linking passes so far, over all runs.
        refused: Episodes that passes leave out until somebody asks anew.
        outages: Passes in a row that an outage stopped since somebody asked.
        runs: Runs of this workflow so far, this one included.
        undigested: What was touched since the last digest stage.
        digests: Digest stages so far, over all runs.
    """

    policy: ConsolidationPolicy = ConsolidationPolicy(digests=DigestPolicy(), reviews=ReviewRules())
    population: Population = Population.REAL
    dry_run: bool = False
    requests: tuple[ConsolidationRequest, ...] = ()
    extractions: int = 0
    unlinked: tuple[str, ...] = ()
    fresh: tuple[str, ...] = ()
    linking_due: bool = False
    linking_passes: int = 0
    refused: tuple[str, ...] = ()
    outages: int = 0
    totals: ConsolidationReport = ConsolidationReport()
    runs: int = 1
    undigested: PendingDigests = PendingDigests()
    digests: int = 0


class SelectDueInput(TimedMessage):
    """Input of the selecting activity.

    Attributes:
        population: Test episodes, or all others.
        skip: Episodes to leave out.
        asked: Whether somebody waits for the pass. Else what earlier passes refused is left
            out for a while, longer each time.
    """

    policy: ConsolidationPolicy
    population: Population = Population.REAL
    skip: tuple[str, ...] = ()
    # Inputs of before read everything that is due.
    asked: bool = True


class EpisodeBatch(Message):
    """Due episodes of one session, in order, for one extraction."""

    session_id: str | None
    episode_ids: tuple[str, ...] = Field(min_length=1)


class SelectDueOutput(Message):
    """The batches of one pass.

    Attributes:
        more: Whether episodes beyond these are due.
    """

    batches: tuple[EpisodeBatch, ...] = ()
    more: bool = False


class ExtractInput(TimedMessage):
    """Input of the extracting activity.

    Attributes:
        further: Batches that are due next. Whoever answers for nothing and at once, as the rules
            do, reads them as well, each as a request of its own.
    """

    episode_ids: tuple[str, ...]
    further: tuple[EpisodeBatch, ...] = ()


class ExtractOutput(Message):
    """What a batch of turns states, as a model says it; kept readable in the Temporal UI.

    Attributes:
        episode_ids: The turns, where it is taken up.
        use: What this answer came from; None where nothing was asked.
        spent: What all attempts at it took, failed ones included.
        dropped_quotes: Quotations that stand in none of their sources.
        dropped_unattested: Statements that no person's turn makes or confirms.
        dropped_masked: Statements about what was masked: a token is no news of anybody.
        dropped_secrets: Statements that tell a password, PIN, card number or key.
        dropped_malformed: Statements of the model that nothing could be made of.
        full: Whether the answer holds as much as one may, so that more may be stated.
        verbatim: Episodes with words that are kept as they are.
        unguided: Whether the guidance could not be read; it was extracted without.
        further: What the first of the further batches state; the others were not read.
    """

    reasoning: str = ""
    episode_ids: tuple[str, ...] = ()
    statements: tuple[Statement, ...] = ()
    use: ModelUse | None = None
    spent: tuple[ModelSpent, ...] = ()
    dropped_references: int = 0
    dropped_quotes: int = 0
    dropped_unattested: int = 0
    dropped_masked: int = 0
    dropped_secrets: int = 0
    dropped_malformed: int = 0
    full: bool = False
    verbatim: tuple[str, ...] = ()
    unguided: bool = False
    further: tuple[ExtractOutput, ...] = ()

    def of(self, episode_ids: tuple[str, ...]) -> ExtractOutput:
        """The answer as it is taken up: with its turns, without what only its pass counts."""
        return ExtractOutput(
            episode_ids=episode_ids,
            statements=self.statements,
            verbatim=self.verbatim,
            use=self.use,
        )


class ConsolidateTurnsInput(TimedMessage):
    """Input of the activity that takes up what turns state.

    Attributes:
        parts: What batches state, in the order in which they are due; each is taken up by itself.
        repeated: Whether an earlier call may have taken up some of them at the same moment.
    """

    parts: tuple[ExtractOutput, ...]
    repeated: bool = False
    workflow_id: str
    run_id: str


class PlanEffect(Message):
    """What became of memories by one step, whichever attempt did it.

    Attributes:
        stored: New memories.
        confirmed: Memories that gained a source.
        changed: Memories that were changed otherwise, or as well.
        retired: Memories that stopped holding.
        pruned: Memories that a linking pass found not worth keeping.
        unlinkable: Those of the stored ones that no linking pass looks at.
        disputes: Pairs that contradict each other since.
    """

    stored: tuple[str, ...] = ()
    confirmed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    retired: tuple[str, ...] = ()
    pruned: tuple[str, ...] = ()
    unlinkable: tuple[str, ...] = ()
    disputes: tuple[tuple[str, str], ...] = ()


class ConsolidateTurnsOutput(Message):
    """What came of turns.

    Attributes:
        effect: On memories.
        reread: Turns that are due again: they shared a conclusion with one that was forgotten.
        marked: How many turns are marked as read.
        stored: New memories, each counted with its batch, as are the next two.
        corroborated: Memories that gained a source.
        superseded: Memories that stopped holding.
        refused_links: Links for which a memory at one end had no room.
        actions: How many actions of each kind the plans had.
        reasons: How often each reason is given for one.
    """

    effect: PlanEffect = PlanEffect()
    reread: tuple[str, ...] = ()
    marked: int = 0
    stored: int = 0
    corroborated: int = 0
    superseded: int = 0
    refused_links: int = 0
    actions: dict[str, int] = Field(default_factory=dict)
    reasons: dict[str, int] = Field(default_factory=dict)


class ReconcileInput(TimedMessage):
    """Input of the reconciling activity.

    Attributes:
        verbatim: Episodes with words that are kept as they are.
    """

    statements: tuple[Statement, ...]
    verbatim: tuple[str, ...] = ()
    use: ModelUse
    workflow_id: str
    run_id: str


class PlanInput(TimedMessage):
    """Input of the activities that write a plan and retire what it replaces."""

    plan: ConsolidationPlan


class PlanOutput(Message):
    """What came of a plan: each memory counts only where something changed now.

    Attributes:
        refused_links: Links for which a memory at one end had no room.
        reread: Turns to be read again: what was drawn from them together with a turn
            that is forgotten was not kept.
        retired: What stopped holding, where one call wrote and retired.
    """

    stored: tuple[str, ...] = ()
    updated: tuple[str, ...] = ()
    links: int = 0
    refused_links: int = 0
    missing: tuple[str, ...] = ()
    reread: tuple[str, ...] = ()
    retired: tuple[str, ...] = ()


class MarkConsolidatedInput(TimedMessage):
    """Input of the marking activity.

    Attributes:
        refused: The error code of what failed when they were read: they are then marked as
            left out, not as consolidated.
    """

    episode_ids: tuple[str, ...]
    refused: str | None = None


class MarkConsolidatedOutput(Message):
    """How many episodes were marked now."""

    marked: int


class LinkInput(TimedMessage):
    """Input of the linking activity.

    Attributes:
        memory_ids: What was stored or confirmed since the last linking pass.
        fresh_ids: Those of them that were stored; they start at selectivity 0 and
            one pass, and are not counted a second time.
        operation: Names the linking pass.
        population: Test memories, or all others; those of the other are left out.
        at_once: So many are one request. Whoever answers for nothing and at once, as the rules
            do, answers for all and writes the links as well; a model answers for the first ones.
            None: all of them are one request.
    """

    memory_ids: tuple[str, ...]
    at_once: int | None = None
    fresh_ids: tuple[str, ...]
    candidates_per_memory: int = Field(ge=1)
    operation: str
    population: Population = Population.REAL


class LinksApplied(Message):
    """What came of plans that link memories."""

    effect: PlanEffect = PlanEffect()
    links: int = 0
    refused_links: int = 0
    superseded: int = 0
    discarded: int = 0
    actions: dict[str, int] = Field(default_factory=dict)


class LinkOutput(Message):
    """What the model made of the memories: its proposals, and the plan they become.

    Attributes:
        use: What this answer came from.
        dropped_references: References of the model that nothing resolves.
        dropped_retirements: Retirements it proposed beyond what one answer may do.
        spent: What all attempts at it took, failed ones included.
        looked_at: How many of the memories it answers for, from the first one on; None: all.
        applied: What came of it, where it was written already; the plan is then empty.
    """

    looked_at: int | None = None
    applied: LinksApplied | None = None
    reasoning: str
    confidence: float = Field(ge=0, le=1)
    plan: ConsolidationPlan
    use: ModelUse | None = None
    spent: tuple[ModelSpent, ...] = ()
    dropped_references: int = 0
    dropped_retirements: int = 0
