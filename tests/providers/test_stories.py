"""The same stories with the rules and with a language model that makes mistakes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import pydantic_ai.models
import pytest
from temporalio.client import Client

from engram.client.memory import MemoryStore
from engram.domain.memories import MemoryType, SemanticMemory
from tests.support.model_server import Provider, Reply, answering, provider
from tests.support.remembering import comes_true, remembering, said

pytestmark = pytest.mark.slow

CHAT = "openai-chat:gpt-5-mini"
QUIET: dict[str, Any] = {"session_idle_minutes": 60.0, "consolidate_every": 1000}
HALF = Reply(arguments='{"reasoning": "read", "statements": [{"sources": ["e1"], "con')
Stated: TypeAlias = dict[str, Any]


def stated(content: str, quote: str, subject: str, predicate: str, thing: str) -> Stated:
    """What a model writes of one turn, when it makes no mistake."""
    return {
        "sources": ["e1"],
        "content": content,
        "quotes": [quote],
        "subject": subject,
        "predicate": predicate,
        "object": thing,
        "confidence": 0.9,
    }


@dataclass(frozen=True)
class Answers:
    """Which of some values the answers tell.

    Attributes:
        first: By the best answer of all, turns included.
        known: By what is known, without a mark.
        disputed: By what is known, marked.
        profile: By the profile.
        history: By the history of the best piece of knowledge, oldest first.
    """

    first: str | None = None
    known: frozenset[str] = frozenset()
    disputed: frozenset[str] = frozenset()
    profile: frozenset[str] = frozenset()
    history: tuple[str, ...] = ()


@dataclass
class Told:
    """A user to whom a story happens.

    Attributes:
        memory: By which it is told, and asked.
        server: The provider; None where the rules read.
    """

    memory: MemoryStore
    server: Provider | None
    turns: int = 0

    async def say(
        self, words: str, *statements: Stated, day: int, session: str | None = None
    ) -> str:
        """One turn, read in a pass of its own; a model states this of it.

        Its first answer is half JSON, or names a turn that there is not; its second one
        quotes words that nobody said; its third one is right.
        """
        self.turns += 1
        if self.server is not None:
            self.server.script(*mistaken(statements, self.turns), reply(statements))
        session = session or f"s{self.turns}"
        receipt = await self.memory.encode(said(words, day), session_id=session)
        await self.memory.consolidate()
        if self.server is not None:
            assert len(self.server.read) == 3
        return receipt.episode_ids[0]

    async def answers(self, question: str, *values: str) -> Answers:
        """Which of these values are told, where, in the order in which they come."""
        told = [
            (value, hit)
            for hit in await self.memory.recall(question)
            for value in values
            if value in hit.memory.content
        ]
        known = [(value, hit) for value, hit in told if hit.memory.type is not MemoryType.EPISODIC]
        lines = [line for one in await self.memory.profiles() for line in one.lines]
        history = await self.memory.history(known[0][1].memory.id) if known else ()
        return Answers(
            first=told[0][0] if told else None,
            known=frozenset(value for value, hit in known if not hit.disputed),
            disputed=frozenset(value for value, hit in known if hit.disputed),
            profile=frozenset(v for v in values for line in lines if v in line.text),
            history=tuple(v for one in history for v in values if v in one.content),
        )

    async def knowledge_of(self, value: str) -> SemanticMemory:
        """The one piece of knowledge with this value that holds."""
        hits = await self.memory.recall(value, memory_types="semantic")
        (found,) = [
            hit.memory
            for hit in hits
            if isinstance(hit.memory, SemanticMemory) and hit.memory.slot is not None
            if value.casefold() == hit.memory.slot.object
        ]
        return found


def reply(statements: tuple[Stated, ...]) -> Reply:
    """The answer with these statements."""
    return answering({"reasoning": "read", "statements": list(statements)})


def mistaken(statements: tuple[Stated, ...], turn: int) -> list[Reply]:
    """Two answers that cannot be used as they are."""
    alias = tuple({**one, "sources": [f"e{turn + 6}"]} for one in statements)
    paraphrase = tuple({**one, "quotes": [f"they said that {one['object']}"]} for one in statements)
    first = HALF if turn % 2 else reply(alias)
    return [reply(paraphrase), first] if turn % 3 == 0 else [first, reply(paraphrase)]


@pytest.fixture(params=["rules", "a model that makes mistakes"])
async def told(
    request: pytest.FixtureRequest, temporal_client: Client, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Told]:
    """A user of whom nothing is known."""
    if request.param == "rules":
        async with remembering(temporal_client, **QUIET) as (memory, _):
            yield Told(memory, None)
        return
    monkeypatch.setattr(pydantic_ai.models, "ALLOW_MODEL_REQUESTS", True)
    async with provider() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-test-of-our-own")
        async with remembering(temporal_client, model=CHAT, **QUIET) as (memory, _):
            yield Told(memory, server)


LISBON = stated("The user resides in Lisbon.", "I live in Lisbon", "user", "resides in", "Lisbon")
PORTO = stated("The user now lives in Porto.", "I live in Porto", "user", "lives in", "Porto")
HOME = ("Where does the user live?", "Lisbon", "Porto")
ONLY_PORTO = frozenset({"Porto"})
ONLY_LISBON = frozenset({"Lisbon"})


async def test_a_new_home_is_told_and_the_old_one_is_history(told: Told) -> None:
    """Recall and profile have the new one alone; history has both, the older one first."""
    await told.say("I live in Lisbon.", LISBON, day=0)
    await told.say("I live in Porto now.", {**PORTO, "begins": True}, day=9)
    assert await told.answers(*HOME) == Answers(
        first="Porto", known=ONLY_PORTO, profile=ONLY_PORTO, history=("Lisbon", "Porto")
    )


async def test_a_new_address_is_told_and_the_old_one_is_history(told: Told) -> None:
    """The fact that was read by its pattern, and what a model makes of it, change as one."""
    old, new = "ada@old.org", "ada@new.org"
    content, quote = "The user's email address is {}.", "My {}email is {}"
    for day, (word, mail) in enumerate((("", old), ("new ", new))):
        words = quote.format(word, mail)
        one = stated(content.format(mail), words, "user", "email address is", mail)
        await told.say(f"{words}.", one, day=day)
    found = await told.answers("What is the user's email?", old, new)
    assert (found.first, found.known) == (new, frozenset({new}))
    assert found.history == (old, new)
    assert old not in found.profile


async def test_a_statement_about_a_thing_changes(told: Told) -> None:
    """However the model puts it: of the book, of its author, or as it was said."""
    names = ("Ann Lee", "Tom Reed", "Eva Moor")
    for day, name in enumerate(names):
        words = f"The author of Dune Road is {name}"
        slot = (
            ("Dune Road", "author is", name),
            (name, "is the author of", "Dune Road"),
            ("The author of Dune Road", "is", name),
        )[day]
        await told.say(f"{words}.", stated(f"{words}.", words, *slot), day=day)
    found = await told.answers("Who is the author of Dune Road?", *names)
    assert found == Answers(
        first=names[-1],
        known=frozenset(names[-1:]),
        profile=frozenset(names[-1:]),
        history=names,
    )


async def test_a_correction_says_what_holds(told: Told) -> None:
    """What was taken back answers no more, though the words that take it back name it."""
    await told.say(
        "I use MongoDB.",
        stated("The user uses MongoDB.", "I use MongoDB", "user", "uses", "MongoDB"),
        day=0,
        session="s",
    )
    words = "It's Postgres, not MongoDB."
    await told.say(
        words,
        stated("The user uses Postgres.", words, "user", "uses", "Postgres"),
        {
            **stated("The user does not use MongoDB.", words, "user", "uses", "MongoDB"),
            "holds": False,
        },
        day=1,
        session="s",
    )
    hits = await told.memory.recall("Which database does the user use?", memory_types="semantic")
    held = {
        hit.memory.slot.object: hit.memory.slot.predicate
        for hit in hits
        if isinstance(hit.memory, SemanticMemory) and hit.memory.slot
    }
    assert held == {"postgres": "uses", "mongodb": "no longer uses"}
    lines = [line.text for one in await told.memory.profiles() for line in one.lines]
    assert not [line for line in lines if "uses MongoDB" in line]


async def torn(told: Told) -> tuple[str, str]:
    """Two homes of one moment: the ids of both, Lisbon and Porto."""
    await told.say("I live in Lisbon.", LISBON, day=0)
    await told.say("I live in Porto.", PORTO, day=0)
    found = await told.answers(*HOME)
    both = ONLY_LISBON | ONLY_PORTO
    assert (found.known, found.disputed, found.profile) == (frozenset(), both, both)
    return (await told.knowledge_of("Lisbon")).id, (await told.knowledge_of("Porto")).id


async def test_a_dispute_is_settled_by_a_confirmation(told: Told) -> None:
    """Marked before, told without a mark afterwards; the other one is history."""
    _, porto = await torn(told)
    await told.memory.confirm(porto)
    found = await told.answers(*HOME)
    assert (found.known, found.disputed, found.profile) == (ONLY_PORTO, frozenset(), ONLY_PORTO)
    assert set(found.history) == {"Lisbon", "Porto"}


async def test_a_dispute_that_nothing_settles_waits_for_a_person(told: Told) -> None:
    """The review shows both, and what is answered holds."""
    lisbon, porto = await torn(told)

    async def waits() -> bool:
        return [{m.id for m in r.memories} for r in await told.memory.reviews()] == [
            {lisbon, porto}
        ]

    await comes_true(waits)
    (review,) = await told.memory.reviews()
    await told.memory.review(review.review_id, keep=lisbon)
    found = await told.answers(*HOME)
    assert (found.known, found.disputed, found.profile) == (ONLY_LISBON, frozenset(), ONLY_LISBON)


async def test_what_is_forgotten_is_told_nowhere(told: Told) -> None:
    """Neither by what was known nor by its turn; the other one holds."""
    await told.say("I live in Lisbon.", LISBON, day=0)
    porto = await told.say("I live in Porto now.", {**PORTO, "begins": True}, day=9)
    await told.memory.forget(porto)
    assert await told.answers(*HOME) == Answers(
        first="Lisbon", known=ONLY_LISBON, profile=ONLY_LISBON, history=("Lisbon",)
    )
