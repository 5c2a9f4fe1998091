"""Embedding models on this machine: wordllama (the offline default) and fastembed."""

from __future__ import annotations

import asyncio
import functools
import importlib
import json
import logging
import struct
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pydantic_ai.embeddings import EmbeddingModel, EmbeddingResult, EmbeddingSettings
from pydantic_ai.embeddings.result import EmbedInputType

from engram.domain.identity import stream_safe
from engram.embedding.offline import CONFIG, DIMENSIONS, NAME, installed_version, package_missing
from engram.errors import EmbeddedPartMissing, InvalidSettings
from engram.giving_way import computed

# --- the offline default: wordllama's 256-dimensional model, inside its own wheel

# About a millisecond of work; more goes to a thread so that the event loop stays free.
CHARACTERS_ON_THE_LOOP = 3_000
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
        return NAME

    # Read once: it is asked for with each turn, and the package's metadata are a file.
    @functools.cached_property
    def version(self) -> str:
        """Version of the package, which carries the weights.

        Raises:
            EmbeddedPartMissing: it is not installed.
        """
        return installed_version()

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
        if self._inference is None or sum(map(len, texts)) > CHARACTERS_ON_THE_LOOP:
            vectors = await computed(self._vectors, texts)
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


def _vector(inference: Any, text: str) -> list[float]:
    ids: list[int] = []
    for window in _windows(stream_safe(text)):
        ids.extend(inference.tokenizer.encode(window, add_special_tokens=False).ids)
    # A text without any token gets the vector of the unknown token: usable, and near nothing.
    mean = inference.embedding[ids or [0]].astype("f4").mean(axis=0)
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


# --- ``fastembed:<model>``: ONNX models on this machine's processor (extra ``fastembed``)


class FastEmbedModel(EmbeddingModel):
    """A model that the package ``fastembed`` knows by name.

    The first text loads it, and downloads it if it was never loaded on this
    machine. Everything runs in a thread, one batch at a time.
    """

    def __init__(self, model_name: str, *, settings: EmbeddingSettings | None = None) -> None:
        super().__init__(settings=settings)
        self._model_name = model_name
        self._model: Any = None
        self._one_at_a_time = threading.Lock()

    @property
    def model_name(self) -> str:
        """The name by which fastembed knows the model."""
        return self._model_name

    @property
    def system(self) -> str:
        """The provider's name."""
        return "fastembed"

    async def embed(
        self,
        inputs: str | Sequence[str],
        *,
        input_type: EmbedInputType,
        settings: EmbeddingSettings | None = None,
    ) -> EmbeddingResult:
        """Vectors of ``inputs``, with the model's own query or passage prefix.

        Raises:
            EmbeddedPartMissing: the package is not installed.
            InvalidSettings: fastembed does not know the model.
        """
        texts, _ = self.prepare_embed(inputs, settings)
        vectors = await asyncio.to_thread(self._vectors, texts, input_type)
        return EmbeddingResult(
            embeddings=vectors,
            inputs=texts,
            input_type=input_type,
            model_name=self.model_name,
            provider_name=self.system,
        )

    def _vectors(self, texts: Sequence[str], input_type: EmbedInputType) -> list[list[float]]:
        with self._one_at_a_time:
            if self._model is None:
                self._model = _load(self._model_name)
            side = self._model.query_embed if input_type == "query" else self._model.passage_embed
            return [vector.tolist() for vector in side(list(texts))]


def _load(model_name: str) -> Any:
    try:
        package = importlib.import_module("fastembed")
    except ImportError as error:
        raise EmbeddedPartMissing(
            "The package fastembed is not installed.",
            hint="Install engram-memory[fastembed], or set ENGRAM_EMBEDDER to wordllama "
            "or to an embedding model of a provider.",
            details={"package": "fastembed", "extra": "fastembed"},
        ) from error
    try:
        return package.TextEmbedding(model_name=model_name)
    except ValueError as error:
        raise InvalidSettings(
            f"fastembed does not know the embedding model {model_name!r}.",
            allowed="a name from fastembed.TextEmbedding.list_supported_models()",
        ) from error
