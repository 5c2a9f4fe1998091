"""What a memory store offers to whoever operates it."""

from __future__ import annotations

from collections.abc import Sequence

from engram.client.facade.base import StoreMethods
from engram.client.operations import inspection, trials
from engram.client.operations.acting import ActOn
from engram.client.operations.inspection_answers import (
    EnergyReport,
    HealthReport,
    Inspection,
    PromotionsReport,
    RepairReport,
    StatusReport,
    ValidationReport,
)
from engram.client.operations.operation import AboutMemory, Question
from engram.client.operations.scenarios import Scenario, ScenarioReport
from engram.domain.memories import AnyMemory
from engram.errors import InvalidInput
from engram.writing.imports import ImportedMemory, ImportReport

_AT_ONCE = 200


class OperatingMethods(StoreMethods):
    """Looking at memories' lives, trying out what would happen, mending, importing."""

    async def status(self, *, test_only: bool = False) -> StatusReport:
        """How memories stand, from counts alone; test memories only if asked for."""
        return await self._perform(inspection.STATUS, _of(test_only))

    async def energy(self, *, test_only: bool = False) -> EnergyReport:
        """How lively active memories are, by tier, and which fade first. Reads all of them."""
        return await self._perform(inspection.ENERGY, _of(test_only))

    async def promotions(self, *, test_only: bool = False) -> PromotionsReport:
        """What was promoted, and what lacks at most one condition. Reads all memories."""
        return await self._perform(inspection.PROMOTIONS, _of(test_only))

    async def health(self, *, test_only: bool = False) -> HealthReport:
        """What is not well: wrong energies, orphans, promotion, decay. Reads all memories."""
        return await self._perform(inspection.HEALTH, _of(test_only))

    async def inspect(self, memory_id: str) -> Inspection:
        """Everything about one memory's life.

        Raises:
            MemoryNotFound: no such memory of this user.
        """
        return await self._perform(inspection.INSPECT, AboutMemory(memory_id=memory_id))

    async def validate(self, *, test_only: bool = False) -> ValidationReport:
        """Orphans, broken and one-way links, duplicates, bad fields. Reads all memories."""
        return await self._perform(inspection.VALIDATE, _of(test_only))

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
        return await self._perform(inspection.REPAIR, asked)

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
        asked = trials.CreateTest(
            content=content, conclusion=conclusion, age_days=age_days, dry_run=dry_run
        )
        return (await self._perform(trials.TEST_CREATE, asked)).memory

    async def boost_test(
        self, memory_id: str, *, recalls: int = 1, dry_run: bool = False
    ) -> AnyMemory:
        """Recall a test memory so many times; in a dry run, only say what it would be then.

        Raises:
            MemoryNotFound: no such memory of this user.
            InvalidInput: it is no test memory.
        """
        asked = trials.BoostTest(memory_id=memory_id, recalls=recalls, dry_run=dry_run)
        return (await self._perform(trials.TEST_BOOST, asked)).memory

    async def list_tests(self) -> Sequence[AnyMemory]:
        """Test memories, 200 at most."""
        return await self._perform(trials.TEST_LIST, Question())

    async def delete_tests(
        self, memory_ids: Sequence[str] | None = None, *, dry_run: bool = False
    ) -> int:
        """Remove these test memories, or all; how many. In a dry run, only count them.

        Raises:
            InvalidInput: one of them is no test memory; none is removed.
        """
        ids = None if memory_ids is None else tuple(memory_ids)
        asked = trials.DeleteTests(memory_ids=ids, dry_run=dry_run)
        return await self._perform(trials.TEST_DELETE, asked)

    async def play_scenario(self, name: str, *, dry_run: bool = False) -> ScenarioReport:
        """Play a scenario with test memories, and remove them: fade, stay, use, habit, apart.

        In a dry run, only tell what playing it does.

        Raises:
            InvalidInput: there is no scenario of this name.
        """
        if name not in set(Scenario):
            raise InvalidInput("There is no scenario of this name.", allowed=", ".join(Scenario))
        asked = trials.PlayScenario(name=Scenario(name), dry_run=dry_run)
        return await self._perform(trials.TEST_SCENARIO, asked)

    async def import_memories(self, memories: Sequence[ImportedMemory]) -> ImportReport:
        """Store memories from elsewhere: long-term, energy 10, recalled once.

        Importing them again stores nothing new.

        Raises:
            InvalidTurn: one of them cannot be kept.
        """
        report = ImportReport()
        for start in range(0, len(memories), _AT_ONCE):
            part = tuple(memories[start : start + _AT_ONCE])
            report = report.plus(await self._perform(trials.IMPORT, trials.Import(memories=part)))
        return report


def _of(test_only: bool) -> inspection.OfPopulation:
    return inspection.OfPopulation(test_only=test_only)
