"""What is in dispute comes marked wherever it answers, and what was refuted answers nowhere."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client

from engram.client.memory import MemoryStore
from engram.domain.confidence import Verification
from engram.domain.memories import AnyMemory, Fact, MemoryStatus, SemanticMemory
from engram.errors import InvalidInput, ReviewNotFound
from engram.ports import MemoryRepository
from tests.support.remembering import comes_true, everything, remembering, said

ASKED = "Where does the user live?"


@asynccontextmanager
async def torn(
    client: Client, **values: Any
) -> AsyncIterator[tuple[MemoryStore, MemoryRepository, str, str]]:
    """A user of whom two conversations of one moment tell two homes: Lisbon and Porto."""
    async with remembering(client, **values) as (memory, repository):
        await memory.encode(said("I live in Lisbon. I like tea.", 0), session_id="s1")
        await memory.encode(said("I live in Porto.", 0), session_id="s2")
        report = await memory.consolidate()
        assert report.reviews == 1
        lisbon, porto = [await home(memory, repository, city) for city in ("Lisbon", "Porto")]
        assert lisbon.disputed_with == (porto.id,)
        yield memory, repository, lisbon.id, porto.id


async def home(memory: MemoryStore, repository: MemoryRepository, city: str) -> SemanticMemory:
    """What is known of the user and that city."""
    stored = (await everything(repository, memory.scope)).values()
    (found,) = [
        m
        for m in stored
        if isinstance(m, SemanticMemory) and m.detail is None and city in m.content
    ]
    return found


async def shown(memory: MemoryStore, memory_id: str) -> dict[str, bool | None]:
    """Where a memory answers: None where it does not, else whether it comes marked."""
    hits = {h.memory.id: h for h in await memory.recall(ASKED, memory_types="semantic")}
    block = (await memory.context(ASKED, memory_types="semantic")).splitlines()
    content = (await memory.get(memory_id)).content
    said_there = [line for line in block if content in line]
    lines = [x for x in (await memory.profile()).lines if memory_id in x.memory_ids]
    told = {b.memory.id: b.disputed for b in await memory.briefing()}
    hit = hits.get(memory_id)
    return {
        "recall": None if hit is None else hit.disputed,
        "context": "disputed" in said_there[0] if said_there else None,
        "profile": lines[0].disputed if lines else None,
        "briefing": told.get(memory_id),
    }


EVERYWHERE = ("recall", "context", "profile", "briefing")


async def test_what_nothing_settles_comes_marked_and_one_confirmation_settles_both_ends(
    temporal_client: Client,
) -> None:
    """Both are marked everywhere; confirmed, one stands without a mark, the other is history."""
    async with torn(temporal_client) as (memory, repository, lisbon, porto):
        for one in (lisbon, porto):
            assert await shown(memory, one) == dict.fromkeys(EVERYWHERE, True)
        (hit, *_) = await memory.recall(ASKED, memory_types="semantic", explain=True)
        other = porto if hit.memory.id == lisbon else lisbon
        assert hit.explanation is not None
        assert f"it contradicts {other}" in hit.explanation.text
        acted = (await memory.confirm(lisbon)).memory
        assert isinstance(acted, SemanticMemory)
        assert (acted.disputed_with, acted.confidence.contradictions) == ((), 0)
        assert acted.confidence.verification is Verification.USER_CONFIRMED
        assert await shown(memory, lisbon) == dict.fromkeys(EVERYWHERE, False)
        assert await shown(memory, porto) == dict.fromkeys(EVERYWHERE)
        gone = await home(memory, repository, "Porto")
        assert (gone.status, gone.superseded_by) == (MemoryStatus.SUPERSEDED, lisbon)
        assert gone.disputed_with == ()
        assert porto in {m.id for m in await memory.history(lisbon)}
        assert not await memory.reviews()
        assert (await memory.validate()).findings == ()


async def test_what_the_user_disputes_leaves_the_answers_until_it_is_confirmed(
    temporal_client: Client,
) -> None:
    """Gone everywhere, readable, counted as one contradiction; the word can be taken back."""
    async with remembering(temporal_client) as (memory, repository):
        await memory.encode(said("I live in Porto. I like tea.", 0), session_id="s1")
        await memory.consolidate()
        porto = (await home(memory, repository, "Porto")).id
        assert await shown(memory, porto) == dict.fromkeys(EVERYWHERE, False)
        for _ in range(2):
            refuted = (await memory.dispute(porto)).memory
            assert isinstance(refuted, SemanticMemory)
            assert refuted.confidence.contradictions == 1
        assert await shown(memory, porto) == dict.fromkeys(EVERYWHERE)
        lines = [line async for line in memory.export_lines()]
        assert any(porto in line and "refuted_at" in line for line in lines)
        before = await memory.recall_at(ASKED, as_of=refuted.known_at, memory_types="semantic")
        assert porto in {hit.memory.id for hit in before}

        async def is_listed() -> bool:
            return [r.memories[0].id for r in await memory.reviews()] == [porto]

        await comes_true(is_listed)
        back = (await memory.confirm(porto)).memory
        assert isinstance(back, SemanticMemory)
        assert (back.status, back.refuted_at) == (MemoryStatus.ACTIVE, None)
        assert back.confidence.contradictions == 0
        assert await shown(memory, porto) == dict.fromkeys(EVERYWHERE, False)


async def test_as_of_before_the_user_disputed_it_nothing_is_marked(
    temporal_client: Client,
) -> None:
    """What the user says later is hindsight, for recall as for the profile, and its certainty."""
    async with remembering(temporal_client) as (memory, repository):
        await memory.encode(said("I live in Porto. I like tea.", 0), session_id="s1")
        await memory.consolidate()
        before = await home(memory, repository, "Porto")
        await memory.dispute(before.id)
        as_of = said("-", 1).timestamp
        assert as_of is not None
        hits = await memory.recall_at(ASKED, as_of=as_of, memory_types="semantic")
        (hit,) = [hit for hit in hits if hit.memory.id == before.id]
        assert isinstance(hit.memory, SemanticMemory)
        assert not hit.disputed
        assert hit.memory.confidence == before.confidence
        lines = (await memory.profile(as_of=as_of)).lines
        assert [one.disputed for one in lines if "Porto" in one.text] == [False]


async def test_disputing_one_of_two_frees_the_other(temporal_client: Client) -> None:
    """The user says which is not so: what it contradicted stands, unconfirmed and unmarked."""
    async with torn(temporal_client) as (memory, repository, lisbon, porto):
        await memory.dispute(porto)
        assert await shown(memory, lisbon) == dict.fromkeys(EVERYWHERE, False)
        assert await shown(memory, porto) == dict.fromkeys(EVERYWHERE)
        assert (await home(memory, repository, "Lisbon")).confidence.contradictions == 0


async def test_a_refuted_address_gives_its_place_back_to_the_one_before_it(
    temporal_client: Client,
) -> None:
    """What a pattern found holds again once its successor is disputed, until that is confirmed."""
    async with remembering(temporal_client) as (memory, repository):
        for day, address in enumerate(("kim@old.example", "kim@new.example")):
            await memory.encode(said(f"My email is {address}.", day), session_id=f"s{day}")
            await memory.consolidate()

        async def holding() -> dict[str, str]:
            stored = (await everything(repository, memory.scope)).values()
            facts = [m for m in stored if isinstance(m, Fact)]
            return {m.value: m.id for m in facts if m.status is MemoryStatus.ACTIVE}

        ((value, new),) = (await holding()).items()
        assert value == "kim@new.example"
        await memory.dispute(new)
        assert [*await holding()] == ["kim@old.example"]
        (best, *_) = await memory.recall("What is my email?", memory_types="factual")
        assert "kim@old.example" in best.memory.content
        await memory.confirm(new)
        assert await holding() == {"kim@new.example": new}


async def test_the_last_word_of_the_user_counts(temporal_client: Client) -> None:
    """Whoever confirms the other one afterwards turns the two around."""
    async with torn(temporal_client) as (memory, repository, lisbon, porto):
        await memory.confirm(lisbon)
        await memory.confirm(porto)
        assert await shown(memory, porto) == dict.fromkeys(EVERYWHERE, False)
        assert await shown(memory, lisbon) == dict.fromkeys(EVERYWHERE)
        kept = await home(memory, repository, "Porto")
        assert (kept.supersedes, kept.superseded_by) == ((lisbon,), None)
        assert (await memory.validate()).findings == ()


@pytest.mark.parametrize("by", ["confirmation", "review"])
async def test_what_was_refuted_and_is_confirmed_holds_in_place_of_what_was_told_since(
    temporal_client: Client, by: str
) -> None:
    """One home at a time: the user's last word counts, and what is told later counts again."""
    async with remembering(temporal_client) as (memory, repository):
        await memory.encode(said("I live in Porto.", 0), session_id="s1")
        await memory.consolidate()
        porto = (await home(memory, repository, "Porto")).id
        await memory.dispute(porto)
        await memory.encode(said("I live in Rome now.", 2), session_id="s2")
        await memory.consolidate()
        rome = (await home(memory, repository, "Rome")).id
        if by == "review":

            async def is_listed() -> bool:
                return len(await memory.reviews()) == 1

            await comes_true(is_listed)
            (review,) = await memory.reviews()
            await memory.review(review.review_id, keep=porto)
        else:
            await memory.confirm(porto)
        kept, gone = [await home(memory, repository, city) for city in ("Porto", "Rome")]
        assert (kept.status, gone.status) == (MemoryStatus.ACTIVE, MemoryStatus.SUPERSEDED)
        assert (kept.supersedes, gone.superseded_by) == ((rome,), porto)
        assert await shown(memory, rome) == dict.fromkeys(EVERYWHERE)
        assert (await memory.validate()).findings == ()


async def test_what_is_settled_is_not_disputed_again_by_what_was_said_before(
    temporal_client: Client,
) -> None:
    """Nor by reading on; told again later, it holds again, and nothing is marked."""
    async with torn(temporal_client) as (memory, _, lisbon, porto):
        await memory.confirm(lisbon)
        await memory.encode(said("I live in Porto.", -3), session_id="s0")
        await memory.encode(said("I like tea.", 1), session_id="s3")
        await memory.consolidate()
        assert await shown(memory, lisbon) == dict.fromkeys(EVERYWHERE, False)
        assert await shown(memory, porto) == dict.fromkeys(EVERYWHERE)
        later = said("I live in Porto.", 0).model_copy(update={"timestamp": None})
        await memory.encode(later, session_id="s4")
        await memory.consolidate()
        (hit, *_) = await memory.recall(ASKED, memory_types="semantic")
        assert ("Porto" in hit.memory.content, hit.disputed) == (True, False)
        assert (await memory.get(porto)).status is MemoryStatus.SUPERSEDED
        assert (await memory.get(lisbon)).status is MemoryStatus.SUPERSEDED


@pytest.mark.parametrize("keep", ["lisbon", "both", "none"])
async def test_a_review_is_answered(temporal_client: Client, keep: str) -> None:
    """Listed with its memories, answered once, and gone; what is no answer is refused."""
    async with torn(temporal_client) as (memory, repository, lisbon, porto):

        async def is_listed() -> bool:
            return len(await memory.reviews()) == 1

        await comes_true(is_listed)
        (review,) = await memory.reviews()
        assert {m.id for m in review.memories} == {lisbon, porto}
        # Neither what is no id, nor that of something else.
        for other in ("Lisbon", review.review_id):
            with pytest.raises(InvalidInput, match="no answer"):
                await memory.review(review.review_id, keep=other)
        outcome = await memory.review(review.review_id, keep=lisbon if keep == "lisbon" else keep)
        stands = {"lisbon": {lisbon}, "both": {lisbon, porto}, "none": set[str]()}[keep]
        assert set(outcome.kept) == stands
        for one in (lisbon, porto):
            mark = False if one in stands else None
            assert await shown(memory, one) == dict.fromkeys(EVERYWHERE, mark)
        assert not await memory.reviews()
        with pytest.raises(ReviewNotFound):
            await memory.review(review.review_id, keep=lisbon)
        await memory.encode(said("I live in Porto.", -1), session_id="s9")
        await memory.consolidate()
        found = [m for m in (await everything(repository, memory.scope)).values() if doubted(m)]
        assert found == []


def doubted(memory: AnyMemory) -> bool:
    """Whether anything is in dispute with it."""
    return isinstance(memory, SemanticMemory) and bool(memory.disputed_with)


async def test_forgetting_one_of_two_ends_the_review_and_the_mark(temporal_client: Client) -> None:
    """What is left is as if nothing had ever contradicted it."""
    async with torn(temporal_client) as (memory, repository, lisbon, porto):
        await memory.forget(porto)
        kept = await home(memory, repository, "Lisbon")
        assert (kept.disputed_with, kept.confidence.contradictions) == ((), 0)
        assert kept.confidence.verification is Verification.EVIDENCE_FOUND
        assert (await shown(memory, lisbon))["recall"] is False
        assert not await memory.reviews()


async def test_a_dispute_that_is_imported_waits_for_a_person_too(
    temporal_client: Client, tmp_path: Path
) -> None:
    """Brought back from an export, both come marked, and a review of them waits; once."""
    async with torn(temporal_client) as (memory, _, lisbon, porto):
        lines = [line.rstrip("\n") async for line in memory.export_lines()]
        namespace = memory.scope.namespace
    exported = tmp_path / "export.jsonl"
    exported.write_text("\n".join(lines) + "\n")
    async with remembering(temporal_client) as (memory, _):
        assert memory.scope.namespace != namespace
        for _ in range(2):
            await memory.import_file(exported)

        async def is_listed() -> bool:
            return len(await memory.reviews()) == 1

        await comes_true(is_listed)
        (review,) = await memory.reviews()
        assert len(review.memories) == 2
        assert not {m.id for m in review.memories} & {lisbon, porto}
        await memory.review(review.review_id, keep="newest")
        await memory.import_file(exported, consolidate=False)
        assert not await memory.reviews()
