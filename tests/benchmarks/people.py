"""Made-up conversations and conclusions of any size, the same on every run."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from engram.domain.confidence import Confidence, ExtractionMethod
from engram.domain.identity import content_hash, derived_id, episode_id
from engram.domain.memories import (
    AnyMemory,
    DerivedMemory,
    Episode,
    Link,
    MemoryType,
    NegationFact,
    SemanticMemory,
)
from engram.domain.scope import Scope
from engram.ports import Embedder, NewMemory
from engram.settings import Settings
from engram.storage.edge import EdgeRepository
from engram.storage.edge_engine import EdgeDialect, engine
from engram.storage.filters import Translator
from engram.storage.payload import DENSE, SPARSE

NOW = datetime(2025, 1, 1, tzinfo=UTC)

PEOPLE = "Ada Bea Carl Dana Emil Fay Gus Hana Ivo Jo Kim Lea Max Nina Otto Pia".split()
DEEDS = """met called painted repaired sold bought borrowed planted cooked baked wrote read watched
    visited cleaned measured planned cancelled booked forgot""".split()
THINGS = """bicycle piano garden kitchen novel report camera ticket tent canoe invoice recipe guitar
    printer letter ladder lamp carpet sofa window engine map compass kettle blanket violin basket
    mirror clock sweater bridge harbour tower market museum library bakery stadium forest island
    database server keyboard contract budget meeting deadline prototype release""".split()
TRAITS = """red old tiny broken heavy famous quiet wooden electric cheap borrowed favourite blue
    noisy rusty elegant spare second hidden foreign""".split()
PLACES = """Lisbon Porto Oslo Bergen Turin Genoa Lyon Nantes Graz Linz Ghent Bruges Cork Galway
    Leeds York Bath Kyoto Osaka Nara""".split()

CITIES = "Paris London Rome Lisbon Porto Oslo Bergen Turin Milan Ghent".split()


def a_turn(chance: random.Random) -> str:
    """Something a person could say, of 15 to 40 words."""
    pick = chance.choice
    clauses = [
        f"{pick(PEOPLE)} {pick(DEEDS)} the {pick(TRAITS)} {pick(THINGS)} in {pick(PLACES)}, "
        f"and then we {pick(DEEDS)} a {pick(THINGS)}"
        for _ in range(chance.randint(1, 3))
    ]
    return "; ".join(clauses) + "."


def questions(count: int) -> list[str]:
    """So many questions."""
    chance = random.Random(99)  # noqa: S311 - repeatable text, nothing secret
    return [
        f"Who {chance.choice(DEEDS)} the {chance.choice(THINGS)} in {chance.choice(PLACES)}?"
        for _ in range(count)
    ]


def episodes(scope: Scope, count: int) -> list[Episode]:
    """A user's conversation, sessions of 100 turns."""
    chance = random.Random(1)  # noqa: S311 - repeatable text, nothing secret
    found = []
    for number in range(count):
        said = NOW - timedelta(minutes=30 * (count - number))
        session, message = f"s{number // 100}", f"m{number}"
        found.append(
            Episode(
                id=episode_id(scope, session, message),
                namespace=scope.namespace,
                user_id=scope.user_id,
                content=a_turn(chance),
                known_at=said,
                created_at=said,
                session_id=session,
                role="user",
                timestamp=said,
                message_id=message,
                sequence=number % 100,
            )
        )
    return found


def conclusions(scope: Scope, told: list[Episode], count: int) -> list[SemanticMemory]:
    """What was concluded from the turns, each linked to three others."""
    chance = random.Random(2)  # noqa: S311 - repeatable text, nothing secret
    pick = chance.choice
    texts = [
        f"{pick(PEOPLE)} {pick(DEEDS)} the {pick(TRAITS)} {pick(THINGS)} in {pick(PLACES)} ({n})"
        for n in range(count)
    ]
    ids = [derived_id(scope, MemoryType.SEMANTIC, content_hash(text), 0) for text in texts]
    found = []
    for text in texts:
        source = pick(told)
        links = tuple(
            Link(
                target_id=target,
                confidence=chance.uniform(0.1, 1.0),
                first_seen=source.timestamp,
                last_seen=source.timestamp,
            )
            for target in chance.sample(ids, min(3, count))
        )
        found.append(SemanticMemory(**_derived(scope, "semantic", text, source), links=links))
    return found


def denials(scope: Scope, told: list[Episode], count: int) -> list[NegationFact]:
    """What is explicitly not so."""
    chance = random.Random(3)  # noqa: S311 - repeatable text, nothing secret
    found = []
    for number in range(count):
        who, trait, thing = (chance.choice(words) for words in (PEOPLE, TRAITS, THINGS))
        text = f"{who} did not paint the {trait} {thing} ({number})"
        found.append(
            NegationFact(
                **_derived(scope, "negation", text, chance.choice(told)),
                negates_pattern=f"paint {trait} {thing}",
                subject=who.lower(),
                evidence=text,
            )
        )
    return found


def _derived(scope: Scope, kind: str, text: str, source: Episode) -> dict[str, Any]:
    identity = content_hash(text)
    return {
        "id": derived_id(scope, kind, identity, 0),
        "namespace": scope.namespace,
        "user_id": scope.user_id,
        "content": text,
        "known_at": source.timestamp,
        "created_at": source.timestamp,
        "source_episode_ids": (source.id,),
        "event_at": source.timestamp,
        "derived_at": source.timestamp,
        "confidence": Confidence(
            method=ExtractionMethod.EXTRACTED, extraction=0.9, last_confirmed=source.timestamp
        ),
        "identity": identity,
    }


def of(scope: Scope, memory: AnyMemory) -> AnyMemory:
    """The same memory, of another user."""
    changed: dict[str, object] = {"namespace": scope.namespace, "user_id": scope.user_id}
    if isinstance(memory, Episode):
        changed["id"] = episode_id(scope, memory.session_id or "", memory.message_id)
    if isinstance(memory, DerivedMemory):
        changed["id"] = derived_id(scope, memory.type, memory.identity, memory.generation)
    return memory.model_copy(update=changed)


async def embedded(embedder: Embedder, memories: list[AnyMemory]) -> list[NewMemory]:
    """Memories with their vectors; a turn is indexed with the one before it."""
    before: list[str | None] = [
        memories[at - 1].content if at and isinstance(one, Episode) and one.sequence else None
        for at, one in enumerate(memories)
    ]
    vectors = await embedder.embed_documents([one.indexed_text for one in memories], before)
    return [NewMemory(one, vector) for one, vector in zip(memories, vectors, strict=True)]


def everything(scope: Scope, count: int) -> Iterator[AnyMemory]:
    """So many memories of a user: four in five are turns."""
    told = episodes(scope, count * 4 // 5)
    yield from told
    yield from conclusions(scope, told, count * 9 // 50)
    yield from denials(scope, told, count // 50)


def words(number: int) -> str:
    """A turn of a conversation in which six of ten turns state something."""
    return (
        f"I moved to {CITIES[(number // 10) % 10]}.",
        f"I use Tool{number} for notes.",
        "What a lovely day, thanks for asking.",
        f"I like dish{number} a lot.",
        "Could you summarise that again please?",
        f"I have a dog called Rex{number}.",
        "Hmm, not sure. Let me think about it for a while.",
        f"I work at Company{number // 100}.",
        "The weather report said rain, then sun, then rain again.",
        f"I plan to visit Town{number}.",
    )[number % 10]


def raw_queries(
    repository: EdgeRepository, embedder: Embedder, whose: Scope
) -> Callable[[str], Awaitable[None]]:
    """The engine's own search among a user's turns, and nothing around it."""
    shard = repository.shards[MemoryType.EPISODIC]
    mine = Translator(EdgeDialect()).tenant(whose)
    limit = Settings.load().recall_candidates + 16

    async def ask(query: str) -> None:
        vectors = await embedder.embed_query(query)
        sparse = engine.SparseVector(list(vectors.sparse.indices), list(vectors.sparse.values))
        idf = engine.SearchParams(idf=engine.IdfParams(corpus=mine))
        dense = engine.Query.Nearest(list(vectors.dense), DENSE)
        shard.query(engine.QueryRequest(limit=limit, query=dense, filter=mine))
        words = engine.Query.Nearest(sparse, SPARSE)
        shard.query(engine.QueryRequest(limit=limit, query=words, filter=mine, params=idf))

    return ask
