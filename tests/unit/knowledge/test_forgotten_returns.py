"""A forgotten turn comes again: by the client, a reset session, an import, a backup. In vain."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest

from engram.consolidation.forgetting import Forgetter
from engram.contracts.importing import (
    ExportedMemory,
    ImportBatch,
    ImportedTurn,
    ImportKind,
    StoreBatchInput,
)
from engram.contracts.lifecycle import WalkInput
from engram.contracts.session import EncodeCall, StoreTurnsInput
from engram.domain.memories import STORED_TYPES, AnyMemory, MemoryType
from engram.domain.rules import ExpiryRules, LifecycleRules
from engram.domain.turns import Turn
from engram.embedding.bm25 import encode_query
from engram.embedding.choice import make_embedder
from engram.embedding.offline import OfflineEmbedder
from engram.errors import StorageUnavailable
from engram.language.extractor import Extractor
from engram.lifecycle.review import Reviewer
from engram.ports import SearchRequest, TextVectors
from engram.storage.edge import EdgeRepository
from engram.storage.updates import update_memories
from engram.transfer.batches import pack
from engram.transfer.preparing import HerePreparer
from engram.transfer.store import MemoryRestorer, TurnImporter
from tests.support.in_process_memory import InProcessMemory, when

TURNS = ("I live in Lisbon.", "Write to zenobia@example.org.", "I don't use Mongo.")


def new_write_id() -> str:
    """A value that no other write has."""
    return uuid4().hex


class Somebody:
    """A user of whom something is forgotten.

    Args:
        repository: Where what they say is kept.
    """

    def __init__(self, repository: EdgeRepository) -> None:
        self.repository = repository
        self.memory = InProcessMemory(repository)
        self.scope = self.memory.somebody()
        self.forgetter = Forgetter(repository, new_write_id)

    async def forget(self, memory_id: str) -> None:
        """Forget it, and look again."""
        plan = await self.forgetter.plan(self.scope, memory_id)
        await self.forgetter.apply(self.scope, plan)
        await self.forgetter.look_again(self.scope, plan)

    async def found(self, words: str) -> set[str]:
        """The turns that are found by a word."""
        dense = (0.0,) * await make_embedder("wordllama").dimensions()
        asked = TextVectors(dense, encode_query(words))
        request = SearchRequest(asked, (MemoryType.EPISODIC,), 10)
        matches = await self.repository.rank(self.scope, request)
        return {one.memory_id for one in matches if one.sparse is not None}

    async def bring(self, kind: ImportKind, entries: list[Any]) -> Any:
        """Store a batch of an import."""
        embedder = make_embedder("wordllama")
        preparer = HerePreparer(embedder, Extractor(self.memory.settings))
        bound = self.memory.settings.max_turn_bytes
        stores: dict[ImportKind, TurnImporter | MemoryRestorer] = {
            ImportKind.TURNS: TurnImporter(
                self.repository, embedder, preparer, new_write_id, bound
            ),
            ImportKind.MEMORIES: MemoryRestorer(self.repository, embedder, new_write_id, bound),
        }
        packed = pack([one.model_dump_json() for one in entries])
        return await stores[kind].store(
            StoreBatchInput(
                scope=self.scope,
                now=when(9),
                kind=kind,
                batch=ImportBatch(first=0, count=len(entries), packed=packed),
                workflow_id="w",
                run_id="r",
            )
        )


class Story(Somebody):
    """Who said three things and had the second forgotten."""

    before: dict[str, AnyMemory]

    async def begin(self) -> None:
        """Say and forget; what was there before is an export of before."""
        ids = await self.memory.hear(self.scope, TURNS, session="s1")
        await self.memory.consolidate(self.scope, when(9))
        self.before = await self.everything()
        await self.forgetter.apply(self.scope, await self.forgetter.plan(self.scope, ids[1]))
        assert await self.words() == []

    async def everything(self) -> dict[str, AnyMemory]:
        """All that is stored."""
        pages = [await self.repository.scroll(self.scope, kind) for kind in STORED_TYPES]
        return {memory.id: memory for page in pages for memory in page.memories}

    async def words(self) -> list[str]:
        """Where the forgotten word stands."""
        found = (await self.everything()).values()
        return [m.content for m in found if "zenobia" in m.model_dump_json().casefold()]


@pytest.fixture
async def story(repository: EdgeRepository) -> Story:
    """It, begun."""
    begun = Story(repository)
    await begun.begin()
    return begun


async def test_the_client_that_sends_a_forgotten_turn_again_stores_nothing(story: Story) -> None:
    """Turn, facts and all stay away; so too for a session that is reset, and a late retry.

    All of them store the same turns under the same ids. The other turns are there as before.
    """
    before = await story.everything()
    await story.memory.hear(story.scope, TURNS, session="s1")
    assert (await story.everything()).keys() == before.keys()
    await story.memory.consolidate(story.scope, when(9))
    assert await story.words() == []


async def test_the_same_words_in_a_new_turn_are_a_new_statement(story: Story) -> None:
    """Whoever says it again later is remembered, with the fact that the turn states."""
    await story.memory.hear(story.scope, TURNS[1:2], 7, session="s2")
    assert len(await story.words()) == 2


async def test_a_session_that_is_reset_stores_only_what_was_not_forgotten(story: Story) -> None:
    """Its turns are stored anew by another run, one by one, as they came."""
    for number, words in enumerate(TURNS):
        await story.memory.hear(story.scope, [words], number, session="s1")
    assert await story.words() == []


async def test_an_import_that_is_resumed_leaves_the_forgotten_out(story: Story) -> None:
    """It is counted, and the others of its batch are known."""
    entries = [
        ImportedTurn(
            session_id="s1",
            message_id=f"m{number}",
            role="user",
            content=words,
            timestamp=when(number),
            sequence=number,
        )
        for number, words in enumerate(TURNS)
    ]
    tally = await story.bring(ImportKind.TURNS, entries)
    assert (tally.stored, tally.known, tally.forgotten) == (0, 2, 1)
    assert await story.words() == []


async def test_a_backup_of_before_restores_nothing_that_was_forgotten(story: Story) -> None:
    """Neither the turn nor what was drawn from it; the receipt counts them."""
    entries = [
        ExportedMemory(memory=memory.model_dump(mode="json")) for memory in story.before.values()
    ]
    there = await story.everything()
    tally = await story.bring(ImportKind.MEMORIES, entries)
    assert tally.forgotten == len(story.before.keys() - there.keys())
    assert tally.stored == 0
    assert await story.words() == []


TALK = ("What do you sing?", "Zenobia's aria.", "A fine choice.", "So they say.")


class Talk(Somebody):
    """Four turns at once, of which the second has a word that the third is found by as well."""

    ids: tuple[str, ...]

    async def begin(self) -> None:
        """Say it."""
        self.ids = await self.say(*TALK)
        assert await self.found("aria") == {*self.ids[1:3]}

    async def again(self, turns: Sequence[Turn], day: int) -> tuple[str, ...]:
        """Take the session up again, which counts from 0."""
        dated = (turn.model_copy(update={"role": "user", "timestamp": when(day)}) for turn in turns)
        (outcome,) = await self.memory.turns.store(
            StoreTurnsInput(
                scope=self.scope,
                now=when(day),
                session_id="s1",
                calls=(EncodeCall(turns=tuple(dated)),),
                first_sequence=0,
                workflow_id="w",
                run_id=f"r{day}",
            )
        )
        return tuple(turn.episode_id for turn in outcome.turns)

    async def say(self, *words: str, first: int = 0) -> tuple[str, ...]:
        """Say something in the session, all of it within the minute."""
        return await self.memory.hear(self.scope, words, first, at=when(0), session="s1")


async def test_no_turn_is_found_by_the_words_of_a_forgotten_one_before_it(
    repository: EdgeRepository,
) -> None:
    """What followed it is found by its own words, and by those of what is left before it."""
    talk = Talk(repository)
    await talk.begin()
    before = await talk.found("fine choice")
    await talk.forgetter.apply(talk.scope, await talk.forgetter.plan(talk.scope, talk.ids[1]))
    assert await talk.found("Zenobia aria") == set()
    assert await talk.found("fine choice") == before == {*talk.ids[2:]}


async def test_a_session_that_was_taken_up_again_lets_go_of_what_was_said_last(
    repository: EdgeRepository,
) -> None:
    """Each time it counts from 0, so that many turns have the numbers of those that follow."""
    talk = Talk(repository)
    for day in range(1, 4):
        said = [Turn(message_id=f"{day}-{n}", content=f"Note {n}.") for n in range(40)]
        await talk.again(said, day)
    said = [Turn(message_id=f"last-{n}", content=words) for n, words in enumerate(TALK)]
    ids = await talk.again(said, 9)
    assert await talk.found("aria") == {*ids[1:3]}
    await talk.forget(ids[1])
    assert await talk.found("aria") == set()


async def test_a_turn_that_is_stored_while_the_one_before_it_is_forgotten_keeps_none_of_its_words(
    repository: EdgeRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It read the other in the last moment in which that was there."""
    talk = Talk(repository)
    await talk.begin()
    delete = repository.delete

    async def late(*asked: Any) -> None:
        monkeypatch.undo()
        (said,) = await talk.say("Oh no.", first=4)
        assert said in await talk.found("say")
        await delete(*asked)

    plan = await talk.forgetter.plan(talk.scope, talk.ids[3])
    monkeypatch.setattr(repository, "delete", late)
    await talk.forgetter.apply(talk.scope, plan)
    assert await talk.found("say") != set()
    await talk.forgetter.look_again(talk.scope, plan)
    assert await talk.found("say") == set()


async def test_a_turn_whose_embedding_outlasts_the_forgetting_of_the_one_before_it_lets_go(
    repository: EdgeRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It read the other while that was there, and is stored when all looking again is over."""
    talk = Talk(repository)
    await talk.begin()
    embed = OfflineEmbedder.embed_documents

    async def slow(self: OfflineEmbedder, *asked: Any) -> list[TextVectors]:
        vectors = await embed(self, *asked)
        monkeypatch.undo()
        await talk.forget(talk.ids[3])
        return vectors

    monkeypatch.setattr(OfflineEmbedder, "embed_documents", slow)
    (said,) = await talk.say("Oh no.", first=4)
    assert (await repository.get(talk.scope, [said])).keys() == {said}
    assert await talk.found("say") == set()


async def test_an_attempt_that_died_before_it_let_go_is_made_good_by_the_next(
    repository: EdgeRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The turn is stored already, with words of the one that was forgotten meanwhile."""
    talk = Talk(repository)
    await talk.begin()
    insert = repository.insert

    async def dying(*asked: Any, **more: Any) -> None:
        monkeypatch.undo()
        await talk.forget(talk.ids[3])
        await insert(*asked, **more)
        raise StorageUnavailable("The worker died.")

    monkeypatch.setattr(repository, "insert", dying)
    with pytest.raises(StorageUnavailable):
        await talk.say("Oh no.", first=4)
    assert await talk.found("say") != set()
    await talk.say("Oh no.", first=4)
    assert await talk.found("say") == set()


async def test_what_is_said_after_a_forgotten_turn_that_comes_again_is_not_found_by_its_words(
    repository: EdgeRepository,
) -> None:
    """A client hands over all of a conversation, the forgotten turn and a new one among it."""
    talk = Talk(repository)
    await talk.begin()
    await talk.forget(talk.ids[3])
    *_, said = await talk.say(*TALK, "Oh no.")
    assert (await repository.get(talk.scope, [talk.ids[3], said])).keys() == {said}
    assert await talk.found("say") == set()


@pytest.mark.parametrize("resumed", [False, True], ids=["in one batch", "resumed after it"])
async def test_no_imported_turn_is_found_by_the_words_of_a_forgotten_one_before_it(
    repository: EdgeRepository, resumed: bool
) -> None:
    """A later, longer export: the forgotten turn stands before what is new in it."""
    story = Story(repository)
    await story.begin()
    entries = [
        ImportedTurn(
            session_id="s1",
            message_id=f"m{number}",
            role="user",
            content=words,
            timestamp=when(1),
            sequence=number,
            before=TURNS[1] if number == 3 and resumed else None,
        )
        for number, words in ((1, TURNS[1]), (3, "Or to Mary."))
    ]
    tally = await story.bring(ImportKind.TURNS, entries[resumed:])
    assert tally.stored == 1
    assert await story.found("zenobia") == set()
    assert await story.found("Mary") != set()


async def test_no_restored_turn_is_found_by_the_words_of_a_forgotten_one_before_it(
    repository: EdgeRepository,
) -> None:
    """An export of before names what was said before each turn, also what was forgotten since."""
    talk = Talk(repository)
    await talk.begin()
    there = await repository.get(talk.scope, talk.ids)
    await talk.forget(talk.ids[1])
    await repository.delete(talk.scope, MemoryType.EPISODIC, talk.ids)
    entries = [
        ExportedMemory(memory=there[one].model_dump(mode="json"), before=words)
        for one, words in zip(talk.ids, (None, *TALK), strict=False)
    ]
    tally = await talk.bring(ImportKind.MEMORIES, entries)
    assert (tally.stored, tally.forgotten) == (3, 1)
    assert await talk.found("Zenobia aria") == set()
    assert await talk.found("fine choice") == {*talk.ids[2:]}


async def test_two_that_let_words_go_at_once_leave_none(
    repository: EdgeRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What one of them takes for the turn before is forgotten by the other before it is noted."""
    talk = Talk(repository)
    await talk.begin()
    reword = repository.reword

    async def late(*asked: Any) -> None:
        monkeypatch.undo()
        await talk.forget(talk.ids[2])
        await reword(*asked)

    plan = await talk.forgetter.plan(talk.scope, talk.ids[1])
    await talk.forgetter.apply(talk.scope, plan)
    monkeypatch.setattr(repository, "reword", late)
    await talk.forgetter.look_again(talk.scope, plan)
    assert await talk.found("fine choice") == set()


async def test_no_turn_is_found_by_the_words_of_one_that_was_erased_at_its_end(
    repository: EdgeRepository,
) -> None:
    """What its time took leaves its words as little as what was forgotten."""
    talk = Talk(repository)
    await talk.begin()
    await update_memories(
        repository,
        talk.scope,
        [talk.ids[1]],
        lambda memory: memory.model_copy(update={"expires_at": when(1)}),
        new_write_id=new_write_id,
    )
    rules = LifecycleRules(expiry=ExpiryRules(erase_after_days=1))
    for days in (10, 20, 30):
        await Reviewer(repository, make_embedder("wordllama"), new_write_id).review(
            WalkInput(scope=talk.scope, now=when(1) + timedelta(days=days), rules=rules, batch=50)
        )
    assert (await repository.get(talk.scope, talk.ids)).keys() == {*talk.ids} - {talk.ids[1]}
    assert await talk.found("aria") == set()
