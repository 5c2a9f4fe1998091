"""Replaying histories, of a server or from files, against the code as it is now.

The page for people is docs/deploying.md.
"""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from types import CodeType, FunctionType
from typing import Final, TypeVar, get_args

from pydantic import BaseModel, ConfigDict
from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import History
from temporalio.client import Client, WorkflowExecution, WorkflowHistory
from temporalio.converter import DataConverter
from temporalio.service import RPCError, RPCStatusCode
from temporalio.worker import Replayer

from engram.contracts import names
from engram.contracts.lifecycle import variant_of
from engram.contracts.messages import Population
from engram.errors import EngramError, InvalidQuery, written_into
from engram.ports import Clock
from engram.system import new_secret
from engram.temporal.encryption import data_converter, for_replays, is_unread
from engram.temporal.redaction import Redactor, payloads_of
from engram.temporal.retry import typed
from engram.workflows.worker import WORKFLOWS, sandbox_runner

# --- what comes of a replay

_WHAT_TO_DO: Final = (
    "Runs like this one would stop with this code: do not deploy it. Keep the old order of "
    'commands for them with `workflow.patched("what-changed")`, or give the new behaviour a '
    "workflow type of its own; docs/deploying.md says when to choose which."
)
_UNREADABLE: Final = (
    "Its payloads cannot be read: they were encrypted with other keys, or the user was erased. "
    "ENGRAM_ENCRYPTION_KEYS names the folder of the keys."
)
_NAMED: Final = re.compile(r"HistoryEvent\(id: (\d+)")
_SAID: Final = re.compile(r'\[TMPRL\d+\][^"]*|message: "((?:[^"\\]|\\.)+)"')
_LONGEST: Final = 300


class Replayed(BaseModel):
    """What came of a replay.

    Attributes:
        workflow_id: The workflow.
        run_id: The run whose history was fetched; empty for a file.
        workflow_type: Its name.
        events: How many events its history has.
        fits: Whether the present code makes the same commands in the same order.
        event: The first event that the code does not lead to, counted from 1; None if it fits.
        event_type: What that event is, such as ``ActivityTaskScheduled``.
        failure: Where they part, and what to do; None if they do not.
        readable: Whether its payloads are: not with other keys, nor once its user was erased.
        file: Where the history was read, if it was.
    """

    model_config = ConfigDict(frozen=True)

    workflow_id: str
    run_id: str
    workflow_type: str
    events: int
    fits: bool
    event: int | None = None
    event_type: str | None = None
    failure: str | None = None
    readable: bool = True
    file: str | None = None


class Replays(BaseModel):
    """What came of several.

    Attributes:
        replayed: How many histories.
        workflow_types: How many of each type.
        misfits: Those that do not fit, each with what to do.
        unreadable: How many more could not be replayed, because the keys do not open them.
        left_out: How many more run, which a limit left out. Of a sample they are not counted.
    """

    model_config = ConfigDict(frozen=True)

    replayed: int
    workflow_types: dict[str, int]
    misfits: tuple[Replayed, ...]
    unreadable: int = 0
    left_out: int = 0

    @classmethod
    def of(cls, replayed: Sequence[Replayed], left_out: int = 0) -> Replays:
        """The sum of them."""
        read = [one for one in replayed if one.readable]
        types = sorted(one.workflow_type for one in read)
        return cls(
            replayed=len(read),
            workflow_types={name: types.count(name) for name in dict.fromkeys(types)},
            misfits=tuple(one for one in read if not one.fits),
            unreadable=len(replayed) - len(read),
            left_out=left_out,
        )

    @property
    def fit(self) -> bool:
        """Whether something was replayed, or there was nothing to replay, and all of it fits.

        Where a limit left some out, that is not known.
        """
        return not (self.misfits or self.left_out) and (self.replayed > 0 or not self.unreadable)


async def replayed(
    history: WorkflowHistory,
    converter: DataConverter,
    *,
    file: Path | None = None,
    workflows: Sequence[type] | None = None,
) -> Replayed:
    """Run code against one history; nothing is changed, and no activity runs.

    Args:
        history: With its workflow's id.
        converter: A client's: with the keys, where histories are encrypted.
        file: Where it was read.
        workflows: The code; that of this release when absent.
    """
    workflows = workflows or WORKFLOWS
    bare = await _decrypted(history, converter)
    history = WorkflowHistory(history.workflow_id, list(bare.events))
    started = history.events[0].workflow_execution_started_event_attributes
    told = Replayed(
        workflow_id=history.workflow_id,
        run_id=started.original_execution_run_id,
        workflow_type=started.workflow_type.name,
        events=len(history.events),
        fits=True,
        file=None if file is None else str(file),
    )
    if any(is_unread(payload) for payload in payloads_of(bare)):
        return told.model_copy(update={"fits": False, "readable": False, "failure": _UNREADABLE})
    failure = await _failure(history, workflows)
    if failure is None:
        return told
    number = await _first_misfit(history, workflows, failure)
    kind = _kind(history.events[number - 1].event_type)
    said = _SAID.search(failure)
    words = (said.group(1) or said.group(0)) if said else failure.partition("\n")[0]
    return told.model_copy(
        update={
            "event": number,
            "event_type": kind,
            "fits": False,
            "failure": f"{told.workflow_type} ({told.workflow_id}) parts from its history at event "
            f"{number}, {kind}: {words[:_LONGEST]} {_WHAT_TO_DO}",
        }
    )


async def _failure(history: WorkflowHistory, workflows: Sequence[type]) -> str | None:
    replayer = Replayer(
        workflows=list(workflows),
        data_converter=data_converter(None),
        workflow_runner=sandbox_runner(),
    )
    result = await replayer.replay_workflow(history, raise_on_replay_failure=False)
    return None if result.replay_failure is None else str(result.replay_failure)


async def _first_misfit(history: WorkflowHistory, workflows: Sequence[type], failure: str) -> int:
    """The first event that does not fit: as the failure says, or the shortest part that fails."""
    named = _NAMED.search(failure)
    if named is not None and int(named.group(1)) <= len(history.events):
        return int(named.group(1))
    fits, fails = 0, len(history.events)
    while fails - fits > 1:
        middle = (fits + fails) // 2
        part = WorkflowHistory(history.workflow_id, history.events[:middle])
        if await _failure(part, workflows) is None:
            fits = middle
        else:
            fails = middle
    return fails


def _kind(event_type: EventType.ValueType) -> str:
    words = EventType.Name(event_type).removeprefix("EVENT_TYPE_").split("_")
    return "".join(word.capitalize() for word in words)


# --- histories of a server

_OURS: Final = "WorkflowType STARTS_WITH 'engram.'"
_PAGE: Final = 100


_NO_HISTORY: Final = frozenset({RPCStatusCode.NOT_FOUND, RPCStatusCode.INVALID_ARGUMENT})


async def one_history(
    client: Client, workflow_id: str, run_id: str | None = None
) -> AsyncIterator[WorkflowHistory]:
    """The history of one run.

    Args:
        client: Connected to the server that keeps it.
        workflow_id: As the Temporal UI shows it.
        run_id: One of its runs; the latest when absent.

    Raises:
        InvalidQuery: the server keeps no such history.
        TemporalUnavailable: the server cannot be reached.
    """
    handle = client.get_workflow_handle(workflow_id, run_id=run_id)
    try:
        yield await handle.fetch_history()
    except (RPCError, UnicodeEncodeError) as error:
        if isinstance(error, RPCError) and error.status not in _NO_HISTORY:
            raise typed(error) from error
        raise InvalidQuery(
            "Temporal keeps no history of this workflow.",
            hint="Ids are those of the Temporal UI, such as session/default/ada/s1.",
        ) from error


async def open_histories(
    client: Client, store: str, limit: int, on_left_out: Callable[[int], None] | None = None
) -> AsyncIterator[WorkflowHistory]:
    """Histories of what runs now.

    Args:
        client: Of the server.
        store: The collection prefix: of several stores on a Temporal namespace, whose runs.
        limit: At most so many, dealt out among the types of workflows.
        on_left_out: Told, before the first of them, how many more run.

    Raises:
        TemporalUnavailable: the server cannot be reached.
    """
    running = "ExecutionStatus = 'Running'"
    async for history in _histories(client, store, running, limit, on_left_out):
        yield history


async def recent_histories(
    client: Client, store: str, limit: int, *, days: float, clock: Clock
) -> AsyncIterator[WorkflowHistory]:
    """A sample of what ran in the last days, newest first, what runs still included.

    Args:
        client: Of the server.
        store: The collection prefix.
        limit: At most so many, dealt out among the types of workflows, so that many sessions
            do not crowd out the one import.
        days: How far back.
        clock: The present.

    Raises:
        TemporalUnavailable: the server cannot be reached.
    """
    since = f"'{clock() - timedelta(days=days):%Y-%m-%dT%H:%M:%SZ}'"
    when = f"(StartTime >= {since} OR CloseTime >= {since})"
    async for history in _histories(client, store, when, limit):
        yield history


async def _histories(
    client: Client,
    store: str,
    when: str,
    limit: int,
    on_left_out: Callable[[int], None] | None = None,
) -> AsyncIterator[WorkflowHistory]:
    try:
        for execution in await _dealt(client, store, when, limit, on_left_out):
            try:
                yield await client.get_workflow_handle(
                    execution.id, run_id=execution.run_id
                ).fetch_history()
            except RPCError as error:
                # It was deleted since it was listed.
                if error.status is not RPCStatusCode.NOT_FOUND:
                    raise
    except RPCError as error:
        raise typed(error) from error


async def _dealt(
    client: Client,
    store: str,
    when: str,
    limit: int,
    on_left_out: Callable[[int], None] | None,
) -> list[WorkflowExecution]:
    """Runs, one of each type after the other, until there are enough; the rest may be counted."""
    found: list[list[WorkflowExecution]] = []
    listed = 0
    known = ", ".join(f"'{name}'" for name in names.WORKFLOW_TYPES)
    kinds = [f"WorkflowType = '{name}'" for name in names.WORKFLOW_TYPES]
    # A type that the code has no more is what must not be missed.
    for kind in (*kinds, f"{_OURS} AND WorkflowType NOT IN ({known})"):
        of_kind: list[WorkflowExecution] = []
        async for execution in client.list_workflows(f"{kind} AND {when}", page_size=_PAGE):
            if names.store_of(execution.id) != store:
                continue
            listed += 1
            if len(of_kind) < limit:
                of_kind.append(execution)
            elif on_left_out is None:
                break
        found.append(of_kind)
    if on_left_out is not None:
        on_left_out(max(0, listed - limit))
    turns = range(max(map(len, found)))
    return [of_kind[turn] for turn in turns for of_kind in found if turn < len(of_kind)][:limit]


# --- histories in files

Kind = TypeVar("Kind")
_ROOMS: Final = ("engram.workflows.", "engram.contracts.")
# How ids of workflows begin.
_KINDS: Final = frozenset(
    f"{workflow.removeprefix('engram.').replace('_', '-')}{variant_of(population, dry_run=dry)}"
    for workflow in names.WORKFLOW_TYPES
    for population in Population
    for dry in (False, True)
)


def histories_in(paths: Iterable[Path]) -> Iterator[tuple[Path, WorkflowHistory]]:
    """Histories that were saved: by Engram, by the Temporal UI or by ``temporal workflow show``.

    Args:
        paths: Files, and folders whose ``*.json`` are meant.

    Raises:
        InvalidQuery: there is none, or one is no history.
    """
    files = [
        file
        for path in paths
        for file in (sorted(path.glob("*.json")) if path.is_dir() else [path])
    ]
    if not files:
        raise InvalidQuery("There is no history file.", allowed="files, or folders with *.json")
    for file in files:
        try:
            history = WorkflowHistory.from_json(file.stem, file.read_text("utf-8"))
            started = history.events[0].workflow_execution_started_event_attributes
        except (OSError, ValueError, LookupError, RecursionError) as error:
            raise InvalidQuery(
                f"{file} is no history of a workflow.",
                allowed="JSON as `engram save-histories` or `temporal workflow show --output json` "
                "writes it",
            ) from error
        yield file, WorkflowHistory(started.workflow_id or file.stem, history.events)


class Saved(BaseModel):
    """What was written for later replays.

    Attributes:
        folder: Where.
        files: Names of the files.
        left_out: Runs whose history is not saved, because without its words it would not
            replay, or because its words cannot be read.
    """

    model_config = ConfigDict(frozen=True)

    folder: str
    files: tuple[str, ...]
    left_out: tuple[Replayed, ...] = ()


async def save(
    histories: AsyncIterator[WorkflowHistory], converter: DataConverter, folder: Path
) -> Saved:
    """Write histories without their words, each after it has replayed like that.

    Args:
        histories: As the server has them.
        converter: A client's, with the keys: what is written is readable, and holds no words.
        folder: Made if it is missing. A run that was saved before is written anew.

    Raises:
        InvalidInput: the folder cannot be made, or written to.
    """
    with written_into(folder):
        await asyncio.to_thread(folder.mkdir, parents=True, exist_ok=True)
    redactor = Redactor(code_words(), _field_names(), new_secret())
    files: list[str] = []
    left_out: list[Replayed] = []
    plain = data_converter(None)
    async for history in histories:
        readable = await _decrypted(history, converter)
        if any(is_unread(payload) for payload in payloads_of(readable)):
            left_out.append(await replayed(history, converter))
            continue
        bare = redactor.history(readable)
        started = bare.events[0].workflow_execution_started_event_attributes
        taken = WorkflowHistory(started.workflow_id, list(bare.events))
        came = await replayed(taken, plain)
        if not came.fits:
            left_out.append(came)
            continue
        kind = started.workflow_type.name.removeprefix("engram.")
        name = f"{kind}-{started.original_execution_run_id}.json"
        text = taken.to_json() + "\n"
        with written_into(folder):
            await asyncio.to_thread((folder / name).write_text, text, "utf-8")
        files.append(name)
    return Saved(folder=str(folder), files=tuple(files), left_out=tuple(left_out))


async def _decrypted(history: WorkflowHistory, converter: DataConverter) -> History:
    taken = History()
    taken.events.extend(history.events)
    codec = for_replays(converter).payload_codec
    if codec is not None:
        for payload in payloads_of(taken):
            (readable,) = await codec.decode([payload])
            payload.CopyFrom(readable)
    return taken


def code_words() -> frozenset[str]:
    """Texts that workflows and what crosses Temporal have in their code: they may compare."""
    found = {kind.code for kind in _below(EngramError)} | _KINDS
    for name, module in list(sys.modules.items()):
        if name.startswith(_ROOMS):
            for attribute, value in vars(module).items():
                if attribute != "__doc__":
                    found.update(_texts(value))
    for model in _models():
        for field in model.model_fields.values():
            found.update(_choices(field.annotation))
    return frozenset(found)


def _choices(annotation: object) -> Iterator[str]:
    """Texts that a field's type lists."""
    if isinstance(annotation, type) and issubclass(annotation, StrEnum):
        yield from (one.value for one in annotation)
    for inner in get_args(annotation):
        if isinstance(inner, str):
            yield inner
        else:
            yield from _choices(inner)


def _field_names() -> frozenset[str]:
    """Names of the fields of all messages, which are no words of anybody's."""
    return frozenset(name for model in _models() for name in model.model_fields)


def _models() -> Iterator[type[BaseModel]]:
    return (one for one in _below(BaseModel) if one.__module__.startswith("engram."))


def _below(base: type[Kind]) -> Iterator[type[Kind]]:
    """Every class that is one of these."""
    for kind in base.__subclasses__():
        yield kind
        yield from _below(kind)


def _texts(value: object) -> Iterator[str]:
    """Texts in the code of a function, or of a class, or a constant."""
    match value:
        case str():
            yield value
        case FunctionType():
            yield from _texts(value.__code__)
        case CodeType():
            # The first is what the code says of itself.
            for constant in value.co_consts[1:]:
                yield from _texts(constant)
        case type() if value.__module__.startswith("engram."):
            for attribute, one in vars(value).items():
                if attribute != "__doc__":
                    yield from _texts(one)
        case tuple() | frozenset():
            for one in value:
                yield from _texts(one)
