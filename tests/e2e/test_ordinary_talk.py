"""A whole Engram after a minute of ordinary talk of several users: nothing is wrong by itself.

ENGRAM_TALK_SECONDS says how long they talk, ENGRAM_TALK_USERS how many they are.
"""

from __future__ import annotations

import asyncio
import os
import random
import time
from pathlib import Path

import pytest

import engram
from engram.client.memory import MemoryStore
from tests.support.running_up import running_up

SECONDS = int(os.environ.get("ENGRAM_TALK_SECONDS", "60"))
USERS = int(os.environ.get("ENGRAM_TALK_USERS", "4"))
TURNS_OF_A_SESSION = 20
NAMES = ("Ada", "Bob", "Cleo", "Dan")
PLACES = ("Porto", "Lisbon", "Oslo")
THINGS = (
    "tea bread chess jazz hiking pottery sailing cycling opera gardening databases compilers "
    "poems kites stamps"
).split()


def sentence(chance: random.Random, number: int) -> str:
    """Something that people say: liked again, moved again, liked no more, or only told."""
    who, what, where = chance.choice(NAMES), chance.choice(THINGS), chance.choice(PLACES)
    return chance.choice(
        (
            f"I talked with {who} about {what} in {where} and number {number} came up again.",
            f"{who} said that {what} is what everybody does in {where} on weekend {number}.",
            f"I like {what} more than ever, entry {number}, and {who} agrees from {where}.",
            f"I like {what}.",
            f"I don't like {what} any more.",
            f"I moved to {where}.",
        )
    )


async def talk(memory: MemoryStore, chance: random.Random, end: float) -> None:
    """Say something and ask something, over and over."""
    number = 0
    while time.monotonic() < end:
        number += 1
        session = f"s{number // TURNS_OF_A_SESSION}"
        await memory.encode(sentence(chance, number), session_id=session)
        await memory.recall(f"What about {chance.choice(THINGS)} with {chance.choice(NAMES)}?")
        if number % TURNS_OF_A_SESSION == TURNS_OF_A_SESSION - 1:
            await memory.end_session(session)
        await asyncio.sleep(0.3 * chance.random())
    await memory.consolidate()


async def everybody(folder: Path) -> None:
    """All users at once, beside whoever owns the folder."""
    end = time.monotonic() + SECONDS
    async with engram.open(folder, user_id="u0") as store:
        users = [store.for_user(f"u{number}") for number in range(USERS)]
        talking = [
            talk(user, random.Random(number), end)  # noqa: S311 - what is said, and nothing secret
            for number, user in enumerate(users)
        ]
        await asyncio.gather(*talking)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_nothing_is_wrong_after_ordinary_talk(tmp_path: Path) -> None:
    """`engram validate` and `engram health` exit 0 for every user."""
    with running_up(tmp_path) as up:
        asyncio.run(everybody(up.folder))
        for number in range(USERS):
            for command in ("validate", "health"):
                said = up.engram(command, "--user", f"u{number}")
                assert said.code == 0, said.stdout
