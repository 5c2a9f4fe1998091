"""``uv run python -m tests.benchmarks.recall_quality FILE...``."""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from pathlib import Path

from engram.evaluation.measuring import RankedAnswer, counted, ids_of
from engram.evaluation.metrics import DEPTH
from engram.evaluation.sets import load
from engram.settings import Settings
from tests.benchmarks.recall_quality.candidates import candidates
from tests.benchmarks.recall_quality.memories import opened_whole
from tests.benchmarks.recall_quality.table import (
    against,
    answers,
    by_kind,
    plain_answers,
    table_of_parts,
    without_each_part,
)


def main() -> None:
    """Measure recall on files of conversations and questions, and print tables."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.recall_quality")
    parser.add_argument("files", type=Path, nargs="+", help="LoCoMo, LongMemEval or our format")
    parser.add_argument("--kinds", action="store_true", help="also by kind of question")
    parser.add_argument(
        "--parts", action="store_true", help="also without each part of the score in turn"
    )
    parser.add_argument(
        "--whole",
        action="store_true",
        help="take the whole path through a Temporal server and MemoryStore (slower)",
    )
    parser.add_argument(
        "--cache",
        type=Path,
        default=Path(tempfile.gettempdir()) / "engram-recall-quality",
        help="where candidates are kept from one measurement to the next",
    )
    chosen = parser.parse_args()
    if chosen.whole:
        for file in chosen.files:
            _show(f"{file.stem}\n{by_kind(asyncio.run(_whole(file)))}")
        return
    settings = Settings.load()
    sets = {file.stem: candidates(file, chosen.cache) for file in chosen.files}
    _show(f"{'':<34}   plain: R@5 R@10 MRR   Engram: R@5 R@10 MRR   gain [90 %]")
    for name, asked in sets.items():
        found, plain = answers(asked, settings), plain_answers(asked)
        _show(against(name, counted(plain), counted(found)))
        if chosen.kinds:
            _show(by_kind(found))
    if chosen.parts:
        parts = {name: without_each_part(asked, settings) for name, asked in sets.items()}
        _show(table_of_parts(parts))


async def _whole(file: Path) -> list[RankedAnswer]:
    conversations = load(file)
    with tempfile.TemporaryDirectory(prefix="engram-quality-") as folder:
        async with opened_whole(Path(folder)) as memories:
            for conversation in conversations:
                await memories.keep(conversation)
            return [
                RankedAnswer(
                    question, ids_of(await memories.ask(conversation, question, limit=DEPTH))
                )
                for conversation in conversations
                for question in conversation.questions
            ]


def _show(text: str) -> None:
    print(text, flush=True)  # noqa: T201 - a command


if __name__ == "__main__":
    main()
