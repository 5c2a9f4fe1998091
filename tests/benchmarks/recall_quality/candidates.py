"""What the store brings up for each question, kept in a file: a score is tried in seconds.

The first measurement of a file stores its turns, searches for every question, and keeps what was
found with the negations that speak against it. The next ones only score. What was kept is thrown
away when the file or the code that makes or finds candidates has changed.
"""

from __future__ import annotations

import asyncio
import pickle
import tempfile
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

import engram
from engram.evaluation.measuring import AskedQuestion, bring_up
from engram.evaluation.memories import measured_memory
from engram.evaluation.sets import load
from engram.settings import Settings
from engram.system import new_id, system_clock
from tests.benchmarks.recall_quality.plain import plain_rankings

_CODE = (
    "embedding",
    "evaluation",
    "storage",
    "consolidation/turns.py",
    "recall/search.py",
    "domain/memories.py",
    "language",
)
_HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Beside:
    """A question with its candidates, and what plain fusion finds.

    Attributes:
        plain: The ids of turns that plain fusion finds, best first.
    """

    asked: AskedQuestion
    plain: tuple[str, ...]


def candidates(file: Path, cache: Path) -> list[Beside]:
    """Every question of a file with its candidates, from ``cache`` where they are there."""
    kept = cache / f"{file.stem}-{_fingerprint(file)}.pickle"
    if kept.exists():
        # Our own file, in the user's own cache.
        asked: list[Beside] = pickle.loads(kept.read_bytes())  # noqa: S301
        return asked
    asked = asyncio.run(_found(file))
    cache.mkdir(parents=True, exist_ok=True)
    kept.write_bytes(pickle.dumps(asked))
    return asked


async def _found(file: Path) -> list[Beside]:
    found: list[Beside] = []
    settings = Settings.load()
    with tempfile.TemporaryDirectory(prefix="engram-quality-") as folder:
        async with measured_memory(
            Path(folder), settings, clock=system_clock, new_id=new_id
        ) as memory:
            for talk in load(file):
                await memory.keep(talk)
                plain = await plain_rankings(talk, memory.embedder)
                asked = await bring_up(memory, [talk], settings, lambda _: None)
                found += map(Beside, asked, map(tuple, plain))
    return found


def _fingerprint(file: Path) -> str:
    digest = blake2b(file.read_bytes(), digest_size=8)
    root = Path(engram.__file__).parent
    code = [path for name in _CODE for path in sorted([root / name, *(root / name).rglob("*")])]
    for path in (*code, *(_HERE / f"{name}.py" for name in ("plain",))):
        if path.suffix in {".py", ".toml"}:
            digest.update(path.read_bytes())
    return digest.hexdigest()
