"""The embedder over any Pydantic AI embedding model, with BM25 for the words' side."""

from __future__ import annotations

import asyncio
import importlib
import math
import threading
from collections.abc import Callable, Sequence
from typing import Any

import pydantic_ai
from pydantic_ai.embeddings import (
    EmbeddingModel,
    EmbeddingResult,
    EmbeddingSettings,
    WrapperEmbeddingModel,
    infer_embedding_model,
)
from pydantic_ai.embeddings.result import EmbedInputType
from pydantic_ai.exceptions import ModelAPIError, ModelHTTPError, UserError

from engram.contracts.messages import ModelSpent, meter_that_is_up
from engram.distribution import how_to_install
from engram.embedding.batches import CHARACTERS_ON_THE_LOOP, batches
from engram.embedding.bm25 import ENCODING, encode_document, encode_known, encode_query
from engram.errors import (
    EmbeddedPartMissing,
    EmbeddingFailed,
    EngramError,
    InvalidSettings,
    ModelRejected,
    ModelUnavailable,
    WrongVectorSize,
)
from engram.giving_way import computed
from engram.ports import SparseVector, TextVectors
from engram.providers import (
    check_set_up,
    delay_asked_for,
    is_refusal,
    making_providers,
    place_without_answer,
    why_unusable,
)

# --- what a provider's errors mean for the caller: try again, or change something


def translate(error: Exception, identity: str) -> EngramError:
    """The typed error for what an embedding provider raised. Never quotes the texts."""
    if isinstance(error, UserError):
        return ModelRejected(
            f"The embedding model {identity} is not set up: {error}.",
            hint="Check the key and address of the provider, and ENGRAM_EMBEDDER.",
        )
    status = error.status_code if isinstance(error, ModelHTTPError) else None
    if is_refusal(error):
        return ModelRejected(
            f"The embedding model {identity} refused the request"
            + (f" with status {status}." if status else f" ({type(error).__name__})."),
            hint="Check the provider's key, the model's name, its limits and the account's quota.",
            details={"status": status} if status else None,
        )
    if status is not None:
        return _retry(f"The embedding model {identity} answered with status {status}.", error)
    if isinstance(error, TimeoutError):
        return _retry(f"The embedding model {identity} did not answer in time.", error)
    if isinstance(error, ModelAPIError):
        place = place_without_answer(error)
        at = f" at {place}" if place else ""
        return _retry(f"The embedding model {identity} could not be reached{at}.", error)
    return _retry(f"The embedding model {identity} failed with {type(error).__name__}.", error)


def _retry(message: str, error: Exception) -> EmbeddingFailed:
    status = {"status": error.status_code} if isinstance(error, ModelHTTPError) else {}
    return EmbeddingFailed(
        message, hint="Trying again helps.", details={**status, **delay_asked_for(error)}
    )


# --- the embedder: any Pydantic AI embedding model for the dense side, BM25 for the other

# Providers refuse a text past about 8,000 tokens. This much stays below in every
# script; the BM25 side always covers the whole text.
REMOTE_TEXT_BYTES = 16_000
REQUEST_SECONDS = 30.0
_NAMES = "wordllama, fastembed:<model>, or <provider>:<model> as Pydantic AI names them"
_PROBE = "A probe of the size of the vectors."


def over_pydantic_ai(spec: str | EmbeddingModel | pydantic_ai.Embedder) -> PydanticEmbedder:
    """The embedder of a model: see :func:`engram.embedding.choice.make_embedder`."""
    if isinstance(spec, pydantic_ai.Embedder):
        return PydanticEmbedder(spec)
    if isinstance(spec, str):
        spec = _model_named(spec)
    return PydanticEmbedder(pydantic_ai.Embedder(spec))


def _model_named(name: str) -> EmbeddingModel:
    provider, _, model = name.partition(":")
    if provider == "fastembed" and model:
        return FastEmbedModel(model)
    return _inferred(name)


def _inferred(model: EmbeddingModel | str) -> EmbeddingModel:
    if not isinstance(model, str):
        return model
    check_set_up(model)
    try:
        return infer_embedding_model(model, provider_factory=making_providers(model))
    except Exception as error:
        unusable = why_unusable(error, model)
        message = f"The embedding model {model!r} cannot be used{unusable.why}."
        if isinstance(error, ImportError | ValueError):
            allowed = None if unusable.hint else _NAMES
            raise InvalidSettings(message, allowed=allowed, hint=unusable.hint) from error
        hint = unusable.hint or "Check the key and address of the provider, and ENGRAM_EMBEDDER."
        raise ModelRejected(message, hint=hint) from error


class PydanticEmbedder:
    """Implements :class:`engram.ports.Embedder` over ``pydantic_ai.Embedder``."""

    def __init__(self, embedder: pydantic_ai.Embedder) -> None:
        self._embedder = embedder
        self._model = _inferred(embedder.model)
        self._innermost = _unwrapped(self._model)
        self._dimensions: int | None = getattr(self._innermost, "dimensions", None)

    @property
    def identity(self) -> str:
        """Provider, model, version and size where known, and the encoding of the BM25 side."""
        version = getattr(self._innermost, "version", None)
        asked = (self._model.settings or {}).get("dimensions")
        name = self._name
        name += f"/{asked}" if asked else ""
        name += f"@{version}" if version else ""
        return f"{name}+{ENCODING}"

    async def dimensions(self) -> int:
        """The length of the dense vectors; asks the model once where it is not known."""
        if self._dimensions is None:
            await self._dense([_PROBE], "query")
        if self._dimensions is None:  # pragma: no cover - _dense has set it or raised
            raise EmbeddingFailed(f"The embedding model {self.identity} gave no vector.")
        return self._dimensions

    async def embed_documents(
        self, texts: Sequence[str], before: Sequence[str | None] | None = None
    ) -> list[TextVectors]:
        """Vectors of texts to be stored, in order, asked for in bounded batches.

        Args:
            texts: To be stored.
            before: What was said just before each. Only the words' side takes it in:
                the dense vector is that of the text alone.

        Raises:
            EmbeddingFailed: the model gave no usable vectors; trying again may help.
            ModelRejected: the provider refused for good.
            WrongVectorSize: the model changed the size of its vectors.
        """
        said = iter(before or ())
        return await self._embed(
            texts, "document", lambda text: encode_document(text, next(said, None))
        )

    async def embed_query(self, text: str) -> TextVectors:
        """Vectors of a question; raises as :meth:`embed_documents` does."""
        return (await self._embed([text], "query", encode_query))[0]

    def encode_terms(self, text: str) -> SparseVector:
        """See :meth:`engram.ports.Embedder.encode_terms`."""
        return encode_known(text)

    async def _embed(
        self, texts: Sequence[str], side: EmbedInputType, encode: Callable[[str], SparseVector]
    ) -> list[TextVectors]:
        found: list[TextVectors] = []
        for batch in batches(texts):
            dense = await self._dense(batch, side)
            if sum(map(len, batch)) > CHARACTERS_ON_THE_LOOP:
                sparse = await computed(_encode_all, encode, batch)
            else:
                sparse = _encode_all(encode, batch)
            found.extend(map(TextVectors, dense, sparse))
        return found

    async def _dense(self, texts: Sequence[str], side: EmbedInputType) -> list[tuple[float, ...]]:
        if not isinstance(self._innermost, FastEmbedModel):
            texts = [_shortened(text) for text in texts]
        try:
            async with asyncio.timeout(REQUEST_SECONDS):
                result = await self._embedder.embed(texts, input_type=side)
        except Exception as error:
            self._count(ModelSpent(model=self._name, requests=1, failed_requests=1))
            if isinstance(error, EngramError):
                raise
            raise translate(error, self.identity) from error
        self._count(_taken(self._name, result))
        vectors = [tuple(vector) for vector in result.embeddings]
        self._check(vectors, len(texts))
        return vectors

    @property
    def _name(self) -> str:
        return f"{self._model.system}:{self._model.model_name}"

    def _count(self, part: ModelSpent) -> None:
        """Add to the meter that is up. What runs on this machine costs nothing but time."""
        meter = meter_that_is_up()
        if meter is not None and not isinstance(self._innermost, FastEmbedModel):
            meter.add_embedded(part)

    def _check(self, vectors: list[tuple[float, ...]], expected: int) -> None:
        if len(vectors) != expected:
            raise EmbeddingFailed(
                f"The embedding model {self.identity} gave {len(vectors)} vectors "
                f"for {expected} texts."
            )
        for vector in vectors:
            if not vector or not all(map(math.isfinite, vector)):
                raise EmbeddingFailed(
                    f"The embedding model {self.identity} gave an empty or non-finite vector."
                )
            if self._dimensions is None:
                self._dimensions = len(vector)
            elif len(vector) != self._dimensions:
                raise WrongVectorSize(
                    f"The embedding model {self.identity} gave a vector of {len(vector)} values.",
                    allowed=f"{self._dimensions}, as before",
                    details={"size": len(vector), "expected": self._dimensions},
                )


def _taken(model: str, result: EmbeddingResult) -> ModelSpent:
    """What an answered request took; the price is unknown where no list has the model."""
    try:
        cost = float(result.cost().total_price) if result.usage.input_tokens else None
    except (LookupError, ValueError):
        cost = None
    return ModelSpent(
        model=model,
        requests=1,
        input_tokens=result.usage.input_tokens,
        cost_usd=cost or 0.0,
        unpriced_requests=int(cost is None),
    )


def _encode_all(encode: Callable[[str], SparseVector], texts: Sequence[str]) -> list[SparseVector]:
    return [encode(text) for text in texts]


def _shortened(text: str) -> str:
    data = text.encode("utf-8", "replace")
    return (
        text
        if len(data) <= REMOTE_TEXT_BYTES
        else data[:REMOTE_TEXT_BYTES].decode("utf-8", "ignore")
    )


def _unwrapped(model: EmbeddingModel) -> EmbeddingModel:
    while isinstance(model, WrapperEmbeddingModel):
        model = model.wrapped
    return model


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
            EmbeddingFailed: the model cannot be downloaded now.
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
                self._model = _fastembed(self._model_name)
            side = self._model.query_embed if input_type == "query" else self._model.passage_embed
            return [vector.tolist() for vector in side(list(texts))]


def _fastembed(model_name: str) -> Any:
    try:
        package = importlib.import_module("fastembed")
    except ImportError as error:
        raise EmbeddedPartMissing(
            "The package fastembed is not installed.",
            hint=f"Run {how_to_install('fastembed')}, or set ENGRAM_EMBEDDER to wordllama "
            "or to an embedding model of a provider.",
            details={"package": "fastembed", "extra": "fastembed"},
        ) from error
    return of_fastembed(package.TextEmbedding, model_name, EmbeddingFailed)


def of_fastembed(
    kind: Any, model_name: str, failed: type[EmbeddingFailed | ModelUnavailable]
) -> Any:
    """A model of ``fastembed``, loaded; it is downloaded if it never was on this machine.

    Args:
        kind: The class of fastembed whose models are meant.
        model_name: As fastembed lists it.
        failed: What is raised where the model is known and cannot be had now.

    Raises:
        InvalidSettings: fastembed does not know the model.
    """
    # Asked first: fastembed raises ValueError both for names that it does not know, and offline.
    if model_name.lower() not in {one["model"].lower() for one in kind.list_supported_models()}:
        raise InvalidSettings(
            f"fastembed does not know the model {model_name!r}.",
            allowed=f"a name from {kind.__name__}.list_supported_models() of fastembed",
        )
    try:
        return kind(model_name)
    except ValueError as error:
        raise failed(
            f"The model {model_name!r} could not be downloaded by fastembed.",
            hint="It needs the network once; after that it is kept in fastembed's cache "
            "(FASTEMBED_CACHE_PATH).",
        ) from error
