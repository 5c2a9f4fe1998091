"""The engine of a process that works through another one, over HTTP."""

from __future__ import annotations

import asyncio
import os
import re
import ssl
import stat
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote

import httpx
import structlog
from pydantic import TypeAdapter

from engram.client.models import MemoryPage, MemoryStats, Receipt
from engram.client.operations.operation import Answer, Asked, Operation
from engram.client.wire import Wire
from engram.contracts.consolidation import ConsolidationReport
from engram.contracts.sessions import EncodeCall, RememberedTurn, SessionSummary
from engram.domain.memories import AnyMemory, MemoryStatus, MemoryType
from engram.domain.scope import Scope
from engram.errors import EngramError, MemoryNotFound, OwnerUnavailable
from engram.recall.models import RecallHit
from engram.recall.request import RecallRequest
from engram.settings import Settings

_log = structlog.get_logger("engram.client")

_POLL_SECONDS = 0.05
_SAY_SO_SECONDS = 1.0
# Answers have no limit of time: an outage behind the owner delays an acknowledgement,
# and consolidation takes what it takes.
PATIENT = httpx.Timeout(None, connect=5.0)
# A socket speaks no TLS: loading the authorities took a third of the time to attach.
_NO_AUTHORITIES = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
_MEMORY_ID = re.compile(r"[A-Za-z0-9-]{1,128}\Z")

_RECEIPT = TypeAdapter(Receipt)
_HITS = TypeAdapter(list[RecallHit])
_MEMORY: TypeAdapter[Any] = TypeAdapter(AnyMemory)
_MEMORIES: TypeAdapter[list[Any]] = TypeAdapter(list[AnyMemory])
_PAGE = TypeAdapter(MemoryPage)
_STATS = TypeAdapter(MemoryStats)
_REPORT = TypeAdapter(ConsolidationReport)
_SUMMARY: TypeAdapter[SessionSummary | None] = TypeAdapter(SessionSummary | None)
_TURNS = TypeAdapter(list[RememberedTurn])
_ASKED: TypeAdapter[dict[str, Any]] = TypeAdapter(dict[str, Any])
_HEALTH: TypeAdapter[Mapping[str, Any]] = TypeAdapter(Mapping[str, Any])


class FolderOwner(Protocol):
    """Who holds a data folder."""

    @property
    def pid(self) -> int:
        """Its process id."""
        ...

    @property
    def socket(self) -> Path:
        """Where it answers."""
        ...


class OwnedFolder(Protocol):
    """What attaching needs to know of a data folder."""

    def owner(self) -> FolderOwner | None:
        """Who wrote that it owns the folder."""
        ...

    def has_owner(self) -> bool:
        """Whether anybody owns it now."""
        ...

    def in_use(self) -> EngramError:
        """The error for an owner that does not answer."""
        ...


class AttachedEngine:
    """A :class:`engram.client.engine.MemoryEngine` behind HTTP.

    Args:
        client: Its base URL is that of the application; closed with the engine.
        silence: What to do when nobody answers.
    """

    def __init__(self, client: httpx.AsyncClient, silence: str | None = None) -> None:
        self._wire = Wire(client) if silence is None else Wire(client, silence)
        self._health: Mapping[str, Any] = {}

    @classmethod
    def over_socket(cls, path: Path) -> AttachedEngine:
        """Through a Unix socket."""
        transport = httpx.AsyncHTTPTransport(uds=str(path), verify=_NO_AUTHORITIES)
        return cls(
            httpx.AsyncClient(
                base_url="http://engram", transport=transport, timeout=PATIENT, trust_env=False
            )
        )

    @classmethod
    @asynccontextmanager
    async def connect(
        cls, folder: OwnedFolder, settings: Settings
    ) -> AsyncIterator[AttachedEngine]:
        """Attached to the folder's owner, which may still be starting.

        Raises:
            OwnerUnavailable: there is no owner any more: the folder can be had.
            DataFolderInUse: the owner did not answer within ``settings.attach_timeout``.
        """
        engine = await cls._wait_for_owner(folder, settings.attach_timeout.total_seconds())
        try:
            yield engine
        finally:
            await engine.close()

    @classmethod
    async def _wait_for_owner(cls, folder: OwnedFolder, patience: float) -> AttachedEngine:
        began = time.monotonic()
        said = False
        while (waited := time.monotonic() - began) < patience:
            owner = folder.owner()
            if owner is not None and _is_ours(owner.socket):
                engine = cls.over_socket(owner.socket)
                if await engine.answers_within(patience - waited):
                    return engine
            if not folder.has_owner():
                raise OwnerUnavailable(
                    "The process that owned the data folder ended.", hint="Open it again."
                )
            if not said and waited > _SAY_SO_SECONDS:
                said = True
                _log.info(
                    "waiting for the process that owns the data folder to answer",
                    pid=owner.pid if owner else None,
                    seconds_left=round(patience - waited),
                )
            await asyncio.sleep(_POLL_SECONDS)
        error = folder.in_use()
        error.details["waited_seconds"] = patience
        raise error

    async def answers_within(self, patience: float) -> bool:
        """Whether the other side answers in so many seconds; if not, this engine is closed."""
        try:
            async with asyncio.timeout(patience):
                await self.greet()
        except (EngramError, TimeoutError) as error:
            _log.debug("the owner does not answer yet", reason=type(error).__name__)
            await self.close()
            return False
        except BaseException:
            await self.close()
            raise
        return True

    async def greet(self) -> None:
        """Learn who answers, and where its Temporal UI is.

        Raises:
            OwnerUnavailable: nobody answers.
        """
        self._health = await self._wire.ask("GET", "/v1/health", _HEALTH)

    @property
    def ui_url(self) -> str | None:
        """The Temporal UI of the process that answers, when it has one."""
        template = self._health.get("workflow_url")
        return template.partition("/namespaces/")[0] if template else None

    async def encode(self, scope: Scope, session_id: str, call: EncodeCall) -> Receipt:
        """See :meth:`engram.client.engine.MemoryEngine.encode`."""
        path = _session(scope, session_id) + "/turns"
        return await self._wire.ask("POST", path, _RECEIPT, body=call.model_dump_json())

    async def recall(self, scope: Scope, request: RecallRequest) -> list[RecallHit]:
        """See :meth:`engram.client.engine.MemoryEngine.recall`."""
        asked = asdict(request)
        asked["memory_types"] = asked.pop("types")
        asked["tags"] = asked["tags"] or None
        body = _ASKED.dump_json(asked).decode()
        return await self._wire.ask("POST", _user(scope) + "/recall", _HITS, body=body)

    async def get(self, scope: Scope, memory_id: str) -> AnyMemory:
        """See :meth:`engram.client.engine.MemoryEngine.get`."""
        found: AnyMemory = await self._wire.ask("GET", _memory(scope, memory_id), _MEMORY)
        return found

    async def list_memories(
        self,
        scope: Scope,
        *,
        memory_types: Sequence[MemoryType],
        status: MemoryStatus | None,
        limit: int,
        cursor: str | None,
        include_test: bool = False,
    ) -> MemoryPage:
        """See :meth:`engram.client.engine.MemoryEngine.list_memories`."""
        given = {"status": status, "limit": limit, "cursor": cursor, "include_test": include_test}
        asked = {key: str(value) for key, value in given.items() if value is not None}
        query = {**asked, "memory_type": [str(kind) for kind in memory_types]}
        return await self._wire.ask("GET", _user(scope) + "/memories", _PAGE, query=query)

    async def history(self, scope: Scope, memory_id: str) -> list[AnyMemory]:
        """See :meth:`engram.client.engine.MemoryEngine.history`."""
        return await self._wire.ask("GET", _memory(scope, memory_id) + "/history", _MEMORIES)

    async def stats(self, scope: Scope) -> MemoryStats:
        """See :meth:`engram.client.engine.MemoryEngine.stats`."""
        return await self._wire.ask("GET", _user(scope) + "/stats", _STATS)

    async def consolidate(
        self, scope: Scope, *, test_only: bool = False, dry_run: bool = False
    ) -> ConsolidationReport:
        """See :meth:`engram.client.engine.MemoryEngine.consolidate`."""
        query = {"test_only": str(test_only), "dry_run": str(dry_run)}
        return await self._wire.ask("POST", _user(scope) + "/consolidate", _REPORT, query=query)

    async def end_session(self, scope: Scope, session_id: str) -> SessionSummary | None:
        """See :meth:`engram.client.engine.MemoryEngine.end_session`."""
        return await self._wire.ask("POST", _session(scope, session_id) + "/end", _SUMMARY)

    async def working_memory(
        self, scope: Scope, session_id: str, *, include_test: bool = False
    ) -> list[RememberedTurn]:
        """See :meth:`engram.client.engine.MemoryEngine.working_memory`."""
        path = _session(scope, session_id) + "/working-memory"
        return await self._wire.ask("GET", path, _TURNS, query={"include_test": str(include_test)})

    async def perform(
        self, scope: Scope, operation: Operation[Asked, Answer], asked: Asked
    ) -> Answer:
        """See :meth:`engram.client.engine.MemoryEngine.perform`."""
        path = f"{_user(scope)}/{operation.name}"
        return await self._wire.ask("POST", path, operation.reader, body=asked.model_dump_json())

    def run_url(self, workflow_id: str, run_id: str | None = None) -> str | None:
        """See :meth:`engram.client.engine.MemoryEngine.run_url`."""
        template = self._health.get("run_url" if run_id else "workflow_url")
        if not template:
            return None
        filled = str(template).replace("WORKFLOW-ID", quote(workflow_id, safe=""))
        return filled.replace("RUN-ID", quote(run_id or "", safe=""))

    async def check(self) -> None:
        """See :meth:`engram.client.engine.MemoryEngine.check`."""
        await self._wire.ask("GET", "/v1/ready", _HEALTH)

    async def close(self) -> None:
        """Let go of the connections."""
        await self._wire.close()


def _user(scope: Scope) -> str:
    return f"/v1/namespaces/{_part(scope.namespace)}/users/{_part(scope.user_id)}"


def _session(scope: Scope, session_id: str) -> str:
    return f"{_user(scope)}/sessions/{_part(session_id)}"


def _memory(scope: Scope, memory_id: str) -> str:
    if not _MEMORY_ID.match(memory_id):
        # No id looks like this, and some of it could not stand in an address.
        raise MemoryNotFound(
            "No memory with this id belongs to this user.",
            hint="Ids come from receipts, recall and list.",
        )
    return f"{_user(scope)}/memories/{memory_id}"


def _part(name: str) -> str:
    return quote(name, safe="")


def _is_ours(path: Path) -> bool:
    """Whether a socket lies there that nobody else made."""
    try:
        found = path.lstat()
    except OSError:
        return False
    return stat.S_ISSOCK(found.st_mode) and found.st_uid == os.geteuid()
