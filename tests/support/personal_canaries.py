"""Personal data of every kind, and each way by which somebody could bring it into a memory."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

from engram import MemoryStore, Turn
from engram.domain.confidence import Confidence, ExtractionMethod
from engram.domain.identity import derived_id, episode_id
from engram.domain.memories import AnyMemory, Episode, Fact, FactCategory, MemoryType
from engram.domain.scope import Scope
from engram.transfer.memories import ImportedMemory
from tests.support.clock import NOW
from tests.support.exports import export_lines

CANARIES = {
    "zanzibarian@example.org": "[e-mail]",
    "mia.quagga+news@sub.example.co.uk": "[e-mail]",
    "j\u00f6rg.okapi@b\u00fccher.de": "[e-mail]",
    "+1 212 555 0142": "[phone]",
    "(415) 555-2671": "[phone]",
    "+47 22 98 76 54": "[phone]",
    "4539 5787 6362 1486": "[card]",
    "3714-496353-98431": "[card]",
    "5555555555554444": "[card]",
    "DE89 3704 0044 0532 0130 00": "[iban]",
    "NO9386011117947": "[iban]",
    "203.84.217.99": "[ip]",
    "2001:db8::8a2e:7334": "[ip]",
    "536-22-8726": "[id]",
    "JT 48 39 27 C": "[id]",
    "ghp_9Zk3QwErTyUiOpAsDfGhJkLzXcVbNm12": "[secret]",
    "AKIA3EXAMPLE7QUAGGA9": "[secret]",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJva2FwaSJ9.9xQk3mZ_okapi-77": "[secret]",
    "1742 Quagga Lane, Leeds": "[address]",
    "12 North Okapi Street, Springfield, IL 62704": "[address]",
}
SAID = [f"Please note that it is {canary}, thank you." for canary in CANARIES]
MASKED = {f"Please note that it is {token}, thank you." for token in CANARIES.values()}


async def words(memory: MemoryStore) -> set[str]:
    """The words of all memories of the user."""
    page = await memory.list(limit=500, include_test=True)
    return {one.content for one in page.memories}


async def tell_all(memory: MemoryStore) -> None:
    """Say each of them, and one in each other field that holds words."""
    await memory.encode([Turn(content=one) for one in SAID], session_id="s1")
    canary = next(iter(CANARIES))
    turn = Turn(content="Hello.", speaker=canary, tags=(canary,), metadata={canary: canary})
    await memory.encode(turn, session_id="s2")
    assert await words(memory) >= MASKED
    assert {one.content for one in await memory.working_memory("s1")} == MASKED


async def import_all(memory: MemoryStore, file: Path) -> None:
    """A file, twice, and the turns of a program."""
    summary = await memory.import_file(file, consolidate=False)
    assert (summary.tally.stored, summary.tally.conflicts) == (len(SAID), 0)
    turns = [("s2", Turn(content=one)) for one in SAID]
    await memory.import_turns(turns, consolidate=False)
    assert await words(memory) == MASKED


async def bring_in(memory: MemoryStore) -> None:
    """Memories from elsewhere and test memories, which the process that stores them masks."""
    await memory.import_memories([ImportedMemory(content=one, timestamp=NOW) for one in SAID])
    for one in SAID[:3]:
        await memory.create_test(one, conclusion=True)
    assert await words(memory) == MASKED


def exported(scope: Scope) -> list[AnyMemory]:
    """What a user said in a namespace without the rule, and a fact that was found in it."""
    turns = [
        Episode(
            id=episode_id(scope, "s1", f"m{number}"),
            namespace=scope.namespace,
            user_id=scope.user_id,
            content=one,
            known_at=NOW - timedelta(days=9),
            created_at=NOW - timedelta(days=9),
            session_id="s1",
            role="user",
            timestamp=NOW - timedelta(days=9),
            message_id=f"m{number}",
            sequence=number,
        )
        for number, one in enumerate(SAID)
    ]
    mail = next(iter(CANARIES))
    fact = Fact(
        id=derived_id(scope, MemoryType.FACTUAL, f"email:{mail}", 0),
        namespace=scope.namespace,
        user_id=scope.user_id,
        content=f"email address: {mail}",
        known_at=NOW - timedelta(days=9),
        created_at=NOW - timedelta(days=9),
        event_at=NOW - timedelta(days=9),
        derived_at=NOW - timedelta(days=9),
        source_episode_ids=(turns[0].id,),
        confidence=Confidence(
            method=ExtractionMethod.EXTRACTED,
            extraction=0.9,
            last_confirmed=NOW - timedelta(days=9),
        ),
        identity=f"email:{mail}",
        category=FactCategory.EMAIL,
        value=mail,
        evidence=mail,
    )
    return [*turns, fact]


def write_export(file: Path) -> None:
    """An export of :func:`exported`."""
    source = Scope.of("open", "ada")
    lines = export_lines(source, exported(source))
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")


def write_turns(file: Path) -> None:
    """What was said, as JSON lines."""
    lines = [{"role": "user", "content": one, "session_id": "s1"} for one in SAID]
    file.write_text("\n".join(json.dumps(line) for line in lines), encoding="utf-8")


async def restore(memory: MemoryStore, file: Path) -> None:
    """An export of a namespace without the rule."""
    summary = await memory.import_file(file)
    assert (summary.tally.stored, summary.left_out) == (len(SAID), 1)
    assert await words(memory) == MASKED
