"""Asking another process over HTTP, and turning its problems back into typed errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import httpx
from pydantic import TypeAdapter, ValidationError

from engram.errors import (
    EngramError,
    MemoryClosed,
    OwnerUnavailable,
    UnknownFailure,
    error_from_dict,
)

_Answer = TypeVar("_Answer")
_TRIES = 2
_SILENCE = "It may have ended; opening the memory again starts it anew."
# What proxies say when nobody behind them answers.
_NOBODY_BEHIND = frozenset({502, 503, 504})


class Wire:
    """Sends requests and reads typed answers.

    Requests that meet a broken connection are sent once more: ids are settled
    before they are sent, so that what arrives twice takes effect once.

    Args:
        client: Its base URL is that of the application; closed with the wire.
        silence: What to do when nobody answers.
    """

    def __init__(self, client: httpx.AsyncClient, silence: str = _SILENCE) -> None:
        self._client = client
        self._silence = silence

    async def ask(
        self,
        method: str,
        path: str,
        answer: TypeAdapter[_Answer],
        *,
        query: Mapping[str, str | Sequence[str]] | None = None,
        body: str | None = None,
    ) -> _Answer:
        """Send one request and wait for its answer, however long it takes.

        Raises:
            OwnerUnavailable: nobody answers, or the answer broke off twice.
            EngramError: whatever the other side raised.
            UnknownFailure: the answer is not one that this version knows.
        """
        response = await self._send(method, path, query, body)
        if not response.is_success:
            raise _problem(response)
        try:
            return answer.validate_json(response.content)
        except ValidationError as error:
            raise UnknownFailure(
                f"The answer to {method} has an unknown form ({error.error_count()} differences).",
                hint="Use the same version of Engram in all processes.",
            ) from None  # its text would repeat what the answer holds

    async def _send(
        self,
        method: str,
        path: str,
        query: Mapping[str, str | Sequence[str]] | None,
        body: str | None,
    ) -> httpx.Response:
        if self._client.is_closed:
            raise MemoryClosed("This memory store is closed.")
        headers = {"content-type": "application/json"} if body is not None else None
        broken: httpx.TransportError | None = None
        for _ in range(_TRIES):
            try:
                return await self._client.request(
                    method, path, params=query, content=body, headers=headers
                )
            except httpx.TransportError as error:
                broken = error
        raise OwnerUnavailable(
            f"The process that has the memory does not answer ({type(broken).__name__}).",
            hint=self._silence,
        ) from broken

    async def close(self) -> None:
        """Let go of the connections."""
        await self._client.aclose()


def _problem(response: httpx.Response) -> EngramError:
    try:
        found: Any = response.json()
    except ValueError:
        found = None
    if isinstance(found, dict) and isinstance(found.get("code"), str):
        return error_from_dict(found)
    if response.status_code in _NOBODY_BEHIND:
        return OwnerUnavailable(
            f"What stands before the memory answered with status {response.status_code}."
        )
    return UnknownFailure(
        f"The other side answered with status {response.status_code}.",
        hint="Use the same version of Engram in all processes.",
    )
