"""A web service that remembers each of its users.

    uv run uvicorn --app-dir examples fastapi_service:app

    curl -s localhost:8000/chat -H "X-User: ada" -H "Content-Type: application/json" \
      -d '{"message": "I live in Porto."}'
    curl -s localhost:8000/memories -H "X-User: ada"

(Engram has an HTTP API of its own, with keys and limits: docs/http.md. This is for services that do
something else, and remember while they do it.)
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Annotated, TypedDict

from fastapi import Depends, FastAPI, Header, Query, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict

import engram
from engram import EngramError, InvalidInput, MemoryStore, Turn


class State(TypedDict):
    """What lives as long as the process."""

    memory: MemoryStore


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[State]:
    """Open Engram once, and share it: a store may be used by many requests at the same time.

    With `uvicorn --workers 4` the first process runs Engram and the others attach to it. For many
    machines, `engram.connect` takes the place of `engram.open`; nothing else changes.
    """
    # Each request takes the memory of its own user; this one is nobody's, and stays empty.
    async with engram.open(user_id="service") as memory:
        yield {"memory": memory}


app = FastAPI(title="A service that remembers", lifespan=lifespan)


async def memory_of_user(request: Request, x_user: Annotated[str, Header()]) -> MemoryStore:
    """The memory of whoever asks, over the connections that are open; it costs nothing.

    Replace the header by your authentication: whose memory a request reaches is decided here, and
    nowhere else. Users share nothing, whatever is asked.
    """
    memory: MemoryStore = request.state.memory
    return memory.for_user(x_user)


UserMemory = Annotated[MemoryStore, Depends(memory_of_user)]


class Message(BaseModel):
    """What a user says."""

    message: str
    conversation: str = "web"


class Remembered(BaseModel):
    """What users of this service see of a memory."""

    model_config = ConfigDict(from_attributes=True)

    type: str
    content: str
    known_at: datetime


class Reply(BaseModel):
    """What the service says, and what it remembered."""

    answer: str
    remembered: list[Remembered]


class Page(BaseModel):
    """A stretch of what is remembered; ``cursor`` asks for the next."""

    memories: list[Remembered]
    cursor: str | None


@app.post("/chat")
async def chat(said: Message, memory: UserMemory) -> Reply:
    """Recall, answer, and keep both turns."""
    hits = await memory.recall(said.message, limit=5)
    remembered = [Remembered.model_validate(hit.memory) for hit in hits]

    # Here your application thinks. With a model: `await memory.context(said.message)` is the block
    # for its prompt (examples/pydantic_ai_agent.py has all of that in one line).
    answer = f"I remember: {remembered[0].content}" if remembered else "That is new to me."

    # Once this returns, what was said is stored. Consolidation follows in the background.
    turns = [Turn(content=said.message), Turn(role="assistant", content=answer)]
    await memory.encode(turns, session_id=said.conversation)
    return Reply(answer=answer, remembered=remembered)


@app.get("/memories")
async def memories(
    memory: UserMemory,
    limit: Annotated[int, Query(ge=1, le=100)] = 20,
    cursor: str | None = None,
) -> Page:
    """Everything that is remembered of a user, page by page."""
    page = await memory.list(limit=limit, cursor=cursor)
    return Page(
        memories=[Remembered.model_validate(one) for one in page.memories], cursor=page.cursor
    )


@app.exception_handler(EngramError)
async def refused(request: Request, error: EngramError) -> JSONResponse:
    """Every error of Engram says what is wrong, what is allowed and whether to try again."""
    status = 422 if isinstance(error, InvalidInput) else 503 if error.retryable else 500
    return JSONResponse(error.as_dict(), status_code=status)
