"""Which embedder a setting, or an object of Pydantic AI, stands for; what is chosen is loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engram.embedding.offline import NAME, OfflineEmbedder
from engram.ports import Embedder

if TYPE_CHECKING:
    import pydantic_ai
    from pydantic_ai.embeddings import EmbeddingModel


def make_embedder(spec: str | EmbeddingModel | pydantic_ai.Embedder) -> Embedder:
    """The embedder that a setting, a model or a Pydantic AI embedder stands for.

    Args:
        spec: ``wordllama``, ``fastembed:<model>``, any string Pydantic AI knows
            (``openai:text-embedding-3-small``), or one of its objects.

    Raises:
        InvalidSettings: the string names no model, or its provider's package is missing.
        ModelRejected: the provider is not set up, for example its key is missing.
    """
    if spec == NAME:
        return OfflineEmbedder()
    from engram.embedding.embedder import over_pydantic_ai  # noqa: PLC0415 - only what is used loads

    return over_pydantic_ai(spec)
