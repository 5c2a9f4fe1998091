"""What the store brings up for each question, kept in a file: a score is tried in seconds.

The first measurement of a file stores its turns, searches for every question, and keeps what was
found with the negations that speak against it. The next ones only score. What was kept is thrown
away when the file or the code that makes or finds candidates has changed.
"""

from __future__ import annotations

import asyncio
import pickle
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from hashlib import blake2b
from pathlib import Path

import engram
from engram.domain.memories import Episode
from engram.evaluation.metrics import DEPTH
from engram.language.query import analyse
from engram.recall.results import Ranked, RecallHit, by_score
from engram.recall.score import score, weighted
from engram.recall.search import FoundMemory
from engram.recall.stages import newest_first, without_repeats
from engram.settings import Settings
from tests.benchmarks.recall_quality.memories import opened
from tests.benchmarks.recall_quality.plain import plain_rankings
from tests.benchmarks.recall_quality.sets import Question, load

_CODE = (
    "embedding",
    "storage",
    "consolidation/turns.py",
    "recall/search.py",
    "domain/memories.py",
    "language/negation_scope.py",
)
_HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Asked:
    """A question with what the store brings up for it.

    Attributes:
        found: The candidates, best first by the search.
        denied: Ids of the turns among them that a negation speaks against.
        plain: The ids of turns that plain fusion finds, best first.
    """

    conversation: str
    question: Question
    now: datetime
    found: tuple[FoundMemory, ...]
    denied: frozenset[str]
    plain: tuple[str, ...]


def candidates(file: Path, cache: Path) -> list[Asked]:
    """Every question of a file with its candidates, from ``cache`` where they are there."""
    kept = cache / f"{file.stem}-{_fingerprint(file)}.pickle"
    if kept.exists():
        # Our own file, in the user's own cache.
        asked: list[Asked] = pickle.loads(kept.read_bytes())  # noqa: S301
        return asked
    asked = asyncio.run(_found(file))
    cache.mkdir(parents=True, exist_ok=True)
    kept.write_bytes(pickle.dumps(asked))
    return asked


def ranking(asked: Asked, settings: Settings) -> tuple[str, ...]:
    """The ids of the turns that Engram answers with, best first: as recall does.

    Without links, and with no conclusions to follow.
    """
    analysis = analyse(asked.question.text, asked.now)
    scored = score(asked.found, analysis, settings.recall_weights)
    factors = settings.recall_factors
    found = weighted(scored, asked.now, settings.lifecycle_rules, factors)
    if analysis.period is None:
        stride = DEPTH + DEPTH // 2 + 1
        found = [*newest_first(found[:stride]), *found[stride:]]
    lowered = by_score(
        [one.times(factors.negated, "negated") if _is_denied(one, asked) else one for one in found]
    )
    return ids_of(without_repeats(lowered)[:DEPTH])


def ids_of(found: Iterable[Ranked | RecallHit]) -> tuple[str, ...]:
    """The ids that the file has for the turns among them, in their order."""
    memories = (one.memory for one in found)
    return tuple(one.message_id for one in memories if isinstance(one, Episode))


def _is_denied(one: Ranked, asked: Asked) -> bool:
    return one.memory.id in asked.denied


async def _found(file: Path) -> list[Asked]:
    asked: list[Asked] = []
    with tempfile.TemporaryDirectory(prefix="engram-quality-") as folder:
        async with opened(Path(folder)) as memories:
            for conversation in load(file):
                await memories.keep(conversation)
                plain = await plain_rankings(conversation, memories.embedder)
                for question, order in zip(conversation.questions, plain, strict=True):
                    now, found, denied = await memories.bring_up(
                        conversation, question, limit=DEPTH
                    )
                    one = Asked(conversation.name, question, now, found, denied, tuple(order))
                    asked.append(one)
    return asked


def _fingerprint(file: Path) -> str:
    digest = blake2b(file.read_bytes(), digest_size=8)
    root = Path(engram.__file__).parent
    code = [path for name in _CODE for path in sorted([root / name, *(root / name).glob("*.py")])]
    for path in (*code, *(_HERE / f"{name}.py" for name in ("memories", "sets", "plain"))):
        if path.is_file():
            digest.update(path.read_bytes())
    return digest.hexdigest()
