"""Operations that bring memory in and take it out, and who carries them out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pydantic import BaseModel, ConfigDict, Field

from engram.contracts.importing import FinishImport, ImportBatch, ImportKind, ImportProgress
from engram.distribution import VERSION
from engram.domain.access import Access
from engram.domain.memories import STORED_TYPES, MemoryType
from engram.domain.scope import Scope
from engram.operations.registry import Operation, Question, RunningQuota, handles
from engram.ports import Clock, Embedder, Equals, MemoryRepository, Not
from engram.transfer.batches import check_packed
from engram.transfer.export import EXPORT_VERSION, ExportHeader

if TYPE_CHECKING:
    # Who only asks for an operation needs nothing of what carries it out.
    from engram.temporal.importing import ImportGateway

_IMPORT_ID: Final = r"^[0-9a-f]{8,64}$"


class AboutImport(Question):
    """Which import is meant."""

    import_id: str = Field(
        pattern=_IMPORT_ID,
        description="Derived from the source, such as the beginning of its SHA-256: the same "
        "source names the same import, which then goes on where it stopped.",
    )


class Begin(AboutImport):
    """A client is about to send.

    Attributes:
        consolidate: Whether the user's consolidation is asked for at the end.
    """

    consolidate: bool = True


class Send(AboutImport):
    """A stretch of the source."""

    batch: ImportBatch


class Finish(AboutImport):
    """All was sent.

    Attributes:
        total: How many entries the source has.
        consolidate: Whether the user's consolidation is asked for; None: as at the beginning.
    """

    total: int = Field(ge=0)
    consolidate: bool | None = None


class AskExport(Question):
    """What an export shall hold.

    Attributes:
        include_test: Test memories too.
    """

    include_test: bool = False


class ImportStages(BaseModel):
    """The operations of one kind of import, in order."""

    model_config = ConfigDict(frozen=True, arbitrary_types_allowed=True)

    begin: Operation[Begin, ImportProgress]
    send: Operation[Send, ImportProgress]
    finish: Operation[Finish, ImportProgress]


IMPORTING: Final = ImportStages(
    begin=Operation(
        "import-begin",
        Begin,
        ImportProgress,
        "Begin an import of turns, or ask where it stopped.",
        access=Access.WRITE,
    ),
    send=Operation(
        "import-turns", Send, ImportProgress, "Store a batch of turns.", access=Access.WRITE
    ),
    finish=Operation(
        "import-finish", Finish, ImportProgress, "End an import of turns.", access=Access.WRITE
    ),
)
RESTORING: Final = ImportStages(
    begin=Operation(
        "restore-begin",
        Begin,
        ImportProgress,
        "Begin to restore an export, or ask where it stopped.",
        access=Access.ADMIN,
    ),
    send=Operation(
        "restore-memories",
        Send,
        ImportProgress,
        "Put a batch of exported memories back.",
        access=Access.ADMIN,
    ),
    finish=Operation(
        "restore-finish", Finish, ImportProgress, "End the restoring.", access=Access.ADMIN
    ),
)
EXPORT_HEADER: Final = Operation(
    "export-header", AskExport, ExportHeader, "What an export begins with.", access=Access.READ
)


class TransferHandlers:
    """Carries out the operations of this module.

    Args:
        gateway: Reaches importing workflows.
        repository: Where memories are counted.
        embedder: Its identity is named in exports.
        clock: The present.
        most_running: Imports of one user that may be begun and not finished.

    Attributes:
        running: Counts imports.
    """

    def __init__(
        self,
        gateway: ImportGateway,
        repository: MemoryRepository,
        embedder: Embedder,
        clock: Clock,
        most_running: int,
    ) -> None:
        self._gateway = gateway
        self._repository = repository
        self._embedder = embedder
        self._clock = clock
        self.running = RunningQuota(
            "imports",
            most_running,
            gateway.idle,
            "Finish those that were begun: the same command goes on where it stopped.",
        )

    # The two kinds never meet: who may only write turns cannot reach a restoring.

    @handles(IMPORTING.begin)
    async def begin_import(self, scope: Scope, asked: Begin) -> ImportProgress:
        """Begin an import of turns, or say where it stopped."""
        return await self._begin(scope, asked, ImportKind.TURNS)

    @handles(IMPORTING.send)
    async def import_turns(self, scope: Scope, asked: Send) -> ImportProgress:
        """Store a batch of turns."""
        return await self._send(scope, asked, ImportKind.TURNS)

    @handles(IMPORTING.finish)
    async def finish_import(self, scope: Scope, asked: Finish) -> ImportProgress:
        """End an import of turns."""
        return await self._finish(scope, asked, ImportKind.TURNS)

    @handles(RESTORING.begin)
    async def begin_restoring(self, scope: Scope, asked: Begin) -> ImportProgress:
        """Begin to restore an export, or say where it stopped."""
        return await self._begin(scope, asked, ImportKind.MEMORIES)

    @handles(RESTORING.send)
    async def restore_memories(self, scope: Scope, asked: Send) -> ImportProgress:
        """Put a batch of exported memories back."""
        return await self._send(scope, asked, ImportKind.MEMORIES)

    @handles(RESTORING.finish)
    async def finish_restoring(self, scope: Scope, asked: Finish) -> ImportProgress:
        """End the restoring."""
        return await self._finish(scope, asked, ImportKind.MEMORIES)

    async def _begin(self, scope: Scope, asked: Begin, kind: ImportKind) -> ImportProgress:
        self.running.admit(scope, _named(asked, kind))
        progress = await self._gateway.begin(
            scope,
            _named(asked, kind),
            kind,
            consolidate=asked.consolidate,
            epoch=await self._repository.epoch(scope),
        )
        return _as_asked(progress, asked)

    async def _send(self, scope: Scope, asked: Send, kind: ImportKind) -> ImportProgress:
        check_packed(asked.batch)
        progress = await self._gateway.send(scope, _named(asked, kind), asked.batch)
        return _as_asked(progress, asked)

    async def _finish(self, scope: Scope, asked: Finish, kind: ImportKind) -> ImportProgress:
        done = FinishImport(total=asked.total, consolidate=asked.consolidate)
        progress = await self._gateway.finish(scope, _named(asked, kind), done)
        self.running.ended(scope, _named(asked, kind))
        return _as_asked(progress, asked)

    @handles(EXPORT_HEADER)
    async def export_header(self, scope: Scope, asked: AskExport) -> ExportHeader:
        """What an export begins with: whose, of when, how much."""
        where = () if asked.include_test else (Not(Equals("is_test", value=True)),)
        counts: dict[MemoryType, int] = {
            kind: await self._repository.count(scope, kind, where) for kind in STORED_TYPES
        }
        return ExportHeader(
            engram_export=EXPORT_VERSION,
            engram=VERSION,
            namespace=scope.namespace,
            user_id=scope.user_id,
            exported_at=self._clock(),
            embedder=self._embedder.identity,
            counts=counts,
            include_test=asked.include_test,
        )


def _named(asked: AboutImport, kind: ImportKind) -> str:
    return f"{kind.value}-{asked.import_id}"


def _as_asked(progress: ImportProgress, asked: AboutImport) -> ImportProgress:
    """Under the id that whoever asks has for it; its workflow's says the kind, too."""
    return progress.model_copy(update={"import_id": asked.import_id})
