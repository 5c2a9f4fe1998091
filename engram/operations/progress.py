"""Staged acknowledgement: waiting until turns are extracted, or linked.

Nothing is kept for it. How far a turn is can be read off the turn and its user's consolidation,
by any process and at any time, so turns that nobody waits for cost nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import Annotated, Final

from pydantic import AfterValidator

from engram.consolidation.amendments import has_source
from engram.contracts.consolidation import LINKS_AWAITED, READING_AWAITED
from engram.contracts.messages import Population
from engram.contracts.session import ConsolidationRequest
from engram.domain.access import Access
from engram.domain.memories import DerivedMemory, Episode, MemoryType
from engram.domain.scope import Scope
from engram.errors import InvalidQuery, MemoryNotFound, StageNotReached
from engram.giving_way import wanted
from engram.operations.registry import Answered, Http, Intake, Operation, Question, handles
from engram.ports import Clock, MemoryRepository
from engram.storage.updates import episodes_by_id
from engram.temporal.gateway import WorkflowGateway

# --- what is waited for, and where turns stand


class Stage(StrEnum):
    """How far consolidation has come with a turn."""

    STORED = "stored"
    """Kept word for word, and searchable; a receipt says as much."""
    EXTRACTED = "extracted"
    """Read: what is concluded from it is stored as well, and what that replaces is retired."""
    LINKED = "linked"
    """What is concluded from it was compared with what it resembles, and linked."""


_FIRST_PAUSE: Final = 0.1
_LONGEST_PAUSE: Final = 2.0
LONGEST_WAIT: Final = 30.0
"""Seconds for which one request is held open."""


def _some(ids: tuple[str, ...]) -> tuple[str, ...]:
    if not ids:
        raise InvalidQuery("No turn is waited for.", allowed="at least one id of a turn")
    return ids


def _wait(seconds: float) -> float:
    if not 0.0 <= seconds <= LONGEST_WAIT:
        raise InvalidQuery(
            "The time to wait is out of range.", allowed=f"0 to {LONGEST_WAIT:g} seconds"
        )
    return seconds


class WaitUntil(Question):
    """Turns of which somebody waits for what becomes of them.

    Attributes:
        episode_ids: As receipts name them; those of several receipts may be mixed.
        stage: What is waited for.
        wait: How long at most, 0 to 30 seconds; 0 for where they stand now.
        ask: Whether to have them consolidated now, rather than when it would be time.
    """

    episode_ids: Annotated[tuple[str, ...], AfterValidator(_some)]
    stage: Stage = Stage.LINKED
    wait: Annotated[float, AfterValidator(_wait)] = 0.0
    ask: bool = True


class TurnProgress(Answered):
    """Where turns stand.

    Attributes:
        stage: What was waited for.
        reached: Whether all of them are as far as that, the forgotten ones left aside.
        turns: How many were asked about.
        stored: Of these, those that are there.
        extracted: Of these, those that were read.
        linked: Of these, those whose conclusions were linked, or given up by linking; None
            until all are read, or where nobody asked for it.
        refused: Turns that consolidation leaves out for now, because reading them failed for
            their own sake; waiting does not help them.
        forgotten: Turns that are not there: forgotten, or never stored.
    """

    stage: Stage
    reached: bool
    turns: int
    stored: int
    extracted: int
    linked: int | None = None
    refused: int = 0
    forgotten: int = 0

    @property
    def may_come(self) -> bool:
        """Whether waiting longer can bring more: reading what is not left out, or links."""
        reading = self.extracted + self.refused < self.stored
        return not self.reached and (reading or self.linked is not None)


def stage_of(name: Stage | str) -> Stage:
    """A stage by its name.

    Raises:
        InvalidQuery: there is none of that name.
    """
    try:
        return Stage(name)
    except ValueError:
        # Not from it: its text would repeat what was given.
        raise InvalidQuery("The stage is unknown.", allowed=", ".join(Stage)) from None


def not_reached(progress: TurnProgress) -> StageNotReached:
    """The error of who waited in vain."""
    left_out = f"; consolidation left {progress.refused} out" if progress.refused else ""
    return StageNotReached(
        f"Not all {progress.stored} turns are {progress.stage} yet: {progress.extracted} are "
        f"extracted{left_out}.",
        hint="They are stored, and waiting for them again is safe; `engram doctor` says whether "
        "a worker runs.",
        details=progress.model_dump(mode="json"),
    )


def _awaitable(asked: WaitUntil, intake: Intake) -> WaitUntil:
    most = intake.settings.max_turns_per_call
    if len(asked.episode_ids) > most:
        raise InvalidQuery("Too many turns are waited for.", allowed=f"up to {most} at once")
    return asked


WAIT_UNTIL: Final = Operation(
    "wait-until",
    WaitUntil,
    TurnProgress,
    "Held open until the turns are as far, or the time is over; then it says where they stand.",
    access=Access.WRITE,
    http=Http(path="turns/progress", summary="Wait for turns to be consolidated", tag="memory"),
    accept=_awaitable,
)

# --- who looks


class ProgressHandlers:
    """Tells how far consolidation has come with turns.

    Args:
        gateway: Reaches the workflows.
        repository: Where turns and what is concluded from them are looked up.
        clock: The present.
    """

    def __init__(
        self, gateway: WorkflowGateway, repository: MemoryRepository, clock: Clock
    ) -> None:
        self._gateway = gateway
        self._repository = repository
        self._clock = clock

    @handles(WAIT_UNTIL)
    async def wait_until(self, scope: Scope, asked: WaitUntil) -> TurnProgress:
        """Wait until turns are as far; looks again and again, less and less often.

        Raises:
            MemoryNotFound: none of the turns is there, now that it is asked.
            TemporalUnavailable: consolidation could not be asked for.
        """
        found = await self._progress(scope, asked)
        if not found.stored:
            raise MemoryNotFound(
                "None of these turns is there: they were forgotten, or never stored for this user.",
                hint="Ids of turns come from the receipt of encoding them.",
            )
        if found.reached or not (asked.ask or asked.wait):
            return found
        if asked.ask:
            await self._ask(scope, asked)
        with contextlib.suppress(TimeoutError), wanted():
            async with asyncio.timeout(asked.wait):
                for pause in _pauses():
                    found = await self._progress(scope, asked)
                    if not found.may_come:
                        break
                    await asyncio.sleep(pause)
        return found

    async def _ask(self, scope: Scope, asked: WaitUntil) -> None:
        """Have what is not read yet consolidated, by the pass for its kind of turns."""
        reason = LINKS_AWAITED if asked.stage is Stage.LINKED else READING_AWAITED
        turns = await episodes_by_id(self._repository, scope, asked.episode_ids, fresh=True)
        for population in {_population_of(turn) for turn in turns.values()}:
            request = ConsolidationRequest(reason=reason, population=population)
            await self._gateway.request_consolidation(scope, request)

    async def _progress(self, scope: Scope, asked: WaitUntil) -> TurnProgress:
        wanted = set(asked.episode_ids)
        turns = await episodes_by_id(self._repository, scope, wanted, fresh=True)
        read = [turn for turn in turns.values() if turn.consolidated_at is not None]
        now = self._clock()
        refused = sum(
            turn.unread is not None and turn.unread.left_out(now)
            for turn in turns.values()
            if turn.consolidated_at is None
        )
        linked: int | None = None
        if asked.stage is Stage.LINKED and len(read) == len(turns):
            # After the marks were seen: the workflow knows of what rests on them, or names them.
            linked = len(read) - len(await self._unlinked(scope, read))
        far = {Stage.STORED: len(turns), Stage.EXTRACTED: len(read), Stage.LINKED: linked}
        return TurnProgress(
            stage=asked.stage,
            reached=far[asked.stage] == len(turns),
            turns=len(wanted),
            stored=len(turns),
            extracted=len(read),
            linked=linked,
            refused=refused,
            forgotten=len(wanted) - len(turns),
        )

    async def _unlinked(self, scope: Scope, turns: Sequence[Episode]) -> set[str]:
        """Those of the turns on which something rests, or may rest, that is to be linked yet."""
        waiting: set[str] = set()
        for population in {_population_of(turn) for turn in turns}:
            waiting |= await self._gateway.unlinked(scope, population)
        found = await self._repository.get(scope, waiting, [MemoryType.SEMANTIC], fresh=True)
        return {
            turn.id
            for turn in turns
            for memory in found.values()
            if isinstance(memory, DerivedMemory) and has_source(memory, turn.id)
        } | {turn.id for turn in turns if turn.id in waiting}


def _pauses() -> Iterator[float]:
    """Seconds between looks: twice as long each time. Nothing failed, so nothing is retried."""
    pause = _FIRST_PAUSE
    while True:
        yield pause
        pause = min(2 * pause, _LONGEST_PAUSE)


def _population_of(turn: Episode) -> Population:
    return Population.TEST if turn.is_test else Population.REAL
