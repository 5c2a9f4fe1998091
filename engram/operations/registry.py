"""Operations: how one is described, who handles it, and which memory it acts on."""

from __future__ import annotations

import re
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Final, Generic, Literal, TypeAlias, TypeVar

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter
from pydantic.json_schema import SkipJsonSchema

from engram.domain.access import Access
from engram.domain.scope import Scope
from engram.errors import TooManyRequests, UnknownFailure
from engram.settings import Settings

if TYPE_CHECKING:
    from engram.ports import Clock

# --- what describes an operation, wherever it is carried out


class Question(BaseModel):
    """The fields that an operation is asked with; whose memory is meant is no field of it."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Answered(BaseModel):
    """Base of what operations answer with; fields of a newer server are passed over."""

    model_config = ConfigDict(frozen=True, extra="ignore")


Untold: TypeAlias = Annotated[SkipJsonSchema[tuple[str, ...]], Field(exclude=True)]
"""Ids of memories that an answer tells without naming them: for the audit trail, and not sent."""


class AboutMemory(Question):
    """A question about one memory."""

    memory_id: str


Asked = TypeVar("Asked", bound=BaseModel)
Answer = TypeVar("Answer")

# Of whom a process remembers what runs.
_MOST_USERS: Final = 10_000
_PLACEHOLDER: Final = re.compile(r"{(\w+)}")
_QUERY: Final = re.compile(r"{\?([\w,]+)}\Z")


@dataclass(frozen=True, slots=True)
class Http:
    """How an operation is asked over HTTP.

    Attributes:
        method: GET takes no body.
        path: Below the user's address, as a URI template (RFC 6570): ``{name}`` is a field of
            the request in the path, and ``{?one,two}`` at the end are fields in the query.
            Fields that it does not name are the body. None: the operation's name, and a body.
        body: Name of the body's schema in the OpenAPI document; None: that of the request, with
            "Body" behind it where the request has more fields.
        summary: Title in the document; None: the operation's name.
        tag: Group in the document.
    """

    method: Literal["GET", "POST"] = "POST"
    path: str | None = None
    body: str | None = None
    summary: str | None = None
    tag: Literal["memory", "operations"] = "operations"


@dataclass(frozen=True, slots=True)
class Intake:
    """By what a request from outside is measured, and what settles what it leaves open.

    Attributes:
        settings: Limits.
        clock: The present.
        new_id: Makes a fresh id.
        namespace: Where it goes.
    """

    settings: Settings
    clock: Clock
    new_id: Callable[[], str]
    namespace: str


def _as_it_is(asked: Asked, _: Intake) -> Asked:
    return asked


@dataclass(frozen=True, eq=False)
class Operation(Generic[Asked, Answer]):
    """One thing that can be asked of a user's memory.

    The HTTP route with its entry in the OpenAPI document, the client's request, the check of
    an API key's access and the handler's registration follow from it.

    Attributes:
        name: Lower case, words joined by hyphens; its last part of the address, by default.
        asked: The model of the request. Its validators raise errors of Engram.
        answer: The type of the answer; what it cannot be is None.
        about: One sentence for people who read the API.
        access: What an API key must allow.
        http: How it is asked over HTTP.
        accept: Checks a request from outside by what settings allow, and settles what it
            leaves open; where it comes over HTTP, or from the typed method.
        operator_only: Whether it acts on everybody's memory: no API key opens it, only who owns
            the data folder may ask for it.
    """

    name: str
    asked: type[Asked]
    answer: type[Answer]
    about: str
    access: Access
    http: Http = field(default_factory=Http)
    accept: Callable[[Asked, Intake], Asked] = _as_it_is
    operator_only: bool = False

    def __post_init__(self) -> None:
        unknown = {*self.placed, *self.queried} - self.asked.model_fields.keys()
        if unknown or (self.http.method == "GET" and self.has_body):
            raise TypeError(f"The address of {self.name} does not fit {self.asked.__name__}.")

    @property
    def path(self) -> str:
        """Below the user's address, with the names of fields in braces."""
        return self.name if self.http.path is None else _QUERY.sub("", self.http.path)

    @property
    def placed(self) -> tuple[str, ...]:
        """The fields that stand in the path."""
        return tuple(_PLACEHOLDER.findall(self.path))

    @property
    def queried(self) -> tuple[str, ...]:
        """The fields that stand in the query."""
        found = _QUERY.search(self.http.path or "")
        return tuple(found[1].split(",")) if found else ()

    @property
    def sent(self) -> tuple[str, ...]:
        """The fields of the body."""
        elsewhere = {*self.placed, *self.queried}
        return tuple(name for name in self.asked.model_fields if name not in elsewhere)

    @property
    def has_body(self) -> bool:
        """Whether there is a body at all; an operation at its own name always has one."""
        return self.http.path is None or bool(self.sent)

    @cached_property
    def reader(self) -> TypeAdapter[Answer]:
        """Reads the answer from JSON."""
        return TypeAdapter(self.answer)


# --- who carries operations out in process

_OPERATIONS: Final = "__engram_operations__"
Group = TypeVar("Group")
How = TypeVar("How")


def handles(
    operation: Operation[Asked, Answer],
) -> Callable[
    [Callable[[Group, Scope, Asked], Awaitable[Answer]]],
    Callable[[Group, Scope, Asked], Awaitable[Answer]],
]:
    """Let the method carry out ``operation``."""

    def marked(
        method: Callable[[Group, Scope, Asked], Awaitable[Answer]],
    ) -> Callable[[Group, Scope, Asked], Awaitable[Answer]]:
        vars(method)[_OPERATIONS] = {operation: ()}
        return method

    return marked


def handles_each(
    table: Mapping[Operation[Asked, Answer], How],
) -> Callable[
    [Callable[[Group, Scope, Asked, How], Awaitable[Answer]]],
    Callable[[Group, Scope, Asked, How], Awaitable[Answer]],
]:
    """Let the method carry out all operations of ``table``, told each time what stands by it."""

    def marked(
        method: Callable[[Group, Scope, Asked, How], Awaitable[Answer]],
    ) -> Callable[[Group, Scope, Asked, How], Awaitable[Answer]]:
        vars(method)[_OPERATIONS] = {operation: (how,) for operation, how in table.items()}
        return method

    return marked


def operations_of(group: type) -> Iterator[Operation[Any, Any]]:
    """What the methods of a class carry out, in the order in which they stand in it."""
    for method in vars(group).values():
        yield from getattr(method, _OPERATIONS, ())


class Handlers:
    """Operations, and what carries each of them out.

    Args:
        groups: Objects whose methods are marked with :func:`handles` or :func:`handles_each`.
    """

    def __init__(self, *groups: object) -> None:
        # The pairing of types is checked where a handler is marked and where it is asked.
        self._handlers: dict[str, Callable[[Scope, Any], Awaitable[Any]]] = {}
        for group in groups:
            for name, method in vars(type(group)).items():
                for operation, told in getattr(method, _OPERATIONS, {}).items():
                    self._handlers[operation.name] = _bound(getattr(group, name), told)

    def add(
        self,
        operation: Operation[Asked, Answer],
        handler: Callable[[Scope, Asked], Awaitable[Answer]],
    ) -> None:
        """Let ``handler`` carry out ``operation``."""
        self._handlers[operation.name] = handler

    def __contains__(self, operation: Operation[Any, Any]) -> bool:
        return operation.name in self._handlers

    async def call(
        self, scope: Scope, operation: Operation[Asked, Answer], request: Asked
    ) -> Answer:
        """Carry ``operation`` out for one user.

        Raises:
            UnknownFailure: this process does not know the operation.
        """
        handler = self._handlers.get(operation.name)
        if handler is None:
            raise UnknownFailure(
                f"The operation {operation.name!r} is not offered here.",
                hint="Use the same version of Engram in all processes.",
            )
        answer: Answer = await handler(scope, request)
        return answer


def _bound(
    method: Callable[..., Awaitable[Any]], told: tuple[Any, ...]
) -> Callable[[Scope, Any], Awaitable[Any]]:
    if not told:
        return method

    async def handler(scope: Scope, asked: Any) -> Any:
        return await method(scope, asked, *told)

    return handler


# --- how much of one user may run at the same time


class RunningQuota:
    """Bounds what runs for one user: each of it is a workflow, and holds memory and history.

    This process counts what it has begun itself, and asks nobody: a flood comes through one
    process, or through as many as there are limits of rate for it.

    Args:
        what: What is counted, in the plural.
        most: As many may run.
        idle: After so long without use, one has ended by itself.
        hint: What to do about too many.
    """

    def __init__(self, what: str, most: int, idle: timedelta, hint: str) -> None:
        self._what = what
        self._most = most
        self._idle = idle.total_seconds()
        self._hint = hint
        # By user, those used last at the end; so are users.
        self._used: OrderedDict[str, OrderedDict[str, float]] = OrderedDict()

    def admit(self, scope: Scope, name: str) -> None:
        """Note that something is used, which may begin it.

        Raises:
            TooManyRequests: it would be one too many.
        """
        now = time.monotonic()
        used = self._used.setdefault(scope.tenant, OrderedDict())
        self._used.move_to_end(scope.tenant)
        while used and next(iter(used.values())) < now - self._idle:
            used.popitem(last=False)
        if name not in used and len(used) >= self._most:
            raise TooManyRequests(
                f"{len(used)} {self._what} of this user were begun here and may still run.",
                allowed=f"up to {self._most} at the same time",
                hint=self._hint,
                details={"limit": self._most},
            )
        used[name] = now
        used.move_to_end(name)
        while len(self._used) > _MOST_USERS:
            self._used.popitem(last=False)

    def ended(self, scope: Scope, name: str) -> None:
        """Note that something ended."""
        used = self._used.get(scope.tenant, OrderedDict())
        used.pop(name, None)
        if not used:
            self._used.pop(scope.tenant, None)

    def forget(self, scope: Scope) -> None:
        """Note that the user was erased, which ended all of it."""
        self._used.pop(scope.tenant, None)
