"""A year of one user's life on a server that skips time, against a plain account of it."""

from __future__ import annotations

from engram.domain.memories import MemoryType
from engram.lifecycle.decisions import lifecycle_of
from engram.operations.admin import InspectionHandlers, OfPopulation
from tests.support.simulated_year import SCOPE, WEEKS, fresh, new_year


async def test_a_year_ends_as_a_plain_account_says() -> None:
    """Turns, recalls, confirmations and silence: same states, no recall lost, nothing wrong."""
    async with new_year() as year:
        for number in range(WEEKS):
            await year.week(number)
        stored = await year.store.get(SCOPE, year.lives)
        told = {key: (life.status, life.state, life.accesses) for key, life in year.lives.items()}
        assert {
            key: (memory.status.value, lifecycle_of(memory).value, memory.access_count)
            for key, memory in stored.items()
        } == told
        assert await year.store.count(SCOPE, MemoryType.EPISODIC) == sum(
            life.kind == "episodic" for life in year.lives.values()
        )
        lived = [state for life in year.lives.values() for state in life.steps]
        assert year.left == lived.count("archived") + lived.count("expired")
        assert set(lived) == {"active", "archived", "expired", "stale", "validated"}
        now = await year.environment.get_current_time()
        looking = InspectionHandlers(
            year.store, year.rules, year.settings.health, lambda: now, fresh
        )
        assert not (await looking.validate(SCOPE, OfPopulation())).findings
        assert not (await looking.health(SCOPE, OfPopulation())).diagnoses
