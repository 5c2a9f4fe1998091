"""The typed methods of a memory store, in groups, each with its twin that waits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

from pydantic import ValidationError

from engram import operations
from engram.client.engine import StoreMethods
from engram.contracts.refusals import typed_refusals
from engram.domain.memories import MemoryStatus, MemoryType, Resolution
from engram.errors import InvalidInput, InvalidQuery
from engram.operations.registry import AboutMemory, Question
from engram.recall.request import names_of, tags_of

if TYPE_CHECKING:
    from engram.consolidation.verify import Verification
    from engram.contracts.lifecycle import DecayReport, PromotionReport
    from engram.contracts.messages import UserUsage
    from engram.contracts.removal import CompactReceipt, ErasureReceipt, ForgetReceipt
    from engram.contracts.reviews import ReviewOutcome
    from engram.domain.memories import AnyMemory, MemoryForm, SemanticMemory
    from engram.operations.admin import (
        EnergyReport,
        HealthReport,
        Inspection,
        OfPopulation,
        PromotionsReport,
        RepairReport,
        StatusReport,
        ValidationReport,
    )
    from engram.operations.digests import Guidelines, MemoryBox, Profile, Topic
    from engram.operations.memories import Acted, ActOn
    from engram.operations.reviews import Review
    from engram.operations.trials import ScenarioReport
    from engram.recall.context import Briefed
    from engram.transfer.memories import ImportedMemory, ImportReport

# --- what methods make requests of


def about(memory_id: str) -> AboutMemory:
    """A question about a memory.

    Raises:
        MemoryNotFound: it is no text that an id could be.
    """
    try:
        return AboutMemory(memory_id=memory_id)
    except ValidationError:
        from engram.storage.updates import no_memory  # noqa: PLC0415 - the store's; seldom needed

        raise no_memory(str(memory_id)) from None


def _acting_on(memory_id: str, dry_run: bool, test_only: bool) -> ActOn:
    named = about(memory_id).memory_id
    with typed_refusals():
        return operations.memories.ActOn(memory_id=named, dry_run=dry_run, test_only=test_only)


def type_members(
    given: Iterable[MemoryType | str] | MemoryType | str | None,
) -> tuple[MemoryType, ...] | None:
    """Types by their names; raises InvalidQuery for others."""
    if given is None:
        return None
    names = (given,) if isinstance(given, str) else given
    return tuple(dict.fromkeys(_member(MemoryType, kind, "memory type") for kind in names))


def status_member(given: MemoryStatus | str | None) -> MemoryStatus | None:
    """A status by its name; raises InvalidQuery for others."""
    return None if given is None else _member(MemoryStatus, given, "status")


def _member(kind: Any, value: object, what: str) -> Any:
    try:
        return kind(value)
    except ValueError:
        # Not from it: its text would repeat what was given.
        raise InvalidQuery(
            f"The {what} is unknown.", allowed=", ".join(str(member) for member in kind)
        ) from None


# --- what a memory store tells about its conclusions


class KnowledgeMethods(StoreMethods):
    """Checking conclusions, and what is known about whom."""

    async def verify(self, memory_id: str) -> Verification:
        """Check a memory against the turns it was drawn from.

        Args:
            memory_id: Of a memory of this user.

        Returns:
            Whether its sources are there and say it, and what does not fit.

        Raises:
            MemoryNotFound: no such memory of this user.
        """
        return await self._call(operations.memories.VERIFY, about(memory_id))

    async def count(
        self,
        *,
        memory_types: Iterable[MemoryType | str] | MemoryType | str | None = None,
        status: MemoryStatus | str | None = None,
        session_id: str | None = None,
        tags: Sequence[str] | None = None,
        include_test: bool = False,
        without_tags: Sequence[str] | None = None,
        forms: Iterable[MemoryForm | str] | MemoryForm | str | None = None,
        roles: Iterable[str] | str | None = None,
        run_id: str | None = None,
    ) -> int:
        """How many memories there are for which all of this holds; reads none of them.

        Args:
            memory_types: episodic, factual, semantic, procedural, negation; all if None.
            status: active, superseded, archived, expired; any if None.
            session_id: Only memories of this session.
            tags: Only memories that carry at least one of these.
            include_test: Count test memories too.
            without_tags: Leave out memories that carry any of these.
            forms: Of semantic memories, only these forms; all if None.
            roles: Of turns, only those of these roles; all if None.
            run_id: Only what this run of a workflow wrote first; see :meth:`list`.

        Returns:
            0 or more.

        Raises:
            InvalidQuery: an unknown type, status, form or role, or tags or a run's id that are
                none.
            InvalidScope: the session id has a form that is refused.
        """
        with typed_refusals():
            asked = operations.memories.CountMemories(
                memory_types=type_members(memory_types),
                status=status_member(status),
                session_id=session_id,
                tags=tags_of(tags),
                include_test=include_test,
                without_tags=tags_of(without_tags),
                forms=names_of(forms),
                roles=names_of(roles),
                run_id=run_id,
            )
        return await self._call(operations.memories.COUNT, asked)


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
            InvalidInput: it is no commitment, or tells how one ended; or no such resolution.
        """
        if resolution not in [*Resolution]:
            raise InvalidInput(
                "A commitment cannot be resolved like this.", allowed=", ".join(Resolution)
            )
        with typed_refusals():
            asked = operations.memories.Resolve(
                memory_id=memory_id, resolution=Resolution(resolution)
            )
        return await self._call(operations.memories.RESOLVE, asked)


# --- what a memory store tells about whom and what it knows


class DigestMethods(StoreMethods):
    """Profiles, topics, boxes and guidelines, as the last consolidation left them."""

    async def profile(self, name: str | None = None, *, as_of: datetime | None = None) -> Profile:
        """Say what is known about somebody or something, in few lines.

        Args:
            name: Any name of a person, place or project; None for the user's own profile:
                whatever is known of them in general, health first, and who their people are.
            as_of: The profile as it was then, by the conversation's own dates.

        Returns:
            The profile with its lines, each with the memories it rests on; without what was
            denied since. The user's own is empty while nothing is known.

        Raises:
            MemoryNotFound: nobody and nothing of that name has a profile.
            InvalidQuery: several do.
        """
        with typed_refusals():
            asked = operations.digests.AboutSomebody(name=name, as_of=as_of)
        return await self._call(operations.digests.PROFILE, asked)

    async def profiles(self) -> Sequence[Profile]:
        """List every profile that tells something, the user's first, then in order of names.

        Returns:
            At most 1,000.

        Raises:
            StorageUnavailable: the store does not answer; asking again is safe.
        """
        return await self._call(operations.digests.PROFILES, Question())

    async def topics(self) -> Sequence[Topic]:
        """List every topic with the memories under it.

        Returns:
            The largest first.

        Raises:
            StorageUnavailable: the store does not answer; asking again is safe.
        """
        return await self._call(operations.digests.TOPICS, Question())

    async def boxes(self, session_id: str | None = None) -> Sequence[MemoryBox]:
        """List the runs of turns on one topic, in order of time.

        Args:
            session_id: Only those of this conversation.

        Returns:
            At most 1,000 boxes that are stored, oldest first, and the runs that are not yet: of
            the conversation, or of the 20 that were last spoken in. The last run of a
            conversation is open (``sealed`` is None) until something seals it.

        Raises:
            StorageUnavailable: the store does not answer; asking again is safe.
        """
        with typed_refusals():
            asked = operations.digests.AboutBoxes(session_id=session_id)
        return await self._call(operations.digests.BOXES, asked)

    async def guidelines(self) -> Guidelines:
        """Say what consolidation learnt from what became of memories; extractions read it.

        Returns:
            The guidelines of each category with the cases they rest on.

        Raises:
            StorageUnavailable: the store does not answer; asking again is safe.
        """
        return await self._call(operations.digests.GUIDELINES, Question())


# --- how a memory store forgets, because its user wants it to


class ForgettingMethods(StoreMethods):
    """Removing memories for good."""

    async def forget(self, memory_id: str) -> ForgetReceipt:
        """Forget one memory for good, and whatever was derived only from it.

        Forgetting a turn takes the conclusions that no other turn supports; the
        others stay, without it among their sources. Forgetting a habit takes the knowledge
        it was made of, and the other way round. Profiles, topics and boxes
        that named what is gone are composed again. What a forgotten conclusion
        had replaced holds again. Temporal keeps the words of past runs until
        their retention ends; :meth:`erase` deletes those too.

        Args:
            memory_id: Of a memory of this user.

        Returns:
            How many memories went, by type, how many stay without it among their sources,
            and how many digests were composed anew; numbers, no content.

        Raises:
            MemoryNotFound: no such memory of this user.
            TemporalUnavailable: the workflow could not be asked; a started one goes
                on, and calling again waits for the same.
        """
        return await self._call(operations.removal.FORGET, about(memory_id))

    async def erase(self) -> ErasureReceipt:
        """Erase everything of this user: memories, running workflows, histories.

        Ends when every collection counts zero. From then on nothing is written that
        was begun before: it is refused with :class:`engram.errors.UserErased`. What the
        user says afterwards is kept. Behind the receipt, histories are deleted and, in the
        embedded mode, all files rewritten, so that none holds a word of the user;
        :meth:`erased` waits for that. Where an erasure of the user runs already, another
        follows it, which takes along what was said meanwhile.

        Returns:
            What was deleted by type, and what still remains.

        Raises:
            TemporalUnavailable: the workflow could not be started or asked; a
                started one goes on, and calling again waits for it as well.
        """
        return await self._call(operations.removal.ERASE, operations.removal.EraseUser())

    async def erased(self) -> ErasureReceipt | None:
        """Wait until histories and files are scrubbed behind the last :meth:`erase`.

        Takes some seconds in the embedded mode, and with other Temporal servers as long as they
        take to delete histories, up to a minute or so; others go on meanwhile.

        Returns:
            The whole receipt: which histories were deleted, which files were rewritten, and
            what may remain elsewhere. None if Temporal knows of no erasure of this user.

        Raises:
            TemporalUnavailable: the workflow could not be asked; it goes on.
        """
        return await self._call(operations.removal.ERASED, operations.removal.AboutErasure())

    async def compact(self) -> CompactReceipt:
        """Rewrite the files of the data folder, whoever's memories they hold.

        Deleting leaves bytes in the files; this does not. Everybody goes on
        meanwhile, Temporal pauses for a moment. For operators, in the embedded mode.

        Returns:
            How many memories the store holds, what was written anew, and what could not be.

        Raises:
            InvalidQuery: the files belong to servers.
        """
        return await self._call(operations.removal.COMPACT, operations.removal.Compact())


# --- what a memory store tells about its costs


class UsageMethods(StoreMethods):
    """What language models were asked for this user."""

    async def usage(self) -> UserUsage:
        """Sum up what models were asked for this user, failed requests included.

        It sums this user's consolidations that Temporal still knows; a pass that is
        going on is counted when it ends.

        Returns:
            Requests, tokens, cost in US dollars and attempts, in all and by model.

        Raises:
            TemporalUnavailable: Temporal cannot be reached.
        """
        return await self._call(operations.memories.USAGE, Question())


# --- how a memory store lets memories harden and fade


class LifecycleMethods(StoreMethods):
    """What the user says of memories, and passes over them. All may be called again.

    What acts on one memory takes ``dry_run`` (write nothing; say what would change)
    and ``test_only`` (refuse it, with InvalidInput, for what is no test memory).
    """

    async def confirm(
        self, memory_id: str, *, dry_run: bool = False, test_only: bool = False
    ) -> Acted:
        """Note that the user says it is so: it counts for more, and comes back if it had left.

        What contradicted it is refuted with that: it leaves the answers, and stays readable.

        Args:
            memory_id: Of a memory of this user.
            dry_run: Write nothing; say what would change.
            test_only: Refuse, with InvalidInput, what is no test memory.

        Returns:
            The memory as it is now and the steps that this made; none if it was so already.

        Raises:
            MemoryNotFound: no such memory of this user.
            InvalidInput: it is a turn, which was said whatever one thinks of it, or a profile,
                topic, box or guideline, which follows other memories; or, with ``test_only``, no
                test memory.
        """
        return await self._act("confirm", memory_id, dry_run, test_only)

    async def dispute(
        self, memory_id: str, *, dry_run: bool = False, test_only: bool = False
    ) -> Acted:
        """Note that the user says it is not so: it leaves the answers, and stays readable.

        What it contradicted is in dispute no more. :meth:`confirm` takes it back; until a
        review of it ends, :meth:`reviews` lists it.

        Args:
            memory_id: Of a memory of this user.
            dry_run: Write nothing; say what would change.
            test_only: Refuse, with InvalidInput, what is no test memory.

        Returns:
            The memory as it is now and the steps that this made; none if it was so already.

        Raises:
            MemoryNotFound: no such memory of this user.
            InvalidInput: it is a turn, which was said whatever one thinks of it, or a profile,
                topic, box or guideline, which follows other memories; or, with ``test_only``, no
                test memory.
        """
        return await self._act("dispute", memory_id, dry_run, test_only)

    async def reviews(self) -> Sequence[Review]:
        """Disputes that wait for a person to say what holds, the longest first.

        A new one is listed a moment after it began.

        Returns:
            Each with its memories, what can be answered, and until when it waits.

        Raises:
            TemporalUnavailable: Temporal cannot be reached.
        """
        return await self._call(operations.reviews.REVIEWS, Question())

    async def review(self, review_id: str, *, keep: str) -> ReviewOutcome:
        """Say what holds of memories that contradict each other; it is written on both ends.

        Args:
            review_id: As :meth:`reviews` gives it.
            keep: Id of the memory that holds; ``newest``; ``both``, if they hold side by side;
                or ``none``. The others are refuted: they leave the answers, and stay readable.

        Returns:
            How the review ended; ``settled`` if something else had settled it before.

        Raises:
            ReviewNotFound: no such review waits.
            InvalidInput: ``keep`` is no answer to it.
            TemporalUnavailable: Temporal cannot be reached.
        """
        with typed_refusals():
            asked = operations.reviews.ReviewAnswer(review_id=review_id, keep=keep)
        return await self._call(operations.reviews.REVIEW, asked)

    async def protect(
        self, memory_id: str, *, dry_run: bool = False, test_only: bool = False
    ) -> Acted:
        """Let no rule take a memory away any more; new knowledge still replaces it.

        Args:
            memory_id: Of a memory of this user.
            dry_run: Write nothing; say what would change.
            test_only: Refuse, with InvalidInput, what is no test memory.

        Returns:
            The memory as it is now and the steps that this made; none if it was so already.

        Raises:
            MemoryNotFound: no such memory of this user.
            InvalidInput: ``test_only``, and it is no test memory.
        """
        return await self._act("protect", memory_id, dry_run, test_only)

    async def unprotect(
        self, memory_id: str, *, dry_run: bool = False, test_only: bool = False
    ) -> Acted:
        """Let rules apply to a memory again, from when it was last used.

        Args:
            memory_id: Of a memory of this user.
            dry_run: Write nothing; say what would change.
            test_only: Refuse, with InvalidInput, what is no test memory.

        Returns:
            The memory as it is now and the steps that this made; none if it was so already.

        Raises:
            MemoryNotFound: no such memory of this user.
            InvalidInput: ``test_only``, and it is no test memory.
        """
        return await self._act("unprotect", memory_id, dry_run, test_only)

    async def demote(
        self, memory_id: str, *, dry_run: bool = False, test_only: bool = False
    ) -> Acted:
        """Put a memory aside: archived, it answers only where archived ones are asked for.

        Nothing happens to what is protected or has left. :meth:`confirm` brings a
        conclusion back, :meth:`protect` anything.

        Args:
            memory_id: Of a memory of this user.
            dry_run: Write nothing; say what would change.
            test_only: Refuse, with InvalidInput, what is no test memory.

        Returns:
            The memory as it is now and the steps that this made; none if it was so already.

        Raises:
            MemoryNotFound: no such memory of this user.
            InvalidInput: it is a profile, topic, box or guideline, which follows other
                memories; or, with ``test_only``, no test memory.
        """
        return await self._act("demote", memory_id, dry_run, test_only)

    async def force_promote(
        self, memory_id: str, *, dry_run: bool = False, test_only: bool = False
    ) -> Acted:
        """Promote by hand: make a habit of knowledge, lift anything else one tier.

        Nothing happens to what was promoted already, or stands at the top.

        Args:
            memory_id: Of a memory of this user.
            dry_run: Write nothing; say what would change.
            test_only: Refuse, with InvalidInput, what is no test memory.

        Returns:
            The memory as it is now and the steps that this made; none if it was so already.

        Raises:
            MemoryNotFound: no such memory of this user.
            InvalidInput: ``test_only``, and it is no test memory.
        """
        return await self._act("force-promote", memory_id, dry_run, test_only)

    async def decay(
        self, *, dry_run: bool = False, test_only: bool = False, at: datetime | None = None
    ) -> DecayReport:
        """Run a decay pass now, and wait for its report.

        Args:
            dry_run: Write nothing; say what would happen.
            test_only: Look at test memories only; without it, at all others.
            at: Judge as of then, with ``dry_run`` only: what will have happened by then.

        Returns:
            What would change or has changed, memory by memory.

        Raises:
            InvalidQuery: ``at`` without ``dry_run``, or without timezone.
            TemporalUnavailable: Temporal cannot be reached.
        """
        with typed_refusals():
            asked = operations.lifecycle.RunDecay(dry_run=dry_run, test_only=test_only, at=at)
        return await self._call(operations.lifecycle.DECAY, asked)

    async def promote(self, *, dry_run: bool = False, test_only: bool = False) -> PromotionReport:
        """Run a promotion pass now, and wait for its report.

        Args:
            dry_run: Write nothing; say what would happen.
            test_only: Look at test memories only; without it, at all others.

        Returns:
            What was looked at and what was promoted.

        Raises:
            TemporalUnavailable: Temporal cannot be reached.
        """
        with typed_refusals():
            asked = operations.lifecycle.RunPass(dry_run=dry_run, test_only=test_only)
        return await self._call(operations.lifecycle.PROMOTE, asked)

    async def briefing(self, *, limit: int = 10, include_test: bool = False) -> Sequence[Briefed]:
        """List what matters most about this user, for the start of a conversation.

        Conclusions that hold now, by salience, confidence and use, however long ago.

        Args:
            limit: How many at most, 1 to 200.
            include_test: Whether test memories count.

        Returns:
            The best first, each with its score from 0 to 1 and the reasons.

        Raises:
            InvalidQuery: the limit is out of range.
        """
        with typed_refusals():
            asked = operations.lifecycle.Brief(limit=limit, include_test=include_test)
        return await self._call(operations.lifecycle.BRIEFING, asked)

    async def _act(self, name: str, memory_id: str, dry_run: bool, test_only: bool) -> Acted:
        asked = _acting_on(memory_id, dry_run, test_only)
        return await self._call(operations.lifecycle.ACTIONS[name].operation, asked)


# --- what a memory store offers to whoever operates it

_LISTED_AT_ONCE = 200


class OperatingMethods(StoreMethods):
    """Looking at memories' lives, trying out what would happen, mending, importing."""

    async def status(self, *, test_only: bool = False) -> StatusReport:
        """Say how memories stand, from counts alone.

        Args:
            test_only: Count test memories only; without it, all others.

        Returns:
            Counts by type and state, the decay policy, and how many turns wait.

        Raises:
            StorageUnavailable: the store does not answer; asking again is safe.
        """
        return await self._call(operations.admin.STATUS, _of(test_only))

    async def energy(self, *, test_only: bool = False) -> EnergyReport:
        """Say how lively active memories are, by tier, and which leave first.

        Reads all of them: the cost grows with what is stored.

        Args:
            test_only: Look at test memories only; without it, at all others.

        Returns:
            The policy, the energies by tier, and the memories that leave first.

        Raises:
            StorageUnavailable: the store does not answer; asking again is safe.
        """
        return await self._call(operations.admin.ENERGY, _of(test_only))

    async def promotions(self, *, test_only: bool = False) -> PromotionsReport:
        """Say what was promoted, and what lacks at most one condition.

        Reads all memories: the cost grows with what is stored.

        Args:
            test_only: Look at test memories only; without it, at all others.

        Returns:
            The habits with their origins, and the candidates with what they lack.

        Raises:
            StorageUnavailable: the store does not answer; asking again is safe.
        """
        return await self._call(operations.admin.PROMOTIONS, _of(test_only))

    async def health(self, *, test_only: bool = False) -> HealthReport:
        """Diagnose what is not well with this user's memory.

        Wrong energies, orphans, stuck promotion or decay. Reads all memories: the cost
        grows with what is stored.

        Args:
            test_only: Look at test memories only; without it, at all others.

        Returns:
            Diagnoses with what to do about each; none if all is well.

        Raises:
            StorageUnavailable: the store does not answer; asking again is safe.
        """
        return await self._call(operations.admin.HEALTH, _of(test_only))

    async def inspect(self, memory_id: str) -> Inspection:
        """Gather everything about one memory's life.

        Args:
            memory_id: Of a memory of this user.

        Returns:
            The memory with its states, values, dates of review, and links.

        Raises:
            MemoryNotFound: no such memory of this user.
        """
        return await self._call(operations.admin.INSPECT, about(memory_id))

    async def validate(self, *, test_only: bool = False) -> ValidationReport:
        """Find orphans, broken and one-way links, duplicates and bad fields.

        Reads all memories: the cost grows with what is stored. What it finds is looked at again
        after half a second and after two more, for work in the background may be half done.

        Args:
            test_only: Look at test memories only; without it, at all others.

        Returns:
            One finding for each fault, with the memory's id; :meth:`repair` mends them.

        Raises:
            StorageUnavailable: the store does not answer; asking again is safe.
        """
        return await self._call(operations.admin.VALIDATE, _of(test_only))

    async def repair(
        self, memory_id: str, *, dry_run: bool = False, test_only: bool = False
    ) -> RepairReport:
        """Mend what :meth:`validate` finds about one memory; again, it finds nothing to do.

        Args:
            memory_id: Of a memory of this user.
            dry_run: Write nothing; say what is wrong.
            test_only: Refuse it for what is no test memory.

        Returns:
            What was wrong, and what was done about it.

        Raises:
            MemoryNotFound: no such memory of this user.
            InvalidInput: ``test_only``, and it is no test memory.
        """
        asked = _acting_on(memory_id, dry_run, test_only)
        return await self._call(operations.admin.REPAIR, asked)

    async def create_test(
        self,
        content: str,
        *,
        conclusion: bool = False,
        age_days: float = 0.0,
        dry_run: bool = False,
    ) -> AnyMemory:
        """Store a test memory, which is in no recall and no pass unless asked for.

        Args:
            content: Its words.
            conclusion: Whether it is knowledge; otherwise it is a turn.
            age_days: How long ago it was stored, 0 to 36,500 days.
            dry_run: Store nothing; return what would be stored.

        Returns:
            The memory.

        Raises:
            InvalidInput: the age is out of range.
            InvalidTurn: the words cannot be kept.
        """
        with typed_refusals():
            asked = operations.trials.CreateTest(
                content=content, conclusion=conclusion, age_days=age_days, dry_run=dry_run
            )
        return (await self._call(operations.trials.TEST_CREATE, asked)).memory

    async def boost_test(
        self, memory_id: str, *, recalls: int = 1, dry_run: bool = False
    ) -> AnyMemory:
        """Recall a test memory so many times.

        Args:
            memory_id: Of a test memory of this user.
            recalls: How often, 1 or more.
            dry_run: Write nothing; return what it would be then.

        Returns:
            The memory as it is now.

        Raises:
            MemoryNotFound: no such memory of this user.
            InvalidInput: it is no test memory, or the number is out of range.
        """
        with typed_refusals():
            asked = operations.trials.BoostTest(
                memory_id=memory_id, recalls=recalls, dry_run=dry_run
            )
        return (await self._call(operations.trials.TEST_BOOST, asked)).memory

    async def list_tests(self) -> Sequence[AnyMemory]:
        """List the test memories of this user.

        Returns:
            At most 200 of each type, oldest known first.

        Raises:
            StorageUnavailable: the store does not answer; asking again is safe.
        """
        return await self._call(operations.trials.TEST_LIST, Question())

    async def delete_tests(
        self, memory_ids: Sequence[str] | None = None, *, dry_run: bool = False
    ) -> int:
        """Remove these test memories, or all of this user.

        Args:
            memory_ids: Which; all if None.
            dry_run: Remove nothing; only count them.

        Returns:
            How many were removed, or would be.

        Raises:
            InvalidInput: one of them is no test memory; none is removed.
        """
        with typed_refusals():
            ids = None if memory_ids is None else tuple(memory_ids)
            asked = operations.trials.DeleteTests(memory_ids=ids, dry_run=dry_run)
        return await self._call(operations.trials.TEST_DELETE, asked)

    async def play_scenario(self, name: str, *, dry_run: bool = False) -> ScenarioReport:
        """Play a scenario with test memories of its own, and remove them afterwards.

        Args:
            name: One of fade, stay, use, habit, apart.
            dry_run: Only tell what playing it does.

        Returns:
            What was done, step by step, and whether it ended as it should.

        Raises:
            InvalidInput: there is no scenario of this name.
        """
        if name not in [*operations.trials.Scenario]:
            raise InvalidInput(
                "There is no scenario of this name.", allowed=", ".join(operations.trials.Scenario)
            )
        with typed_refusals():
            asked = operations.trials.PlayScenario(
                name=operations.trials.Scenario(name), dry_run=dry_run
            )
        return await self._call(operations.trials.TEST_SCENARIO, asked)

    async def import_memories(self, memories: Sequence[ImportedMemory]) -> ImportReport:
        """Store memories from elsewhere: long-term, energy 10, recalled once.

        Importing them again stores nothing new.

        Args:
            memories: With the ids and dates that they had there.

        Returns:
            Which were stored, and which were there already.

        Raises:
            InvalidTurn: one of them cannot be kept.
        """
        from engram.transfer.memories import ImportReport  # noqa: PLC0415 - only what is used loads

        report, every = ImportReport(), tuple(memories)
        for start in range(0, len(every), _LISTED_AT_ONCE):
            part = every[start : start + _LISTED_AT_ONCE]
            with typed_refusals():
                asked = operations.trials.Import(memories=part)
            report = report.plus(await self._call(operations.trials.IMPORT, asked))
        return report


def _of(test_only: bool) -> OfPopulation:
    with typed_refusals():
        return operations.admin.OfPopulation(test_only=test_only)
