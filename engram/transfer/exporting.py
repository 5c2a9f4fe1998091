"""Everything of one user as lines of JSON: a header, every memory, and a last line.

The format is compatibility data: docs/import.md describes it, and what this
version cannot read is refused by the number in the header.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from pydantic import BaseModel, ConfigDict

from engram.domain.memories import AnyMemory, MemoryType

EXPORT_VERSION: Final = 1


class ExportHeader(BaseModel):
    """The first line.

    Attributes:
        engram_export: Version of the format.
        engram: Version of the program that wrote it.
        namespace: Whose memory it is.
        user_id: Whose memory it is.
        exported_at: When.
        embedder: What its vectors were made by; they are made anew where it is restored.
        counts: How many memories of each type there were when it began.
        include_test: Whether test memories are part of it.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    engram_export: int
    engram: str
    namespace: str
    user_id: str
    exported_at: datetime
    embedder: str
    counts: Mapping[MemoryType, int]
    include_test: bool = False


def header_line(header: ExportHeader) -> str:
    """The first line, without its end."""
    return header.model_dump_json()


def memory_line(memory: AnyMemory) -> str:
    """The line of a memory: what is empty is left out."""
    dumped = memory.model_dump(mode="json", exclude_none=True, exclude={"metadata"})
    fields: dict[str, Any] = {
        name: value for name, value in dumped.items() if value not in ([], {}, "")
    }
    if memory.metadata:
        # As it is: a value that is null means something there.
        fields["metadata"] = memory.metadata
    return json.dumps({"memory": fields}, ensure_ascii=True, separators=(",", ":"))


def last_line(memories: int) -> str:
    """The last line: by it one sees that a file is whole."""
    return json.dumps({"end": memories})
