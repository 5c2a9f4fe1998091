"""``uv run python -m tests.benchmarks.locomo FILE``: see :mod:`tests.benchmarks.locomo`."""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from pathlib import Path

from tests.benchmarks.locomo.conversations import load
from tests.benchmarks.locomo.running import report, run
from tests.benchmarks.locomo.weights import leave_one_out


def main() -> None:
    """Measure recall on a file in LoCoMo's format, and print a table."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.locomo", description=__doc__)
    parser.add_argument("file", type=Path, help="a file in the format of locomo10.json")
    parser.add_argument(
        "--embedded",
        action="store_true",
        help="take the whole path through a Temporal server and MemoryStore (slower)",
    )
    parser.add_argument(
        "--leave-one-out",
        action="store_true",
        help="fit the weights of the score to all conversations but one, measure on that one, "
        "and so for each; prints the fitted weights too",
    )
    chosen = parser.parse_args()
    conversations = load(chosen.file)
    with tempfile.TemporaryDirectory(prefix="engram-locomo-") as folder:
        if chosen.leave_one_out:
            print(asyncio.run(leave_one_out(conversations, Path(folder))))  # noqa: T201 - a command
            return
        answers = asyncio.run(run(conversations, Path(folder), embedded=chosen.embedded))
    print(report(answers))  # noqa: T201 - a command


if __name__ == "__main__":
    main()
