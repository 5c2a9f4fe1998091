"""What applications hold: one user's memory."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

from engram.client.engine import MemoryEngine, MemoryPage, MemoryStats, Receipt, StoreMethods
from engram.client.session_writer import TurnIntake
from engram.client.transfer import TransferMethods
from engram.consolidation.verify import Verification
from engram.contracts.consolidation import ConsolidationReport
from engram.contracts.lifecycle import DecayReport, PromotionReport
from engram.contracts.messages import UserUsage
from engram.contracts.removal import CompactReceipt, ErasureReceipt, ForgetReceipt
from engram.contracts.session import EncodeCall, SessionSummary
from engram.domain.buffer import RememberedTurn
from engram.domain.memories import (
    STORED_TYPES,
    AnyMemory,
    MemoryStatus,
    MemoryType,
    Resolution,
    SemanticMemory,
)
from engram.domain.scope import Scope, check_identifier
from engram.domain.turns import Turn
from engram.errors import InvalidInput, InvalidQuery, MemoryClosed
from engram.operations.admin import (
    ENERGY,
    HEALTH,
    INSPECT,
    PROMOTIONS,
    REPAIR,
    STATUS,
    VALIDATE,
    EnergyReport,
    HealthReport,
    Inspection,
    OfPopulation,
    PromotionsReport,
    RepairReport,
    StatusReport,
    ValidationReport,
)
from engram.operations.digests import (
    BOXES,
    GUIDELINES,
    PROFILE,
    PROFILES,
    TOPICS,
    AboutBoxes,
    AboutSomebody,
    Guidelines,
    MemoryBox,
    Profile,
    Topic,
)
from engram.operations.lifecycle import (
    BRIEFING,
    CONFIRM,
    DECAY,
    DEMOTE,
    DISPUTE,
    FORCE_PROMOTE,
    PROMOTE,
    PROTECT,
    UNPROTECT,
    Brief,
    RunDecay,
    RunPass,
)
from engram.operations.memories import RESOLVE, USAGE, VERIFY, Resolve
from engram.operations.registry import AboutMemory, Acted, ActOn, Answer, Asked, Operation, Question
from engram.operations.removal import COMPACT, ERASE, FORGET, Compact, EraseUser
from engram.operations.trials import (
    IMPORT,
    TEST_BOOST,
    TEST_CREATE,
    TEST_DELETE,
    TEST_LIST,
    TEST_SCENARIO,
    BoostTest,
    CreateTest,
    DeleteTests,
    Import,
    PlayScenario,
    Scenario,
    ScenarioReport,
)
from engram.ports import Clock
from engram.recall.context import Briefed, block_of
from engram.recall.request import RecallRequest
from engram.recall.results import RecallHit
from engram.settings import Settings
from engram.transfer.memories import ImportedMemory, ImportReport

# --- what a memory store gives to a prompt

LEAST_TOKENS = 32
_MOST_HITS = 50
# A line has hardly fewer than so many tokens, so more hits than this never fit.
_TOKENS_OF_A_LINE = 15


async def context_of(
    recall: Callable[..., Awaitable[Sequence[RecallHit]]],
    query: str,
    tokens: object,
    options: Mapping[str, Any],
) -> str:
    """See :meth:`engram.MemoryStore.context`."""
    if isinstance(tokens, bool) or not isinstance(tokens, int) or tokens < LEAST_TOKENS:
        raise InvalidQuery(
            "The number of tokens is out of range.",
            allowed=f"a whole number from {LEAST_TOKENS} on",
        )
    asked = {
        "limit": min(_MOST_HITS, max(1, tokens // _TOKENS_OF_A_LINE)),
        "include_sources": True,
        **options,
    }
    return block_of(await recall(query, **asked), tokens=tokens)


# --- what a memory store tells about its conclusions


class KnowledgeMethods(StoreMethods):
    """Checking conclusions, and what is known about whom."""

    async def verify(self, memory_id: str) -> Verification:
        """Check a memory against the turns it was drawn from.

        Raises:
            MemoryNotFound: no such memory of this user.
        """
        return await self._perform(VERIFY, AboutMemory(memory_id=memory_id))


# --- how a memory store is told what became of promises


class CommitmentMethods(StoreMethods):
    """Ending commitments by hand; a later turn that says so ends them as well."""

    async def resolve(
        self, memory_id: str, resolution: Literal["fulfilled", "expired"] | Resolution
    ) -> SemanticMemory:
        """Say how a commitment ended; saying it again changes nothing.

        A resolved commitment stays readable, and leaves the answers after a while.

        Args:
            memory_id: Of a semantic memory of the category commitment.
            resolution: ``fulfilled`` if it was kept, ``expired`` if it came to nothing.

        Returns:
            The memory as it is now.

        Raises:
            MemoryNotFound: no such memory of this user.
            InvalidInput: it is no commitment, or no such resolution.
        """
        if resolution not in set(Resolution):
            raise InvalidInput(
                f"A commitment cannot be resolved as {resolution!r}.",
                allowed=", ".join(Resolution),
            )
        asked = Resolve(memory_id=memory_id, resolution=Resolution(resolution))
        return await self._perform(RESOLVE, asked)


# --- what a memory store tells about whom and what it knows


class DigestMethods(StoreMethods):
    """Profiles, topics, boxes and guidelines, as the last consolidation left them."""

    async def profile(self, name: str | None = None, *, as_of: datetime | None = None) -> Profile:
        """What is known about somebody or something, in few lines.

        Args:
            name: Any name of a person, place or project; None for the user's own
                behavioural profile: current values, preferences, habits, principles, skills.
            as_of: The profile as it was then, by the conversation's own dates.

        Raises:
            MemoryNotFound: nobody and nothing of that name has a profile.
            InvalidQuery: several do.
        """
        return await self._perform(PROFILE, AboutSomebody(name=name, as_of=as_of))

    async def profiles(self) -> Sequence[Profile]:
        """Every profile, the user's first, then in order of names; at most 1,000."""
        return await self._perform(PROFILES, Question())

    async def topics(self) -> Sequence[Topic]:
        """Every topic with the memories under it, the largest first."""
        return await self._perform(TOPICS, Question())

    async def boxes(self, session_id: str | None = None) -> Sequence[MemoryBox]:
        """Runs of turns on one topic that take no further turn, in order of time; at most 1,000.

        Args:
            session_id: Only those of this conversation.
        """
        return await self._perform(BOXES, AboutBoxes(session_id=session_id))

    async def guidelines(self) -> Guidelines:
        """What consolidation learnt from what became of memories; extractions read it."""
        return await self._perform(GUIDELINES, Question())


# --- how a memory store forgets, because its user wants it to


class ForgettingMethods(StoreMethods):
    """Removing memories for good."""

    async def forget(self, memory_id: str) -> ForgetReceipt:
        """Forget one memory for good, and whatever was derived only from it.

        Forgetting a turn takes the conclusions that no other turn supports; the
        others stay, without it among their sources. Profiles, topics and boxes
        that named what is gone are composed again. What a forgotten conclusion
        had replaced holds again. Temporal keeps the words of past runs until
        their retention ends; :meth:`erase` deletes those too.

        Raises:
            MemoryNotFound: no such memory of this user.
            TemporalUnavailable: the workflow could not be asked; a started one goes
                on, and calling again waits for the same.
        """
        return await self._perform(FORGET, AboutMemory(memory_id=memory_id))

    async def erase(self) -> ErasureReceipt:
        """Erase everything of this user: memories, running workflows, histories.

        Ends when every collection counts zero and the Temporal service lists no
        workflow of the user any more. In the embedded mode all files are then
        rewritten, so that none holds a word of the user; the receipt says so, and
        what may remain elsewhere. What is encoded meanwhile may survive: stop
        writing for the user first.

        Raises:
            TemporalUnavailable: the workflow could not be started or asked; a
                started one goes on, and calling again waits for the same.
        """
        return await self._perform(ERASE, EraseUser())

    async def compact(self) -> CompactReceipt:
        """Rewrite the files of the data folder, whoever's memories they hold.

        Deleting leaves bytes in the files; this does not. Everybody goes on
        meanwhile, Temporal pauses for a moment. For operators, in the embedded mode.

        Raises:
            InvalidQuery: the files belong to servers.
        """
        return await self._perform(COMPACT, Compact())


# --- what a memory store tells about its costs


class UsageMethods(StoreMethods):
    """What language models were asked for this user."""

    async def usage(self) -> UserUsage:
        """Requests, tokens, cost and attempts, in all and by model; failed ones included.

        It sums this user's consolidations that Temporal still knows; a pass that is
        going on is counted when it ends.

        Raises:
            TemporalUnavailable: Temporal cannot be reached.
        """
        return await self._perform(USAGE, Question())


# --- how a memory store lets memories harden and fade


class LifecycleMethods(StoreMethods):
    """What the user says of memories, and passes over them. All may be called again.

    What acts on one memory takes ``dry_run`` (write nothing; say what would change)
    and ``test_only`` (refuse it, with InvalidInput, for what is no test memory).
    """

    async def confirm(
        self, memory_id: str, *, dry_run: bool = False, test_only: bool = False
    ) -> Acted:
        """The user says that it is so: it counts for more, and comes back if it had left.

        Raises:
            MemoryNotFound: no such memory of this user.
            InvalidInput: it is a turn, which was said whatever one thinks of it.
        """
        return await self._perform(CONFIRM, _on(memory_id, dry_run, test_only))

    async def dispute(
        self, memory_id: str, *, dry_run: bool = False, test_only: bool = False
    ) -> Acted:
        """The user says that it is not so: it counts for less, and stays readable.

        Raises:
            MemoryNotFound: no such memory of this user.
            InvalidInput: it is a turn, which was said whatever one thinks of it.
        """
        return await self._perform(DISPUTE, _on(memory_id, dry_run, test_only))

    async def protect(
        self, memory_id: str, *, dry_run: bool = False, test_only: bool = False
    ) -> Acted:
        """No rule may take it away any more. New knowledge still replaces it.

        Raises:
            MemoryNotFound: no such memory of this user.
        """
        return await self._perform(PROTECT, _on(memory_id, dry_run, test_only))

    async def unprotect(
        self, memory_id: str, *, dry_run: bool = False, test_only: bool = False
    ) -> Acted:
        """Rules apply to it again, from when it was last used.

        Raises:
            MemoryNotFound: no such memory of this user.
        """
        return await self._perform(UNPROTECT, _on(memory_id, dry_run, test_only))

    async def demote(
        self, memory_id: str, *, dry_run: bool = False, test_only: bool = False
    ) -> Acted:
        """Put it aside: archived, it answers only where archived memories are asked for.

        Nothing happens to what is protected or has left. :meth:`confirm` brings a
        conclusion back, :meth:`protect` anything.

        Raises:
            MemoryNotFound: no such memory of this user.
        """
        return await self._perform(DEMOTE, _on(memory_id, dry_run, test_only))

    async def force_promote(
        self, memory_id: str, *, dry_run: bool = False, test_only: bool = False
    ) -> Acted:
        """Promote by hand: make a habit of a piece of knowledge, lift anything else one tier.

        Nothing happens to what was promoted already, or stands at the top.

        Raises:
            MemoryNotFound: no such memory of this user.
        """
        return await self._perform(FORCE_PROMOTE, _on(memory_id, dry_run, test_only))

    async def decay(
        self, *, dry_run: bool = False, test_only: bool = False, at: datetime | None = None
    ) -> DecayReport:
        """Run a decay pass now, and wait for its report.

        Args:
            dry_run: Write nothing; say what would happen.
            test_only: Look at test memories only; without it, at all others.
            at: Judge as of then, with ``dry_run`` only: what will have happened by then.

        Raises:
            InvalidQuery: ``at`` without ``dry_run``, or without timezone.
            TemporalUnavailable: Temporal cannot be reached.
        """
        asked = RunDecay(dry_run=dry_run, test_only=test_only, at=at)
        return await self._perform(DECAY, asked)

    async def promote(self, *, dry_run: bool = False, test_only: bool = False) -> PromotionReport:
        """Run a promotion pass now, and wait for its report.

        Args:
            dry_run: Write nothing; say what would happen.
            test_only: Look at test memories only; without it, at all others.

        Raises:
            TemporalUnavailable: Temporal cannot be reached.
        """
        asked = RunPass(dry_run=dry_run, test_only=test_only)
        return await self._perform(PROMOTE, asked)

    async def briefing(self, *, limit: int = 10, include_test: bool = False) -> Sequence[Briefed]:
        """What matters most about this user, for the start of a conversation, best first.

        Conclusions that hold now, by salience, confidence and use, however long ago.

        Args:
            limit: How many at most, 1 to 200.
            include_test: Whether test memories count.

        Raises:
            InvalidQuery: the limit is out of range.
        """
        asked = Brief(limit=limit, include_test=include_test)
        return await self._perform(BRIEFING, asked)


def _on(memory_id: str, dry_run: bool, test_only: bool) -> ActOn:
    return ActOn(memory_id=memory_id, dry_run=dry_run, test_only=test_only)


# --- what a memory store offers to whoever operates it

_AT_ONCE = 200


class OperatingMethods(StoreMethods):
    """Looking at memories' lives, trying out what would happen, mending, importing."""

    async def status(self, *, test_only: bool = False) -> StatusReport:
        """How memories stand, from counts alone; test memories only if asked for."""
        return await self._perform(STATUS, _of(test_only))

    async def energy(self, *, test_only: bool = False) -> EnergyReport:
        """How lively active memories are, by tier, and which fade first. Reads all of them."""
        return await self._perform(ENERGY, _of(test_only))

    async def promotions(self, *, test_only: bool = False) -> PromotionsReport:
        """What was promoted, and what lacks at most one condition. Reads all memories."""
        return await self._perform(PROMOTIONS, _of(test_only))

    async def health(self, *, test_only: bool = False) -> HealthReport:
        """What is not well: wrong energies, orphans, promotion, decay. Reads all memories."""
        return await self._perform(HEALTH, _of(test_only))

    async def inspect(self, memory_id: str) -> Inspection:
        """Everything about one memory's life.

        Raises:
            MemoryNotFound: no such memory of this user.
        """
        return await self._perform(INSPECT, AboutMemory(memory_id=memory_id))

    async def validate(self, *, test_only: bool = False) -> ValidationReport:
        """Orphans, broken and one-way links, duplicates, bad fields. Reads all memories."""
        return await self._perform(VALIDATE, _of(test_only))

    async def repair(
        self, memory_id: str, *, dry_run: bool = False, test_only: bool = False
    ) -> RepairReport:
        """Mend what :meth:`validate` finds about one memory; again, it finds nothing to do.

        Args:
            memory_id: Which.
            dry_run: Write nothing; say what is wrong.
            test_only: Refuse it for what is no test memory.

        Raises:
            MemoryNotFound: no such memory of this user.
            InvalidInput: ``test_only``, and it is no test memory.
        """
        asked = ActOn(memory_id=memory_id, dry_run=dry_run, test_only=test_only)
        return await self._perform(REPAIR, asked)

    async def create_test(
        self,
        content: str,
        *,
        conclusion: bool = False,
        age_days: float = 0.0,
        dry_run: bool = False,
    ) -> AnyMemory:
        """Store a test memory; it is in no recall and no pass unless asked for.

        Args:
            content: Its words.
            conclusion: Whether it is knowledge; otherwise it is a turn.
            age_days: How long ago it was stored, 0 to 36,500 days.
            dry_run: Store nothing; return what would be stored.
        """
        asked = CreateTest(
            content=content, conclusion=conclusion, age_days=age_days, dry_run=dry_run
        )
        return (await self._perform(TEST_CREATE, asked)).memory

    async def boost_test(
        self, memory_id: str, *, recalls: int = 1, dry_run: bool = False
    ) -> AnyMemory:
        """Recall a test memory so many times; in a dry run, only say what it would be then.

        Raises:
            MemoryNotFound: no such memory of this user.
            InvalidInput: it is no test memory.
        """
        asked = BoostTest(memory_id=memory_id, recalls=recalls, dry_run=dry_run)
        return (await self._perform(TEST_BOOST, asked)).memory

    async def list_tests(self) -> Sequence[AnyMemory]:
        """Test memories, 200 at most."""
        return await self._perform(TEST_LIST, Question())

    async def delete_tests(
        self, memory_ids: Sequence[str] | None = None, *, dry_run: bool = False
    ) -> int:
        """Remove these test memories, or all; how many. In a dry run, only count them.

        Raises:
            InvalidInput: one of them is no test memory; none is removed.
        """
        ids = None if memory_ids is None else tuple(memory_ids)
        asked = DeleteTests(memory_ids=ids, dry_run=dry_run)
        return await self._perform(TEST_DELETE, asked)

    async def play_scenario(self, name: str, *, dry_run: bool = False) -> ScenarioReport:
        """Play a scenario with test memories, and remove them: fade, stay, use, habit, apart.

        In a dry run, only tell what playing it does.

        Raises:
            InvalidInput: there is no scenario of this name.
        """
        if name not in set(Scenario):
            raise InvalidInput("There is no scenario of this name.", allowed=", ".join(Scenario))
        asked = PlayScenario(name=Scenario(name), dry_run=dry_run)
        return await self._perform(TEST_SCENARIO, asked)

    async def import_memories(self, memories: Sequence[ImportedMemory]) -> ImportReport:
        """Store memories from elsewhere: long-term, energy 10, recalled once.

        Importing them again stores nothing new.

        Raises:
            InvalidTurn: one of them cannot be kept.
        """
        report = ImportReport()
        for start in range(0, len(memories), _AT_ONCE):
            part = tuple(memories[start : start + _AT_ONCE])
            report = report.plus(await self._perform(IMPORT, Import(memories=part)))
        return report


def _of(test_only: bool) -> OfPopulation:
    return OfPopulation(test_only=test_only)


# --- what applications hold: one user's memory


class MemoryStore(
    KnowledgeMethods,
    CommitmentMethods,
    DigestMethods,
    LifecycleMethods,
    OperatingMethods,
    ForgettingMethods,
    UsageMethods,
    TransferMethods,
):
    """One user's memory: encode turns, recall what answers.

    Get one from :func:`engram.open` or :func:`engram.connect`. Safe for use by
    many tasks at once; not for use from several event loops.
    """

    def __init__(
        self,
        engine: MemoryEngine,
        scope: Scope,
        settings: Settings,
        clock: Clock,
        new_id: Callable[[], str],
        *,
        is_closed: Callable[[], bool] | None = None,
    ) -> None:
        self._engine = engine
        self._scope = scope
        self._settings = settings
        self._clock = clock
        self._new_id = new_id
        self._intake = TurnIntake(clock, new_id, max_bytes=settings.max_turn_bytes)
        self._closed = False
        self._parent_is_closed = is_closed or (lambda: False)

    @property
    def scope(self) -> Scope:
        """Whose memory this is."""
        return self._scope

    def for_user(self, user_id: str, *, namespace: str | None = None) -> MemoryStore:
        """The memory of another user, over the same connections; closed when this one is.

        Raises:
            InvalidScope: the user id or namespace has a form that is refused.
        """
        self._check_open()
        scope = Scope.of(namespace or self._scope.namespace, user_id)
        return MemoryStore(
            self._engine,
            scope,
            self._settings,
            self._clock,
            self._new_id,
            is_closed=self._is_closed,
        )

    async def encode(
        self,
        turns: str | Turn | Sequence[str | Turn],
        *,
        session_id: str,
        extract_facts: bool = True,
        is_test: bool = False,
    ) -> Receipt:
        """Keep conversation turns.

        When this returns, the turns are stored verbatim, searchable, and survive
        the death of any process. Facts and negations that patterns find in them
        are stored too; consolidation follows in the background.

        Args:
            turns: One turn or several; a plain string is a turn of the user.
            session_id: The conversation they belong to.
            extract_facts: Whether to look for pattern facts and negations.
            is_test: Keeps the turns, and all drawn from them, out of real answers.

        Raises:
            InvalidTurn: a turn cannot be kept; none of the call was stored, however large.
            InvalidScope: the session id has a form that is refused.
            ConflictingMessage: a message id was used with other content; none of
                the call was stored. A call too large for one update (512 KB or 64
                turns by default) is stored part by part: then the parts before the
                conflict are stored, and nothing after it.
            TemporalUnavailable: no acknowledgement came in time. Sending the same
                turns again is safe if they carry message ids.
        """
        self._check_open()
        check_identifier(session_id, "session id")
        call = EncodeCall(
            turns=self._intake.accept(turns), extract_facts=extract_facts, is_test=is_test
        )
        return await self._engine.encode(self._scope, session_id, call)

    async def recall(
        self,
        query: str,
        *,
        limit: int = 10,
        memory_types: Iterable[MemoryType | str] | MemoryType | str | None = None,
        min_confidence: float | None = None,
        min_selectivity: float | None = None,
        include_sources: bool = False,
        follow_links: bool = False,
        as_of: datetime | None = None,
        valid_at: datetime | None = None,
        include_archived: bool = False,
        include_test: bool = False,
        session_id: str | None = None,
        tags: Sequence[str] | None = None,
        explain: bool = False,
    ) -> Sequence[RecallHit]:
        """The memories that answer ``query``, best first.

        Args:
            query: A question, or a few words.
            limit: How many answers at most.
            memory_types: episodic, factual, semantic, procedural, negation; all if None.
            min_confidence: Leave out conclusions below this composite confidence, 0 to 1.
            min_selectivity: Leave out semantic memories below this selectivity, 0 to 1.
            include_sources: Bring the turns that each answer was concluded from.
            follow_links: Bring also what the answers are linked to.
            as_of: Answer from what was known then, by the conversation's own dates.
            valid_at: Answer with what was true then.
            include_archived: Bring archived memories too.
            include_test: Bring test memories too.
            session_id: Only memories of this session.
            tags: Only memories that carry at least one of these.
            explain: Explain every answer.

        Raises:
            InvalidQuery: an argument is out of range.
        """
        self._check_open()
        request = RecallRequest.of(
            query,
            settings=self._settings,
            limit=limit,
            memory_types=memory_types,
            min_confidence=min_confidence,
            min_selectivity=min_selectivity,
            include_sources=include_sources,
            follow_links=follow_links,
            as_of=as_of,
            valid_at=valid_at,
            include_archived=include_archived,
            include_test=include_test,
            session_id=session_id,
            tags=tags,
            explain=explain,
        )
        return await self._engine.recall(self._scope, request)

    async def recall_at(
        self, query: str, *, as_of: datetime, **options: Any
    ) -> Sequence[RecallHit]:
        """:meth:`recall` with what was known at ``as_of``."""
        return await self.recall(query, as_of=as_of, **options)

    async def context(self, query: str, *, tokens: int = 1000, **options: Any) -> str:
        """What answers ``query``, as a fenced block of text for a prompt; empty if nothing does.

        Every line has a date and a source; what holds now comes first, then what is
        explicitly not so, then turns as they were said. A turn that quotes the block
        teaches Engram nothing.

        Args:
            query: A question, or a few words.
            tokens: The most it may have, estimated as a quarter of its characters.
            options: Those of :meth:`recall`.

        Raises:
            InvalidQuery: an argument is out of range.
        """
        return await context_of(self.recall, query, tokens, options)

    async def get(self, memory_id: str) -> AnyMemory:
        """One memory by id.

        Raises:
            MemoryNotFound: no such memory of this user.
        """
        self._check_open()
        return await self._engine.get(self._scope, memory_id)

    async def list(
        self,
        *,
        memory_types: Iterable[MemoryType | str] | None = None,
        status: MemoryStatus | str | None = None,
        limit: int = 100,
        cursor: str | None = None,
        include_test: bool = False,
    ) -> MemoryPage:
        """A page of memories: type by type, oldest known first.

        Args:
            memory_types: episodic, factual, semantic, procedural, negation; all if None.
            status: active, superseded, archived, expired; any if None.
            limit: How many at most, 1 to 1,000.
            cursor: Of the page before, with the same arguments.
            include_test: List test memories too.

        Raises:
            InvalidQuery: an unknown type or status, a limit out of range, or a
                cursor of another listing.
        """
        self._check_open()
        return await self._engine.list_memories(
            self._scope,
            memory_types=_types(memory_types),
            status=_status(status),
            limit=limit,
            cursor=cursor,
            include_test=include_test,
        )

    async def history(self, memory_id: str) -> Sequence[AnyMemory]:
        """What a memory replaced and what replaced it, oldest first.

        Raises:
            MemoryNotFound: no such memory of this user.
        """
        self._check_open()
        return await self._engine.history(self._scope, memory_id)

    async def stats(self) -> MemoryStats:
        """How much is kept for this user, without test memories; :meth:`status` tells of those."""
        self._check_open()
        return await self._engine.stats(self._scope)

    async def consolidate(
        self, *, test_only: bool = False, dry_run: bool = False
    ) -> ConsolidationReport:
        """Consolidate now, and wait for the report.

        Args:
            test_only: Read test turns only; without it, all others. Test turns are
                consolidated in no other way, and what they say is a test memory too.
            dry_run: Ask no model and write nothing; say how many turns wait.

        Raises:
            TemporalUnavailable: Temporal cannot be reached.
            EngramError: what stopped the pass; what it left is still due.
        """
        self._check_open()
        return await self._engine.consolidate(self._scope, test_only=test_only, dry_run=dry_run)

    async def end_session(self, session_id: str) -> SessionSummary | None:
        """End a session; its consolidation follows in the background. None if it did not run."""
        self._check_open()
        check_identifier(session_id, "session id")
        return await self._engine.end_session(self._scope, session_id)

    async def working_memory(
        self, session_id: str, *, include_test: bool = False
    ) -> Sequence[RememberedTurn]:
        """The recent turns of a running session, oldest first; empty when it does not run.

        Args:
            session_id: The conversation.
            include_test: Bring test turns too.
        """
        self._check_open()
        check_identifier(session_id, "session id")
        return await self._engine.working_memory(self._scope, session_id, include_test=include_test)

    async def _perform(self, operation: Operation[Asked, Answer], asked: Asked) -> Answer:
        self._check_open()
        return await self._engine.perform(self._scope, operation, asked)

    def run_url(self, memory: AnyMemory) -> str | None:
        """Where the Temporal UI shows the run that wrote this memory, when there is a UI."""
        origin = memory.provenance
        if origin.workflow_id is None:
            return None
        return self._engine.run_url(origin.workflow_id, origin.run_id)

    def close(self) -> None:
        """Refuse further use; the context manager that made this store calls it."""
        self._closed = True

    def _is_closed(self) -> bool:
        return self._closed or self._parent_is_closed()

    def _check_open(self) -> None:
        if self._is_closed():
            raise MemoryClosed(
                "This memory store is closed.", hint="Use it inside its `async with` block."
            )


def _types(given: Iterable[MemoryType | str] | None) -> tuple[MemoryType, ...]:
    if given is None:
        return STORED_TYPES
    return tuple(dict.fromkeys(_member(MemoryType, kind, "memory type") for kind in given))


def _status(given: MemoryStatus | str | None) -> MemoryStatus | None:
    return None if given is None else _member(MemoryStatus, given, "status")


def _member(kind: Any, value: object, what: str) -> Any:
    try:
        return kind(value)
    except ValueError as error:
        raise InvalidQuery(
            f"The {what} is unknown.", allowed=", ".join(str(member) for member in kind)
        ) from error
