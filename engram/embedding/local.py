"""``fastembed:<model>``: ONNX models on this machine's processor (extra ``fastembed``)."""

from __future__ import annotations

import asyncio
import importlib
import threading
from collections.abc import Sequence
from typing import Any

from pydantic_ai.embeddings import EmbeddingModel, EmbeddingResult, EmbeddingSettings
from pydantic_ai.embeddings.result import EmbedInputType

from engram.errors import EmbeddedPartMissing, InvalidSettings


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
