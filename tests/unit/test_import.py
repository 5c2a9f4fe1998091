"""What importing Engram costs, and what it gives."""

from __future__ import annotations

import re
import subprocess
import sys

import engram
from engram import errors

CLASSES = {
    *("MemoryStore", "SyncMemoryStore", "Settings", "Turn", "Receipt", "RecallHit"),
    *("MemoryType", "MemoryStatus", "AnyMemory", "Episode", "Fact", "SemanticMemory"),
    *("ProceduralMemory", "NegationFact", "Period"),
}
ERRORS = {
    *("EngramError", "InvalidInput", "InvalidTurn", "InvalidScope", "InvalidQuery"),
    *("InvalidSettings", "UnreadableSource", "ImportOutOfStep", "ConflictingMessage"),
    *("MemoryNotFound", "MemoryClosed", "SessionBusy", "SchemaMismatch", "StorageUnavailable"),
    *("EmbeddingFailed", "TemporalUnavailable", "TemporalNotSetUp", "OwnerUnavailable"),
    *("DataFolderInUse", "DataFolderUnusable", "PortInUse", "EmbeddedPartMissing"),
    *("EmbeddedStartFailed", "KeyRefused", "AccessDenied", "TooManyRequests"),
    *("UserErased", "ReviewNotFound", "StageNotReached", "BasisForgotten"),
    *("ModelRejected", "ModelUnavailable", "ModelAnswerUnusable", "EncryptionKeysUnusable"),
    *("PayloadRefused", "UnmaskedPersonalData", "AuditUnwritable"),
}


def test_importing_engram_starts_nothing() -> None:
    """No server, engine, event loop or model library is loaded, and pydantic is not either."""
    code = (
        "import sys; import engram; dir(engram); "
        "heavy = {'temporalio', 'qdrant_client', 'qdrant_edge', 'pydantic_ai', 'pydantic', "
        "'asyncio'} & set(sys.modules); print(*heavy)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_what_the_package_exports() -> None:
    """The public names are these, in order, and none is added or lost by accident."""
    doors = {"open", "connect", "open_sync", "connect_sync", "period_named"}
    assert engram.__all__ == sorted(doors | CLASSES | ERRORS)


def test_what_calls_are_said_to_raise_can_be_imported() -> None:
    """Each error that the docstring of a door or of a store's method names is in the package."""
    documented: set[str] = set()
    for called in (engram.open, engram.connect, *vars(engram.MemoryStore).values()):
        _, _, raised = (getattr(called, "__doc__", None) or "").partition("Raises:\n")
        documented |= set(re.findall(r"^ +([A-Z]\w+):", raised, re.MULTILINE))
    assert {"StageNotReached", "MemoryNotFound", "DataFolderInUse"} <= documented
    assert documented & vars(errors).keys() <= set(engram.__all__)


def test_every_exported_name_is_there() -> None:
    """Each public name loads, and an error is the one that ``engram.errors`` has."""
    found = {name: getattr(engram, name) for name in engram.__all__}
    assert {name: found[name] for name in ERRORS} == {name: vars(errors)[name] for name in ERRORS}
    assert all(found[name].__name__ == name for name in CLASSES - {"AnyMemory"})
    assert set(engram.__all__) <= set(dir(engram))
    assert not hasattr(engram, "nothing_of_this_name")
