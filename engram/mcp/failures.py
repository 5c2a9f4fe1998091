"""Typed errors as a model reads them."""

from __future__ import annotations

import traceback
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import ParamSpec

import structlog
from mcp.server.mcpserver.exceptions import ResourceError, ResourceNotFoundError
from mcp_types import CallToolResult, TextContent

from engram.errors import EngramError, MemoryNotFound, UnforeseenFailure

Asked = ParamSpec("Asked")
_log = structlog.get_logger("engram.mcp")


def tool(work: Callable[Asked, Awaitable[str]]) -> Callable[Asked, Awaitable[CallToolResult]]:
    """A tool whose errors say what was wrong, what is allowed and what to do."""

    @wraps(work)
    async def answered(*args: Asked.args, **kwargs: Asked.kwargs) -> CallToolResult:
        try:
            return CallToolResult(
                content=[TextContent(type="text", text=await work(*args, **kwargs))]
            )
        except Exception as error:  # noqa: BLE001 - all of them become answers; unforeseen ones are logged
            return refusal(_typed(error, work.__name__))

    return answered


def resource(work: Callable[Asked, Awaitable[str]]) -> Callable[Asked, Awaitable[str]]:
    """A resource whose errors are those of the protocol."""

    @wraps(work)
    async def answered(*args: Asked.args, **kwargs: Asked.kwargs) -> str:
        try:
            return await work(*args, **kwargs)
        except MemoryNotFound as error:
            raise ResourceNotFoundError(str(error)) from None
        except Exception as error:  # noqa: BLE001 - as above
            raise ResourceError(str(_typed(error, work.__name__))) from None

    return answered


def refusal(error: EngramError) -> CallToolResult:
    """The answer that carries a typed error: as text for models, as data for programs."""
    text = f"{error} The same call can succeed later." if error.retryable else str(error)
    return CallToolResult(
        content=[TextContent(type="text", text=text)],
        structured_content={
            "code": error.code,
            "message": error.message,
            "allowed": error.allowed,
            "hint": error.hint,
            "retryable": error.retryable,
        },
        is_error=True,
    )


def _typed(error: Exception, doing: str) -> EngramError:
    if isinstance(error, EngramError):
        return error
    # Neither its text nor the values in its frames: both may hold what is remembered.
    where = "".join(traceback.format_tb(error.__traceback__))
    _log.error("a tool failed unforeseen", doing=doing, kind=type(error).__name__, where=where)
    return UnforeseenFailure(f"{doing} failed with {type(error).__name__}.")
