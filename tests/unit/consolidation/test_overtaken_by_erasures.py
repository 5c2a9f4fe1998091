"""What is drawn from turns that are erased meanwhile is never stored, whatever dies next."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

import pytest
from temporalio.client import Client
from temporalio.testing import ActivityEnvironment

from engram.activities.removal import ErasureActivitiesImpl
from engram.contracts.names import key_owner, store_of
from engram.contracts.removal import ErasureInput
from engram.domain.memories import STORED_TYPES, MemoryType, SemanticMemory
from engram.domain.rules import LifecycleRules
from engram.domain.scope import Scope
from engram.embedding.choice import make_embedder
from engram.errors import EncryptionKeysUnusable, UserErased
from engram.lifecycle.promotion_pass import HabitMaker
from engram.storage.edge import EdgeRepository
from engram.system import new_secret
from engram.temporal.keys import FolderKeyStore
from engram.transfer.memories import ImportedMemory, Importer
from tests.support.in_process_memory import InProcessMemory, when

ADA = Scope.of("default", "ada")
TOLD = ("I live in Lisbon. My e-mail is ada@example.org.", "I never eat fish.")


async def left(repository: EdgeRepository) -> dict[MemoryType, int]:
    """How much of the user is stored, by type; nothing of what is not."""
    counts = {kind: await repository.count(ADA, kind) for kind in STORED_TYPES}
    return {kind: count for kind, count in counts.items() if count}


async def erased(repository: EdgeRepository) -> None:
    """What an erasure does with the store, all of it."""
    await repository.raise_epoch(ADA, "one", key=uuid4().hex)
    await repository.erase(ADA)


def overtaken(
    monkeypatch: pytest.MonkeyPatch,
    repository: EdgeRepository,
    kind: MemoryType,
    erasing: Callable[[], Awaitable[None]],
) -> None:
    """Have everything erased just before a memory is stored, and whoever stores it die then."""
    insert = repository.insert

    async def late(scope: Scope, memories: Any, **more: Any) -> frozenset[str]:
        given = list(memories)
        if all(one.memory.type is not kind for one in given):
            return await insert(scope, given, **more)
        await erasing()
        await insert(scope, given, **more)
        raise asyncio.CancelledError

    monkeypatch.setattr(repository, "insert", late)


@pytest.mark.parametrize("kind", [MemoryType.FACTUAL, MemoryType.SEMANTIC])
async def test_an_erasure_that_overtakes_a_reading_leaves_nothing_of_it(
    repository: EdgeRepository, monkeypatch: pytest.MonkeyPatch, kind: MemoryType
) -> None:
    """Facts of an encode and conclusions of a pass are refused, not stored and taken back."""
    memory = InProcessMemory(repository)
    overtaken(monkeypatch, repository, kind, lambda: erased(repository))

    async def read() -> None:
        await memory.hear(ADA, TOLD)
        await memory.consolidate(ADA, when(9))

    with pytest.raises(UserErased):
        await read()
    assert await left(repository) == {}


async def test_an_erasure_that_overtakes_a_promotion_leaves_no_habit(
    repository: EdgeRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Knowledge was read, and is gone when the habit made of it is stored."""
    memory = InProcessMemory(repository)
    await memory.hear(ADA, TOLD)
    await memory.consolidate(ADA, when(9))
    page = await repository.scroll(ADA, MemoryType.SEMANTIC)
    known = [one for one in page.memories if isinstance(one, SemanticMemory)]
    maker = HabitMaker(repository, make_embedder("wordllama"), lambda: uuid4().hex)
    overtaken(monkeypatch, repository, MemoryType.PROCEDURAL, lambda: erased(repository))
    with pytest.raises(UserErased):
        await maker.make(ADA, known, LifecycleRules(), when(10), forced=True)
    assert await left(repository) == {}


async def test_an_erasure_that_overtakes_memories_of_elsewhere_leaves_none(
    repository: EdgeRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They were handed over before it."""
    importer = Importer(repository, make_embedder("wordllama"), lambda: uuid4().hex, 1000)
    overtaken(monkeypatch, repository, MemoryType.EPISODIC, lambda: erased(repository))
    told = ImportedMemory(content=TOLD[0], timestamp=when(0))
    with pytest.raises(UserErased):
        await importer.store(ADA, [told], when(1))
    assert await left(repository) == {}


async def test_what_is_read_behind_the_fence_and_before_it_is_deleted_is_never_stored(
    repository: EdgeRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pass that begins once the fence stands reads turns that are still there."""
    memory = InProcessMemory(repository)
    erasing = ErasureActivitiesImpl(cast("Client", None), repository, lambda: uuid4().hex)
    asked = ErasureInput(scope=ADA)
    await memory.hear(ADA, TOLD)
    await ActivityEnvironment().run(erasing.raise_fence, asked)

    async def deleted() -> None:
        done = await ActivityEnvironment().run(erasing.erase_memories, asked)
        assert done.left == 0

    overtaken(monkeypatch, repository, MemoryType.SEMANTIC, deleted)
    with pytest.raises(UserErased):
        await memory.consolidate(ADA, when(9))
    assert await left(repository) == {}


@pytest.mark.parametrize("counted", [0, 2 * len(STORED_TYPES)], ids=["first", "behind the first"])
async def test_an_erasure_that_was_held_up_deletes_nothing_that_is_said_behind_its_receipt(
    repository: EdgeRepository, monkeypatch: pytest.MonkeyPatch, counted: int
) -> None:
    """Its worker stalls past the limit, another attempt ends it, and the user comes back."""
    memory = InProcessMemory(repository)
    erasing = ErasureActivitiesImpl(cast("Client", None), repository, lambda: uuid4().hex)
    await memory.hear(ADA, TOLD)
    fence = await ActivityEnvironment().run(erasing.raise_fence, ErasureInput(scope=ADA))
    asked = ErasureInput(scope=ADA, epoch=fence.epoch)
    held, goes_on, numbers = asyncio.Event(), asyncio.Event(), itertools.count()
    count = repository._count  # noqa: SLF001 - what stands just before each deletion

    async def stalling(*about: Any) -> int:
        found = await count(*about)
        if next(numbers) == counted:
            held.set()
            await goes_on.wait()
        return found

    monkeypatch.setattr(repository, "_count", stalling)
    late = asyncio.ensure_future(ActivityEnvironment().run(erasing.erase_memories, asked))
    await held.wait()
    done = await ActivityEnvironment().run(erasing.erase_memories, asked)
    assert done.left == 0
    await memory.hear(ADA, TOLD)
    said = await left(repository)
    assert said[MemoryType.EPISODIC] == len(TOLD)
    goes_on.set()
    assert not (await late).left
    assert await left(repository) == said


async def test_an_erasure_that_broke_off_goes_on_where_it_is_reset(
    repository: EdgeRepository,
) -> None:
    """Its other run meets the fence of the first, and deletes what that had left."""
    memory = InProcessMemory(repository)
    await memory.hear(ADA, TOLD)
    asked = ErasureInput(scope=ADA, first_run_id=ActivityEnvironment().info.workflow_run_id)
    erasing = ErasureActivitiesImpl(cast("Client", None), repository, lambda: uuid4().hex)
    fence = await ActivityEnvironment().run(erasing.raise_fence, asked)
    reset = ActivityEnvironment()
    reset.info = replace(reset.info, workflow_run_id="another")
    assert await reset.run(erasing.raise_fence, asked) == fence
    asked = asked.model_copy(update={"epoch": fence.epoch})
    done = await reset.run(erasing.erase_memories, asked)
    assert (done.deleted["episodic"], done.left) == (len(TOLD), 0)
    for again in (erasing.raise_fence, erasing.erase_workflows):
        with pytest.raises(UserErased, match="ask for another erasure"):
            await reset.run(again, asked)


async def test_an_erasure_that_breaks_off_once_all_is_deleted_throws_the_keys_away_next_time(
    repository: EdgeRepository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder of keys cannot be written to at first: no receipt is given over readable keys."""
    keys = FolderKeyStore.create(tmp_path / "keys", new_secret=new_secret, since=None)
    asked, info = ErasureInput(scope=ADA), ActivityEnvironment().info
    owner = key_owner(store_of(info.workflow_id or ""), ADA.tenant)
    key = await keys.current(owner)
    erasing = ErasureActivitiesImpl(cast("Client", None), repository, lambda: uuid4().hex, keys)
    fence = await ActivityEnvironment().run(erasing.raise_fence, asked)
    asked = asked.model_copy(update={"epoch": fence.epoch})
    with monkeypatch.context() as patched:
        patched.setattr(keys, "shred", refusing)
        with pytest.raises(EncryptionKeysUnusable):
            await ActivityEnvironment().run(erasing.erase_memories, asked)
    await ActivityEnvironment().run(erasing.erase_memories, asked)
    assert await keys.find(owner, key.id) is None


async def refusing(owner: str) -> int:
    """A folder that nothing can be written to."""
    raise EncryptionKeysUnusable(f"The keys of {owner} cannot be written.")
