"""Settings and stores for tests: real engine, real embedder, real patterns."""

from __future__ import annotations

import itertools
from typing import Any
from uuid import uuid4

from engram.aside import ProcessAside
from engram.consolidation.turns import TurnStore
from engram.embedding.choice import make_embedder
from engram.language.extractor import Extractor
from engram.ports import TurnExtractor
from engram.settings import Settings


def worker_settings(**values: Any) -> Settings:
    """Settings with queues of their own, so that tests never meet."""
    unique = uuid4().hex[:8]
    return Settings.load(
        **{"store_queue": f"store-{unique}", "model_queue": f"model-{unique}", **values}
    )


def turn_store(
    repository: Any,
    settings: Settings,
    *,
    extractor: TurnExtractor | None = None,
    aside: ProcessAside | None = None,
) -> TurnStore:
    """The storing service over a repository."""
    counter = itertools.count()
    return TurnStore(
        repository,
        make_embedder("wordllama"),
        extractor or Extractor(settings),
        lambda: f"write-{next(counter)}-{uuid4()}",
        settings.max_turn_bytes,
        aside,
    )
