"""A pass over everybody comes to everybody, however many of them stay due."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest
from temporalio.client import Client

from engram.contracts.lifecycle import DuePosition, FindDueUsersInput, PassKind
from engram.domain.scope import Scope
from engram.lifecycle.due import due_users
from engram.settings import Settings
from engram.storage.edge import EdgeRepository
from tests.support.lifecycle_workers import LifecycleUser, knowledge, lifecycle_workers, turn

BEGAN = datetime.now(UTC).replace(microsecond=0) - timedelta(days=40)
USERS = 14


@pytest.fixture
async def lives(
    temporal_client: Client,
    repository: EdgeRepository,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
) -> AsyncIterator[LifecycleUser]:
    """Passes that look for two users at a time, and name five at most to skip."""
    monkeypatch.setattr("engram.workflows.lifecycle.AT_ONCE", 2)
    monkeypatch.setattr("engram.workflows.lifecycle.MOST_SKIPPED", 5)
    monkeypatch.setattr("engram.workflows.lifecycle.MOST_AT_ONE_MOMENT", 9)
    async with lifecycle_workers(temporal_client, repository, settings, in_sandbox=False) as opened:
        yield opened


async def _waiting(lives: LifecycleUser, *, apart: timedelta) -> list[Scope]:
    """Users with turns that wait: the first of each so far apart, the others all over."""
    users = [lives.other(f"user-{number:02}") for number in range(USERS)]
    for number, user in enumerate(users):
        first = BEGAN + number * apart
        later = [BEGAN + timedelta(days=20, hours=(number * 5 + n * 7) % 31) for n in range(3)]
        await lives.keep(
            *(turn(user, f"turn {n}", at) for n, at in enumerate((first, *later))), scope=user
        )
    return users


async def test_everybody_gets_a_turn_in_one_pass(lives: LifecycleUser) -> None:
    """Fourteen users who stay due, five names to skip at most: each is asked for, once."""
    users = await _waiting(lives, apart=timedelta(hours=1))
    report = await lives.passes.maintain(PassKind.CONSOLIDATION)
    assert Counter(lives.requests.scopes) == Counter(users)
    assert (report.users, report.remaining) == (USERS, False)


async def test_a_new_run_goes_on_where_the_last_one_was(
    lives: LifecycleUser, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The position survives continue-as-new: nobody is left out, nobody comes first again."""
    monkeypatch.setattr(
        "temporalio.workflow.Info.is_continue_as_new_suggested",
        lambda info: info.get_current_history_length() > 20,
    )
    users = await _waiting(lives, apart=timedelta(hours=1))
    report = await lives.passes.maintain(PassKind.CONSOLIDATION)
    assert Counter(lives.requests.scopes) == Counter(users)
    assert (report.users, report.remaining) == (USERS, False)


async def test_knowledge_that_is_never_ready_starves_nobody(lives: LifecycleUser) -> None:
    """Users whose knowledge stays a candidate come first in each pass; the last is served too."""
    waits = {"selectivity": 0.6, "consolidation_passes": 0}
    for number in range(8):
        user = lives.other(f"never-{number}")
        at = BEGAN + timedelta(hours=number)
        await lives.keep(
            knowledge(user, "The user always drinks tea in bed", at, **waits), scope=user
        )
    last = lives.other("ready")
    ready = knowledge(
        last,
        "The user always drinks tea when working late",
        BEGAN + timedelta(days=30),
        selectivity=0.6,
        consolidation_passes=3,
    )
    # Fresh knowledge is too unsure to become a habit without having been used lately.
    await lives.keep(ready.model_copy(update={"known_at": BEGAN + timedelta(days=39)}), scope=last)
    report = await lives.passes.maintain(PassKind.PROMOTION)
    assert (report.users, report.remaining) == (9, False)


async def test_a_pass_ends_where_too_many_are_due_since_one_moment(lives: LifecycleUser) -> None:
    """Who was seen to cannot be told from who was not; the report says that users are left."""
    users = await _waiting(lives, apart=timedelta(0))
    report = await lives.passes.maintain(PassKind.CONSOLIDATION)
    assert report.remaining
    assert len(set(lives.requests.scopes)) >= 9
    assert set(lives.requests.scopes) < set(users)


async def test_a_search_goes_on_over_all_listings(
    repository: EdgeRepository, lives: LifecycleUser
) -> None:
    """Step by step with nothing named to skip but the last, every due user is found once."""
    users = [lives.other(f"user-{number}") for number in range(9)]
    for number, user in enumerate(users):
        at = BEGAN - timedelta(days=400 + number)
        turns = [turn(user, "a turn", at)] if number % 3 else []
        known = [knowledge(user, "The user likes tea", at)] if number % 2 else []
        await lives.keep(*(turns + known or [turn(user, "old", at)]), scope=user)
    found: list[Scope] = []
    position, skip = DuePosition(), tuple[Scope, ...]()
    while True:
        part = await due_users(
            repository,
            FindDueUsersInput(
                kind=PassKind.DECAY,
                now=datetime.now(UTC),
                rules=lives.settings.lifecycle_rules,
                most=2,
                position=position,
                skip=skip,
            ),
        )
        if not part.users and not part.passed:
            break
        found += part.users
        position, skip = part.reached, (*part.users, *part.passed)
    assert sorted(user.tenant for user in found) == sorted(user.tenant for user in users)
