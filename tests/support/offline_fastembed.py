"""The package ``fastembed`` as it is without a network: it lists models, and has none."""

from __future__ import annotations

from types import ModuleType
from typing import Any

KNOWN = ("BAAI/bge-small-en-v1.5", "Xenova/ms-marco-MiniLM-L-6-v2")


class _Offline:
    def __init__(self, model_name: str) -> None:
        raise ValueError(f"Could not load model {model_name} from any source.")

    @classmethod
    def list_supported_models(cls) -> list[dict[str, Any]]:
        """As much of it as is read."""
        return [{"model": name} for name in KNOWN]


def offline_fastembed(name: str) -> ModuleType:
    """The module that has the class of this name."""
    module = ModuleType("fastembed")
    setattr(module, name, type(name, (_Offline,), {}))
    return module
