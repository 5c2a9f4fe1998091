"""What routes ask for: the engine, whose memory it is, which session, which limits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Final, TypeAlias

from fastapi import Depends, Path, Request

from engram.client.engine import MemoryEngine
from engram.domain.scope import Scope, check_identifier
from engram.ports import Clock
from engram.settings import Settings

EngineProvider: TypeAlias = Callable[[], MemoryEngine]
NewId: TypeAlias = Callable[[], str]

USER: Final = "/v1/namespaces/{namespace}/users/{user_id}"
SESSION: Final = USER + "/sessions/{session_id}"
MEMORY: Final = USER + "/memories/{memory_id}"

_FORM = " 1 to 80 ASCII letters, digits and . _ @ + : = | ~ -, beginning with a letter or digit."
NamespaceName = Annotated[
    str, Path(description="Keeps applications apart." + _FORM, examples=["default"])
]
UserName = Annotated[str, Path(description="Whose memory." + _FORM, examples=["ada"])]
SessionName = Annotated[str, Path(description="The conversation." + _FORM, examples=["monday"])]
MemoryId = Annotated[
    str,
    Path(
        description="As receipts, recall and listings give it.",
        examples=["6f1c1b0e-5d0f-5f3e-9a43-1f2f8f0c7a11"],
    ),
]


async def _engine(request: Request) -> MemoryEngine:
    provider: EngineProvider = request.app.state.engine_provider
    return provider()


async def _scope(namespace: NamespaceName, user_id: UserName) -> Scope:
    return Scope.of(namespace, user_id)


async def _session(session_id: SessionName) -> str:
    return check_identifier(session_id, "session id")


async def _settings(request: Request) -> Settings:
    settings: Settings = request.app.state.settings
    return settings


async def _clock(request: Request) -> Clock:
    clock: Clock = request.app.state.clock
    return clock


async def _new_id(request: Request) -> NewId:
    new_id: NewId = request.app.state.new_id
    return new_id


Engine = Annotated[MemoryEngine, Depends(_engine)]
Whose = Annotated[Scope, Depends(_scope)]
Session = Annotated[str, Depends(_session)]
Limits = Annotated[Settings, Depends(_settings)]
Present = Annotated[Clock, Depends(_clock)]
Ids = Annotated[NewId, Depends(_new_id)]
