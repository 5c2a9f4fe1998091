"""A codec over HTTP, as Temporal's tools and SDKs ask one: decoding, and encoding for a workflow.

The decisions are docs/decisions/0026-decoded-ui.md and docs/decisions/0038-starts-by-hand.md.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from hmac import compare_digest
from typing import Any, Final
from urllib.parse import quote

from google.protobuf import json_format
from google.protobuf.message import Message
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp
from starlette.types import Scope as AsgiScope
from temporalio.api.common.v1 import Payload, Payloads
from temporalio.converter import WorkflowSerializationContext

from engram.errors import AccessDenied, EngramError, HostRefused, InvalidInput
from engram.server.middleware import (
    OWNER,
    Admission,
    AuthMiddleware,
    BodyLimitMiddleware,
    Caller,
    no_such_address,
    on_engram_error,
    on_http_exception,
)
from engram.temporal.encryption import EncryptionCodec, is_refused

# Of a page of a history there are some megabytes.
_MOST_BYTES: Final = 64 << 20
_UNREADABLE: Final = Payload(
    metadata={"encoding": b"json/plain"},
    data=b'"Not readable: its key was erased, or it is not of this Engram."',
)

Endpoint = Callable[[Request], Coroutine[Any, Any, Response]]


async def decoded(codec: EncryptionCodec, payloads: Sequence[Payload]) -> list[Payload]:
    """What people see of payloads; in place of what cannot be read stands why.

    Args:
        codec: Reads what is plain, too.
        payloads: As Temporal has them.

    Raises:
        EncryptionKeysUnusable: the keys cannot be read now.
    """
    return [
        _UNREADABLE if is_refused(payload) else payload for payload in await codec.decode(payloads)
    ]


def decoding(codec: EncryptionCodec) -> Endpoint:
    """Answers to ``/decode``; the codec is one that looks."""

    async def decode(request: Request) -> Response:
        return as_json(Payloads(payloads=await decoded(codec, await _asked(request))))

    return decode


def encoding(codec: EncryptionCodec, temporal_namespace: str) -> Endpoint:
    """Answers to ``/encode``: for the workflow that the address names, with its user's key."""

    async def encode(request: Request) -> Response:
        workflow_id = request.path_params["workflow_id"]
        about = WorkflowSerializationContext(temporal_namespace, workflow_id)
        sealed = await codec.with_context(about).encode(await _asked(request))
        return as_json(Payloads(payloads=sealed))

    return encode


async def _asked(request: Request) -> Sequence[Payload]:
    try:
        body = await request.body()
        return json_format.Parse(body, Payloads(), ignore_unknown_fields=True).payloads
    except (json_format.ParseError, UnicodeDecodeError) as error:
        raise InvalidInput("The request holds no payloads as Temporal writes them.") from error


def behind(door: Admission, routes: Sequence[Route]) -> ASGIApp:
    """These routes, for whom the door admits; others hear why in Engram's words.

    Args:
        door: Looks at every request first.
        routes: What is behind it; a request may have as many bytes as a page of a history.
    """
    app = Starlette(
        routes=routes,
        exception_handlers={EngramError: on_engram_error, HTTPException: on_http_exception},
    )
    return AuthMiddleware(BodyLimitMiddleware(app, _MOST_BYTES), door)


def same_secret(given: str, expected: str) -> bool:
    """Whether they are the same, in a time that does not tell how far."""
    return compare_digest(given.encode(errors="replace"), expected.encode())


def as_json(message: Message) -> Response:
    """A message as Temporal's HTTP API writes it, for nobody to keep."""
    return Response(
        json_format.MessageToJson(message, indent=None),
        media_type="application/json",
        headers={"Cache-Control": "no-store"},
    )


# --- by itself, for programs: Temporal's command line, and SDKs of other languages


@dataclass(frozen=True, slots=True)
class CodecDoor:
    """Lets in whoever knows the address. It is random and ends with the process.

    Attributes:
        origin: Scheme, host and port, on loopback.
    """

    origin: str
    _capability: str = field(repr=False)

    @classmethod
    def at(cls, port: int, new_secret: Callable[[], bytes]) -> CodecDoor:
        """A new one.

        Args:
            port: Where is listened, on loopback.
            new_secret: Gives 32 random bytes.
        """
        return cls(f"http://127.0.0.1:{port}", new_secret().hex())

    def url(self, workflow_id: str) -> str:
        """The endpoint for one workflow: what is encoded there is bound to it."""
        return f"{self.origin}/{self._capability}/{quote(workflow_id, safe='')}"

    async def admit(self, scope: AsgiScope) -> Caller:
        """See :class:`engram.server.middleware.Admission`.

        Raises:
            HostRefused: the request names another host, as one of a rebound web page does.
            AccessDenied: a web page asks.
            NoSuchAddress: the address is not that of this codec.
        """
        headers, path = Headers(scope=scope), str(scope["path"])
        if headers.get("host", "") != self.origin.removeprefix("http://"):
            raise HostRefused("This host is not served here.")
        if "origin" in headers:
            raise AccessDenied("Web pages may not ask here.", hint="`engram ui` is for browsers.")
        given, _, _ = path.removeprefix("/").partition("/")
        if not same_secret(given, self._capability):
            raise no_such_address()
        return OWNER


def codec_app(
    door: CodecDoor, reading: EncryptionCodec, writing: EncryptionCodec, temporal_namespace: str
) -> ASGIApp:
    """The codec, for programs that come through the door.

    Args:
        door: Lets them in.
        reading: Of :func:`engram.temporal.encryption.reading_codec`.
        writing: That of a client.
        temporal_namespace: Where its workflows run.
    """
    place = "/{capability}/{workflow_id:path}"
    routes = [
        Route(f"{place}/decode", decoding(reading), methods=["POST"]),
        Route(f"{place}/encode", encoding(writing, temporal_namespace), methods=["POST"]),
    ]
    return behind(door, routes)
