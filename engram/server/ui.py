"""Temporal's UI for one browser: what it shows is decoded there, and nowhere else.

Whoever reaches Temporal or its UI sees noise. Here a browser gets the same pages with the
address of a codec that only it knows. The decision is docs/decisions/0026-decoded-ui.md.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final
from urllib.parse import unquote

import httpx
from google.api import annotations_pb2  # type: ignore[import-untyped]  # made by protoc, without types
from google.protobuf import json_format
from google.protobuf.descriptor import Descriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from starlette.datastructures import Headers
from starlette.requests import Request, cookie_parser
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp
from starlette.types import Scope as AsgiScope
from temporalio.api.operatorservice.v1 import service_pb2 as operator_service
from temporalio.api.workflowservice.v1 import service_pb2 as workflow_service
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from engram.errors import (
    AccessDenied,
    HostRefused,
    InvalidInput,
    TemporalUnavailable,
)
from engram.server.codec import as_json, behind, decoding, same_secret
from engram.server.middleware import OWNER, Caller, no_such_address
from engram.temporal.encryption import EncryptionCodec

# --- who gets in: the browser that opened the first address, and whoever has the codec's

_ENTRANCE: Final = "/engram/open/"
_CODEC: Final = "/engram/codec/"
_COOKIE: Final = "engram-ui"
_SHORTENED: Final = 16


@dataclass(slots=True)
class UiDoor:
    """The address for one browser, and what it is known by afterwards.

    All of it is random and ends with the process. The host is a name of its own, because a
    browser keeps cookies and scripts by host: those for 127.0.0.1 belong to every program, of
    every user, that listens there.

    Attributes:
        origin: Scheme, host and port.
    """

    origin: str
    _ticket: str = field(repr=False)
    _visit: str = field(repr=False)
    _capability: str = field(repr=False)
    _used: bool = False

    @classmethod
    def at(cls, port: int, new_secret: Callable[[], bytes]) -> UiDoor:
        """A new one.

        Args:
            port: Where is listened, on loopback.
            new_secret: Gives 32 random bytes.
        """
        origin = f"http://{new_secret()[:_SHORTENED].hex()}.localhost:{port}"
        ticket, visit, capability = (new_secret().hex() for _ in range(3))
        return cls(origin, ticket, visit, capability)

    @property
    def first_url(self) -> str:
        """Lets in the first browser that opens it."""
        return f"{self.origin}{_ENTRANCE}{self._ticket}"

    @property
    def codec_url(self) -> str:
        """Where the codec is; whoever knows it reads."""
        return f"{self.origin}{_CODEC}{self._capability}"

    @property
    def cookie(self) -> str:
        """What the browser is known by, as the header that sets it."""
        return f"{_COOKIE}={self._visit}; Path=/; HttpOnly; SameSite=Strict"

    async def admit(self, scope: AsgiScope) -> Caller:
        """See :class:`engram.server.middleware.Admission`.

        Raises:
            HostRefused: the request names another host, as one of a rebound web page does.
            NoSuchAddress: the codec is asked by an address that is not its own.
            AccessDenied: another browser asks, or a page of another site.
        """
        headers, path = Headers(scope=scope), str(scope["path"])
        if not same_secret(headers.get("host", ""), self.origin.removeprefix("http://")):
            raise HostRefused("This host is not served here.")
        if headers.get("origin", self.origin) != self.origin:
            raise AccessDenied("Pages of other sites may not ask here.")
        if path.startswith(_CODEC):
            if not same_secret(path.removeprefix(_CODEC), f"{self._capability}/decode"):
                raise no_such_address()
        elif path.startswith(_ENTRANCE):
            self._enter(str(scope["method"]), path.removeprefix(_ENTRANCE))
        elif not same_secret(_cookie_of(headers), self._visit):
            raise AccessDenied(
                "This page is open in another browser, or not open any more.",
                allowed="the browser that opened the address of `engram ui` first",
                hint="Run `engram ui` again.",
            )
        return OWNER

    def _enter(self, method: str, ticket: str) -> None:
        if method != "GET":
            # What only looks whether the address answers uses nothing up.
            raise AccessDenied("This address is only opened.", allowed="GET")
        if self._used or not same_secret(ticket, self._ticket):
            raise AccessDenied(
                "This address has been used.", hint="It works once. Run `engram ui` again."
            )
        self._used = True


def _cookie_of(headers: Headers) -> str:
    return cookie_parser(headers.get("cookie", "")).get(_COOKIE, "")


# --- what the pages ask: Temporal's own HTTP API, as far as it reads

# Asked by the client of this process: it has the certificates and keys of its own server, and
# that server needs no door for browsers.
_SERVICES: Final = (
    (workflow_service.DESCRIPTOR, "WorkflowService", "workflow_service"),
    (operator_service.DESCRIPTOR, "OperatorService", "operator_service"),
)
_API: Final = "/api/v1/"
_VARIABLE: Final = re.compile(r"\{([\w.]+)\}")
_BEFORE_CAPITAL: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")
# A page waits for the next event of a history.
_PATIENCE: Final = timedelta(seconds=60)
_STATUS: Final = {
    RPCStatusCode.INVALID_ARGUMENT: 400,
    RPCStatusCode.FAILED_PRECONDITION: 400,
    RPCStatusCode.UNAUTHENTICATED: 401,
    RPCStatusCode.PERMISSION_DENIED: 403,
    RPCStatusCode.NOT_FOUND: 404,
    RPCStatusCode.RESOURCE_EXHAUSTED: 429,
    RPCStatusCode.UNIMPLEMENTED: 501,
    RPCStatusCode.UNAVAILABLE: 503,
    RPCStatusCode.DEADLINE_EXCEEDED: 504,
}


@dataclass(frozen=True, slots=True)
class UiQuestion:
    """One question of Temporal's HTTP API: its address, and the call that answers it."""

    method: str
    address: re.Pattern[str]
    variables: tuple[str, ...]
    asked: Descriptor
    service: str
    call: str


def reading_questions() -> Iterator[UiQuestion]:
    """All that read: where they are, Temporal's own description of its services says."""
    for described, name, service in _SERVICES:
        for method in described.services_by_name[name].methods:
            rule = method.GetOptions().Extensions[annotations_pb2.http]
            for one in (rule, *rule.additional_bindings):
                address = one.get or (one.post if method.name == "QueryWorkflow" else "")
                if not address.startswith(_API):
                    continue
                parts = (re.escape(part) for part in _VARIABLE.split(address)[::2])
                yield UiQuestion(
                    "GET" if one.get else "POST",
                    re.compile("([^/]+)".join(parts)),
                    tuple(_VARIABLE.findall(address)),
                    method.input_type,
                    service,
                    _BEFORE_CAPITAL.sub("_", method.name).lower(),
                )


class _Api:
    """Answers what a page asks."""

    def __init__(self, client: Client) -> None:
        self._client = client
        # Where an address says the same in words and with a variable, the words are meant.
        self._questions = sorted(reading_questions(), key=lambda one: len(one.variables))

    async def answer(self, request: Request) -> Response:
        """Ask Temporal.

        Raises:
            AccessDenied: it would change something, or this does not know that it would not.
            InvalidInput: it cannot be read.
        """
        path = request.scope["raw_path"].decode("ascii")
        for question in self._questions:
            found = question.address.fullmatch(path)
            if found is not None and question.method == request.method:
                given = [unquote(part) for part in found.groups()]
                return await self._ask(request, question, given)
        if request.method == "GET":
            raise no_such_address()
        raise AccessDenied(
            "These pages are for reading.",
            hint="Use Engram's commands, or `temporal workflow terminate` and the like.",
        )

    async def _ask(self, request: Request, question: UiQuestion, given: list[str]) -> Response:
        message = GetMessageClass(question.asked)()
        named = [*zip(question.variables, given, strict=True), *request.query_params.multi_items()]
        try:
            if question.method == "POST":
                json_format.Parse(await request.body(), message, ignore_unknown_fields=True)
            for name, value in named:
                _put(message, name.split("."), value)
        except (json_format.ParseError, UnicodeDecodeError) as error:
            raise InvalidInput("The request cannot be read.") from error
        call = getattr(getattr(self._client, question.service), question.call)
        try:
            return as_json(await call(message, timeout=_PATIENCE))
        except RPCError as error:
            problem = {"code": error.status.value, "message": error.message}
            return Response(
                json.dumps(problem), _STATUS.get(error.status, 500), media_type="application/json"
            )


def _put(message: Message, path: Sequence[str], value: str) -> None:
    """Set the field that an address names; what has no such field is passed over."""
    about = message.DESCRIPTOR
    name, *deeper = path
    field = about.fields_by_name.get(name) or about.fields_by_camelcase_name.get(name)
    if field is None:
        return
    if deeper:
        if field.message_type is not None and not field.is_repeated:
            _put(getattr(message, field.name), deeper, value)
        return
    one: object = value
    if field.type == field.TYPE_BOOL:
        one = value == "true"
    elif field.type == field.TYPE_ENUM and value.isdigit():
        one = int(value)
    json_format.ParseDict({field.name: [one] if field.is_repeated else one}, message)


# --- Temporal's pages, as this browser gets them

_SETTINGS: Final = "/api/v1/settings"
_ASKED: Final = ("accept", "if-none-match")
_ANSWERED: Final = ("content-type", "cache-control", "etag", "last-modified")
_GUARDING: Final = {
    # The pages ask nobody else, stand in frames of their own alone (details written in Markdown
    # do), and tell nobody where they are.
    "Content-Security-Policy": "connect-src 'self'; frame-ancestors 'self'; form-action 'self'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class _Pages:
    """Hands on pages, and puts the codec's address into the UI's settings."""

    def __init__(self, door: UiDoor, namespace: str, http: httpx.AsyncClient) -> None:
        self._door = door
        self._namespace = namespace
        self._http = http

    async def enter(self, _: Request) -> Response:
        """Make the browser known. A page, no redirect: the cookie goes with our own links only."""
        return HTMLResponse(
            '<!doctype html><meta http-equiv="refresh" content="0;url=/">',
            headers={"Set-Cookie": self._door.cookie, "Cache-Control": "no-store", **_GUARDING},
        )

    async def settings(self, request: Request) -> Response:
        """How the UI behaves: as a reader, with the codec's address."""
        told = (await self._ask(request)).json()
        codec = {
            "Endpoint": self._door.codec_url,
            "PassAccessToken": False,
            "IncludeCredentials": False,
        }
        told |= {
            "Codec": codec,
            "DefaultNamespace": self._namespace,
            "DisableWriteActions": True,
            "DisableNewsFetch": True,
        }
        return JSONResponse(told, headers={"Cache-Control": "no-store"})

    async def page(self, request: Request) -> Response:
        """A page, or a part of one."""
        answer = await self._ask(request)
        headers = {name: answer.headers[name] for name in _ANSWERED if name in answer.headers}
        guarding = dict(_GUARDING)
        if policy := answer.headers.get("content-security-policy"):
            # Both hold: what a page may not do by its own account, it may not here.
            guarding["Content-Security-Policy"] += f", {policy}"
        return Response(answer.content, answer.status_code, {**headers, **guarding})

    async def _ask(self, request: Request) -> httpx.Response:
        headers = {name: request.headers[name] for name in _ASKED if name in request.headers}
        try:
            # Path and query: what a browser writes there leads to no other host.
            asked = request.scope["raw_path"], request.scope["query_string"]
            url = self._http.base_url.copy_with(raw_path=b"?".join(filter(None, asked)))
            return await self._http.get(url, headers=headers)
        except httpx.HTTPError as error:
            raise TemporalUnavailable(
                "The program that gives out Temporal's pages does not answer.",
                hint="Run `engram ui` again.",
            ) from error


# --- the application


@asynccontextmanager
async def ui_app(
    door: UiDoor, pages_url: str, client: Client, codec: EncryptionCodec
) -> AsyncIterator[ASGIApp]:
    """The UI and the codec, for the browser that comes through the door.

    Args:
        door: Lets it in.
        pages_url: Where the UI's pages are.
        client: Of the Temporal server that is looked at.
        codec: Of :func:`engram.temporal.encryption.reading_codec`.
    """
    async with httpx.AsyncClient(base_url=pages_url, trust_env=False) as http:
        pages = _Pages(door, client.namespace, http)
        routes = [
            Route(_CODEC + "{capability}/decode", decoding(codec), methods=["POST"]),
            Route(_ENTRANCE + "{ticket}", pages.enter, methods=["GET"]),
            Route(_SETTINGS, pages.settings, methods=["GET"]),
            Route(_API + "{path:path}", _Api(client).answer, methods=["GET", "POST"]),
            Route("/{path:path}", pages.page, methods=["GET"]),
        ]
        yield behind(door, routes)
