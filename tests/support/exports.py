"""Exports as they are written, without a store."""

from __future__ import annotations

from collections.abc import Sequence

from engram.domain.memories import AnyMemory
from engram.domain.scope import Scope
from engram.transfer.export import ExportHeader, header_line, last_line, memory_line
from tests.support.clock import NOW


def export_lines(scope: Scope, memories: Sequence[AnyMemory]) -> list[str]:
    """The lines of a user's whole export."""
    header = ExportHeader(
        engram_export=1,
        engram="0.1.0",
        namespace=scope.namespace,
        user_id=scope.user_id,
        exported_at=NOW,
        embedder="wordllama",
        counts={},
    )
    return [header_line(header), *map(memory_line, memories), last_line(len(memories))]
