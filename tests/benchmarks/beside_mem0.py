"""``uv run python -m tests.benchmarks.beside_mem0 [SIZE]``: searching, beside mem0.

Both hold the same texts (10,000 by default) of one user in the same minute, with the same
embedder, on Qdrant's own code in the process: Engram a folder of its engine, mem0 the local mode
of qdrant-client, as it does without a server, with ``infer=False``, so that no language model is
asked. Both are asked the same questions for ten answers. mem0 comes into an environment of its own
by ``uv run --with``, which needs a network once. Fails where mem0 is not ``BAR`` times slower.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from engram.domain.scope import Scope
from engram.embedding.choice import make_embedder
from engram.ports import Embedder
from engram.settings import Settings
from tests.benchmarks.people import everything, questions
from tests.benchmarks.recall_scale import in_a_process

MEM0: Final = "mem0ai==2.2.1"
BAR: Final = 15.0
SIZE: Final = 10_000
_USER: Final = "somebody"
_QUESTIONS: Final = 30
_ANSWERS: Final = 10


def main() -> int:
    """Measure both and print how they compare; 1 below the bar."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("size", nargs="?", type=int, default=SIZE)
    parser.add_argument("--mem0", action="store_true", help="measure mem0 in this process, as JSON")
    chosen = parser.parse_args()
    if chosen.mem0:
        print(json.dumps(_mem0(chosen.size)))  # noqa: T201 - a command
        return 0
    theirs = json.loads(_with_mem0(chosen.size))
    ours = json.loads(in_a_process("recall", chosen.size))
    times = theirs["p50"] / ours["p50"]
    print(  # noqa: T201 - a command
        f"{chosen.size} memories, p50: mem0 {theirs['p50']:.1f} ms, Engram {ours['p50']:.1f} ms, "
        f"{times:.1f} times (at least {BAR:.0f})"
    )
    return 0 if times >= BAR else 1


def _with_mem0(size: int) -> str:
    command = ["uv", "run", "--with", MEM0, "python", "-m", "tests.benchmarks.beside_mem0"]
    done = subprocess.run(
        [*command, str(size), "--mem0"], check=True, stdout=subprocess.PIPE, text=True
    )
    return done.stdout.splitlines()[-1]


def _mem0(size: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory(prefix="engram-mem0-") as folder:
        # It writes to the home folder, tells its makers of its use, and wants a key it never uses.
        os.environ |= {"MEM0_DIR": folder, "MEM0_TELEMETRY": "False", "OPENAI_API_KEY": "none"}
        memory = _opened(Path(folder))
        scope = Scope(namespace="default", user_id=_USER)
        for one in everything(scope, size):
            memory.add(one.content, user_id=_USER, infer=False)
        took = []
        for question in questions(_QUESTIONS):
            begun = time.perf_counter()
            found = memory.search(question, filters={"user_id": _USER}, top_k=_ANSWERS)
            took.append((time.perf_counter() - begun) * 1000)
            if not found["results"]:
                sys.exit(f"mem0 found nothing for {question!r}: nothing is compared")
        return {"p50": statistics.median(took)}


def _opened(folder: Path) -> Any:
    # Only in the environment that _with_mem0 makes.
    from mem0 import Memory  # type: ignore[import-not-found,unused-ignore]  # noqa: PLC0415

    embedder = make_embedder(Settings.load().embedder)
    loop = asyncio.new_event_loop()
    store = {
        "collection_name": "memories",
        "path": str(folder / "qdrant"),
        "embedding_model_dims": loop.run_until_complete(embedder.dimensions()),
        "on_disk": True,
    }
    memory = Memory.from_config(
        {
            "vector_store": {"provider": "qdrant", "config": store},
            "history_db_path": str(folder / "history.sqlite"),
        }
    )
    memory.embedding_model.embed = partial(_embedded, loop, embedder)
    memory.embedding_model.embed_batch = partial(_all_embedded, loop, embedder)
    return memory


def _embedded(
    loop: asyncio.AbstractEventLoop, embedder: Embedder, text: str, _action: object = None
) -> list[float]:
    return list(loop.run_until_complete(embedder.embed_query(text)).dense)


def _all_embedded(
    loop: asyncio.AbstractEventLoop,
    embedder: Embedder,
    texts: Sequence[str],
    _action: object = None,
) -> list[list[float]]:
    return [list(one.dense) for one in loop.run_until_complete(embedder.embed_documents(texts))]


if __name__ == "__main__":
    sys.exit(main())
