"""The offline default: wordllama's 256-dimensional model, inside its own wheel."""

from __future__ import annotations

import asyncio
import functools
import importlib
import importlib.metadata
import logging
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pydantic_ai.embeddings import EmbeddingModel, EmbeddingResult, EmbeddingSettings
from pydantic_ai.embeddings.result import EmbedInputType

from engram.errors import EmbeddedPartMissing

CONFIG = "l2_supercat"
DIMENSIONS = 256
# About a millisecond of work; more goes to a thread so that the event loop stays free.
_CHARACTERS_ON_THE_LOOP = 3_000
# The tokenizer keeps the interpreter lock for a whole call, hence calls of bounded length.
_WINDOW_CHARACTERS = 4_000
_LOADING = threading.Lock()


class WordLlamaModel(EmbeddingModel):
    """Static word vectors, averaged and normalised: 0.05 ms a text, never the network.

    The model is loaded by the first text (about a second, in a thread).
    """

    def __init__(self, *, settings: EmbeddingSettings | None = None) -> None:
        super().__init__(settings=settings)
        self._inference: Any = None

    @property
    def model_name(self) -> str:
        """Configuration and size of the vectors."""
        return f"{CONFIG}_{DIMENSIONS}"

    @property
    def system(self) -> str:
        """The provider's name."""
        return "wordllama"

    @property
    def version(self) -> str:
        """Version of the package, which carries the weights.

        Raises:
            EmbeddedPartMissing: it is not installed.
        """
        try:
            return importlib.metadata.version("wordllama")
        except importlib.metadata.PackageNotFoundError as error:
            raise _missing() from error

    @property
    def dimensions(self) -> int:
        """Length of every vector."""
        return DIMENSIONS

    async def embed(
        self,
        inputs: str | Sequence[str],
        *,
        input_type: EmbedInputType,
        settings: EmbeddingSettings | None = None,
    ) -> EmbeddingResult:
        """Unit vectors of ``inputs``; queries and documents are treated alike.

        Raises:
            EmbeddedPartMissing: the package is not installed.
        """
        texts, _ = self.prepare_embed(inputs, settings)
        if self._inference is None or sum(map(len, texts)) > _CHARACTERS_ON_THE_LOOP:
            vectors = await asyncio.to_thread(self._vectors, texts)
        else:
            vectors = self._vectors(texts)
        return EmbeddingResult(
            embeddings=vectors,
            inputs=texts,
            input_type=input_type,
            model_name=self.model_name,
            provider_name=self.system,
        )

    def _vectors(self, texts: Sequence[str]) -> list[list[float]]:
        inference = self._load()
        return [_vector(inference, text) for text in texts]

    def _load(self) -> Any:
        with _LOADING:
            if self._inference is None:
                self._inference = _load_inference(_import_quietly())
            return self._inference


# It is only read from: one for the process, however many memories are open.
@functools.cache
def _load_inference(package: Any) -> Any:
    folder = Path(package.__file__).parent
    inference = package.WordLlama.load(
        config=CONFIG, dim=DIMENSIONS, cache_dir=folder, disable_download=True
    )
    # Texts are averaged one by one: padding a batch to its longest text would
    # cost half a gigabyte where one turn has 32 KB.
    inference.tokenizer.no_padding()
    return inference


def _import_quietly() -> Any:
    # The package configures the root logger when imported; logging is the application's.
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    try:
        return importlib.import_module("wordllama")
    except ImportError as error:
        raise _missing() from error
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)


def _missing() -> EmbeddedPartMissing:
    return EmbeddedPartMissing(
        "The offline embedding model is not installed.",
        hint="Install engram-memory[embedded], or set ENGRAM_EMBEDDER to fastembed:<model> "
        "or to an embedding model of a provider, such as openai:text-embedding-3-small.",
        details={"package": "wordllama", "extra": "embedded"},
    )


def _vector(inference: Any, text: str) -> list[float]:
    ids: list[int] = []
    for window in _windows(text):
        ids.extend(inference.tokenizer.encode(window, add_special_tokens=False).ids)
    # A text without any token gets the vector of the unknown token: usable, and near nothing.
    mean = inference.embedding[ids or [0]].mean(axis=0)
    length = float((mean * mean).sum()) ** 0.5
    values: list[float] = (mean / length if length else mean).tolist()
    return values


def _windows(text: str) -> Iterator[str]:
    start = 0
    while len(text) - start > _WINDOW_CHARACTERS:
        cut = text.rfind(" ", start + 1, start + _WINDOW_CHARACTERS)
        cut = cut if cut > 0 else start + _WINDOW_CHARACTERS
        yield text[start:cut]
        start = cut
    yield text[start:]
