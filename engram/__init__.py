"""Engram: durable memory for LLM applications.

The names below load on first use, so that importing Engram starts nothing and
costs nothing, and so that Temporal's sandbox can pass the package through.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from engram.distribution import VERSION

if TYPE_CHECKING:
    from engram.client.connect import connect
    from engram.client.memory import MemoryStore
    from engram.domain.memories import (
        AnyMemory,
        Episode,
        Fact,
        MemoryStatus,
        MemoryType,
        NegationFact,
        ProceduralMemory,
        SemanticMemory,
    )
    from engram.domain.turns import Turn
    from engram.domain.values import Period
    from engram.embedded.open import open
    from engram.errors import (
        AccessDenied,
        AuditUnwritable,
        BasisForgotten,
        ConflictingMessage,
        DataFolderInUse,
        DataFolderUnusable,
        EmbeddedPartMissing,
        EmbeddedStartFailed,
        EmbeddingFailed,
        EncryptionKeysUnusable,
        EngramError,
        ImportOutOfStep,
        InvalidInput,
        InvalidQuery,
        InvalidScope,
        InvalidSettings,
        InvalidTurn,
        KeyRefused,
        MemoryClosed,
        MemoryNotFound,
        ModelAnswerUnusable,
        ModelRejected,
        ModelUnavailable,
        OwnerUnavailable,
        PayloadRefused,
        PortInUse,
        ReviewNotFound,
        SchemaMismatch,
        SessionBusy,
        StageNotReached,
        StorageUnavailable,
        TemporalNotSetUp,
        TemporalUnavailable,
        TooManyRequests,
        UnmaskedPersonalData,
        UnreadableSource,
        UserErased,
    )
    from engram.language.periods import period_named
    from engram.operations.turns import Receipt
    from engram.recall.results import RecallHit
    from engram.settings import Settings
    from engram.sync import SyncMemoryStore, connect_sync, open_sync

# What is not named here is an error.
_HOMES = {
    "engram.client.connect": ("connect",),
    "engram.client.memory": ("MemoryStore",),
    "engram.domain.memories": (
        *("AnyMemory", "Episode", "Fact", "MemoryStatus", "MemoryType", "NegationFact"),
        *("ProceduralMemory", "SemanticMemory"),
    ),
    "engram.domain.turns": ("Turn",),
    "engram.embedded.open": ("open",),
    "engram.domain.values": ("Period",),
    "engram.language.periods": ("period_named",),
    "engram.operations.turns": ("Receipt",),
    "engram.recall.results": ("RecallHit",),
    "engram.settings": ("Settings",),
    "engram.sync": ("SyncMemoryStore", "connect_sync", "open_sync"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "AccessDenied",
    "AnyMemory",
    "AuditUnwritable",
    "BasisForgotten",
    "ConflictingMessage",
    "DataFolderInUse",
    "DataFolderUnusable",
    "EmbeddedPartMissing",
    "EmbeddedStartFailed",
    "EmbeddingFailed",
    "EncryptionKeysUnusable",
    "EngramError",
    "Episode",
    "Fact",
    "ImportOutOfStep",
    "InvalidInput",
    "InvalidQuery",
    "InvalidScope",
    "InvalidSettings",
    "InvalidTurn",
    "KeyRefused",
    "MemoryClosed",
    "MemoryNotFound",
    "MemoryStatus",
    "MemoryStore",
    "MemoryType",
    "ModelAnswerUnusable",
    "ModelRejected",
    "ModelUnavailable",
    "NegationFact",
    "OwnerUnavailable",
    "PayloadRefused",
    "Period",
    "PortInUse",
    "ProceduralMemory",
    "RecallHit",
    "Receipt",
    "ReviewNotFound",
    "SchemaMismatch",
    "SemanticMemory",
    "SessionBusy",
    "Settings",
    "StageNotReached",
    "StorageUnavailable",
    "SyncMemoryStore",
    "TemporalNotSetUp",
    "TemporalUnavailable",
    "TooManyRequests",
    "Turn",
    "UnmaskedPersonalData",
    "UnreadableSource",
    "UserErased",
    "connect",
    "connect_sync",
    "open",
    "open_sync",
    "period_named",
]
__version__ = VERSION


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'engram' has no attribute {name!r}")
    return getattr(import_module(_HOME_OF.get(name, "engram.errors")), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
