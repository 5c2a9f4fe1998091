"""What commands share: options, settings, a user's memory, an event loop."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar
from copy import copy
from dataclasses import MISSING, dataclass, fields
from datetime import datetime, timedelta
from functools import wraps
from inspect import Parameter, Signature, getdoc, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Self, TypeAlias, TypeVar, get_type_hints

import typer
from typer.main import get_command_name
from typer.models import CommandInfo

from engram.cli import output

if TYPE_CHECKING:
    from engram.client.memory import MemoryStore
    from engram.errors import InvalidQuery, InvalidTurn
    from engram.operations.admin import StatusReport
    from engram.settings import Settings

    Left: TypeAlias = Callable[[StatusReport, StatusReport], int]
    """How much is left to do, from how the real and the test memories stand."""

# --- options and arguments that many commands take, named and described in one place

JSON_ASKED: Final = "engram.json"
"""In the context's ``meta``: whether the command was asked for JSON."""

# Names only: reading the types themselves would load all of what a memory is, at every <Tab>.
# A test compares them with the types.
MEMORY_TYPES: Final = ("episodic", "factual", "semantic", "procedural", "negation")
MEMORY_STATES: Final = ("active", "superseded", "archived", "expired")
ROLES: Final = ("user", "assistant", "system", "tool")
ANSWERING_FORMS: Final = "statement artifact summary".split()
MEMORY_FORMS: Final = [*ANSWERING_FORMS, *"profile topic box guideline".split()]
STAGES: Final = ("stored", "extracted", "linked")


def _note_json(context: typer.Context, value: bool) -> bool:
    context.meta[JSON_ASKED] = value
    return value


_USER: Final = "ENGRAM_USER"
OPTION_VARIABLES: Final = (_USER,)
"""Variables that are no settings: options of commands read them. A test compares them."""

User = Annotated[
    str, typer.Option("--user", "-u", envvar=_USER, help="Whose memory.", metavar="ID")
]
SomeUser = Annotated[
    str | None,
    typer.Option("--user", "-u", envvar=_USER, help="Whose memory.", metavar="ID"),
]
Session = Annotated[str, typer.Option("--session", "-s", help="The conversation.", metavar="ID")]
Json = Annotated[
    bool,
    typer.Option("--json", help="Print one JSON document, errors too.", callback=_note_json),
]


def _folder(named: str) -> Path:
    if not named.strip():
        # A variable that is empty: the path would be the current folder.
        raise typer.BadParameter("It is empty.")
    return Path(named)


DataDir = Annotated[
    Path | None,
    typer.Option(
        "--data-dir",
        "-d",
        help="Folder of the embedded mode; else ENGRAM_DATA_DIR.",
        show_default="~/.engram",
        parser=_folder,
        metavar="FOLDER",
    ),
]
Connected = Annotated[
    bool,
    typer.Option(
        "--connected", help="Use the Temporal and Qdrant servers that the ENGRAM_ settings name."
    ),
]
MemoryId = Annotated[
    str, typer.Argument(help="The memory's id, as `engram list` and --json print it.")
]


def one_of(words: Sequence[str], about: str, *names: str, metavar: str | None = None) -> Any:
    """An option that takes one of a few words, which its help lists and <Tab> offers.

    Args:
        words: The words.
        about: The help, without the words.
        names: What the option is called; none: like its parameter.
        metavar: What the help shows in place of a value.
    """
    return typer.Option(
        *names,
        help=f"{about}: {', '.join(words)}.",
        autocompletion=lambda: list(words),
        metavar=metavar,
    )


MemoryTypes = Annotated[
    list[str] | None,
    one_of(MEMORY_TYPES, "Only this type; may be repeated", "--type", "-t", metavar="TYPE"),
]
Forms = Annotated[
    list[str] | None,
    one_of(
        MEMORY_FORMS,
        "Of semantic memories, only this form; may be repeated",
        "--form",
        metavar="FORM",
    ),
]
Roles = Annotated[
    list[str] | None,
    one_of(ROLES, "Of turns, only this role; may be repeated", "--role", metavar="ROLE"),
]
Tags = Annotated[
    list[str] | None,
    typer.Option("--tag", help="Only with this tag; may be repeated: any of them.", metavar="TAG"),
]
WithoutTags = Annotated[
    list[str] | None,
    typer.Option("--without-tag", help="Only without this tag; may be repeated.", metavar="TAG"),
]
OneSession = Annotated[
    str | None, typer.Option("--session", "-s", help="Only this conversation.", metavar="ID")
]
OneRun = Annotated[
    str | None,
    typer.Option(
        "--run-id", help="Only what this run of a workflow wrote first.", metavar="RUN-ID"
    ),
]
Metadata = Annotated[
    list[str] | None,
    typer.Option(
        "--metadata",
        help="KEY=VALUE; may be repeated. A value that is JSON is that, any other is text.",
        metavar="KEY=VALUE",
    ),
]
IncludeTest = Annotated[bool, typer.Option("--include-test", help="Test memories too.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Write nothing; say what would change.")]
TestOnly = Annotated[
    bool, typer.Option("--test-only", help="Test memories only; without it, all others.")
]
OnlyTests = Annotated[
    bool, typer.Option("--test-only", help="Refuse it for what is no test memory.")
]


# --- what commands run on: settings, a user's memory, an event loop

Answer = TypeVar("Answer")

# What the option --url of the whole program gave, for whichever command follows it.
given_url: ContextVar[str | None] = ContextVar("given_url", default=None)


def run(work: Callable[[], Awaitable[Answer]]) -> Answer:
    """Do asynchronous work, and wait for it."""
    import asyncio  # noqa: PLC0415 - slow; no help text needs it

    from engram.domain.deeds import Actor, Door  # noqa: PLC0415 - same
    from engram.operations.audit import acting  # noqa: PLC0415 - same

    async def main() -> Answer:
        with acting(Actor(door=Door.CLI)):
            return await work()

    return asyncio.run(main())


def settings_from(
    data_dir: Path | None = None, *, stays: bool = False, asks: bool = False
) -> Settings:
    """The settings of the environment, and logging as they say.

    Args:
        data_dir: Overrides the data folder.
        stays: Whether the command serves others: then its log is what it says. One that
            answers and ends logs warnings only, unless ENGRAM_LOG_LEVEL says otherwise.
        asks: Whether the command may do no more than ask another process: then logging is set
            up when there is something to log.

    Raises:
        InvalidSettings: one of them cannot be used, or --url tells a server whom to ask.
    """
    from engram import logging  # noqa: PLC0415 - slow; no help text needs it
    from engram.errors import InvalidSettings  # noqa: PLC0415 - same
    from engram.settings import Settings  # noqa: PLC0415 - same

    if stays and given_url.get() is not None:
        raise InvalidSettings(
            "This command answers others; --url says whom a command asks.",
            allowed="--url with commands that ask and end",
            hint="Leave it out; ENGRAM_HTTP_HOST and ENGRAM_HTTP_PORT say where to answer.",
        )
    options = {"data_dir": data_dir, "url": given_url.get()}
    settings = Settings.load(
        **{name: given for name, given in options.items() if given is not None}
    )
    quiet = not stays and "log_level" not in settings.model_fields_set
    level = "warning" if quiet else settings.log_level
    configure = logging.configure_logging_late if asks else logging.configure_logging
    configure(level=level, style=settings.log_format)
    return settings


def keep_core_quiet() -> None:
    """Keep what Temporal's SDK prints by itself out of what the command prints."""
    from temporalio.runtime import Runtime  # noqa: PLC0415 - only what is used loads

    from engram.temporal.connection import quiet_runtime  # noqa: PLC0415 - same

    Runtime.set_default(quiet_runtime(), error_if_already_set=False)


def over_http(settings: Settings, data_dir: Path | None, connected: bool) -> bool:
    """Whether an HTTP API is to be used: whoever names a folder or servers means those.

    Raises:
        InvalidSettings: the options name two places.
    """
    from engram.errors import InvalidSettings  # noqa: PLC0415 - no help text needs it

    elsewhere = connected or data_dir is not None
    if given_url.get() is not None and elsewhere:
        raise InvalidSettings(
            "The options name two places where the memory is.",
            allowed="one of --url, --connected and --data-dir",
        )
    return bool(settings.url) and not elsewhere


def settings_here(data_dir: Path | None) -> Settings:
    """The settings of a command about files of this machine, which no HTTP API leads to.

    Raises:
        InvalidSettings: one of them cannot be used, or an HTTP API is named.
    """
    from engram.errors import InvalidSettings  # noqa: PLC0415 - no help text needs it

    settings = settings_from(data_dir)
    if over_http(settings, data_dir, connected=False):
        raise InvalidSettings(
            "This command is about files on the machine of the server, to which an HTTP API does "
            "not lead.",
            allowed="--data-dir, or the folder and files that the ENGRAM_ settings name",
            hint="Run it on the machine where they lie, without --url and ENGRAM_URL.",
        )
    return settings


def moment(text: str | None, wrong: type[InvalidTurn] | type[InvalidQuery]) -> datetime | None:
    """A point in time as it was typed.

    Raises:
        InvalidTurn, InvalidQuery: as ``wrong`` says, if it cannot be read.
    """
    if text is None:
        return None
    try:
        read = datetime.fromisoformat(text)
        if read.tzinfo is not None:
            return read
        what = "has no time zone"
    except ValueError:
        what = "cannot be read"
    raise wrong(
        f"A point in time {what}.", allowed="ISO 8601 with zone, such as 2026-05-20T08:15:00+01:00"
    )


_UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400}


def duration(text: str | None) -> timedelta | None:
    """A stretch of time as it was typed: a number, and s, m, h, d or w.

    Raises:
        InvalidTurn: it is none.
    """
    from engram.errors import InvalidTurn  # noqa: PLC0415 - no help text needs it

    if text is None:
        return None
    try:
        return timedelta(seconds=float(text[:-1]) * _UNITS[text[-1:]])
    except (ValueError, KeyError, OverflowError) as error:
        raise InvalidTurn(
            "A stretch of time cannot be read.", allowed="a number and its unit: 90s, 30m, 12h, 7d"
        ) from error


def pairs(given: list[str] | None) -> dict[str, Any]:
    """Metadata as it was typed.

    Raises:
        InvalidInput: one of them has no key.
    """
    from engram.errors import InvalidInput  # noqa: PLC0415 - no help text needs it

    found: dict[str, Any] = {}
    for one in given or ():
        key, equals, value = one.partition("=")
        if not key or not equals:
            raise InvalidInput("Metadata cannot be read.", allowed="KEY=VALUE")
        found[key] = json_or_text(value)
    return found


def json_or_text(typed: str) -> Any:
    """What somebody typed as a value: JSON where it is some, or else their words."""
    try:
        return json.loads(typed)
    except (ValueError, RecursionError):
        return typed


# --- options that are taken together, and what is done with them


@dataclass(frozen=True, kw_only=True)
class OptionGroup:
    """Options that are taken together."""


@dataclass(frozen=True, kw_only=True)
class StoreOptions(OptionGroup):
    """Where the memory is."""

    data_dir: DataDir = None
    connected: Connected = False

    @asynccontextmanager
    async def memory_of(self, user: str) -> AsyncIterator[MemoryStore]:
        """The user's memory: over HTTP, connected, or embedded (or attached to who runs it)."""
        settings = settings_from(self.data_dir, asks=True)
        if over_http(settings, self.data_dir, self.connected):
            from engram.client.connect import connect  # noqa: PLC0415 - only what is used loads

            async with connect(settings.url, user_id=user, settings=settings) as memory:
                yield memory
        elif self.connected:
            from engram.client.connect import connect  # noqa: PLC0415 - same

            keep_core_quiet()
            servers = settings.model_copy(update={"url": None})
            async with connect(user_id=user, settings=servers) as memory:
                yield memory
        else:
            from engram.embedded.open import open as open_embedded  # noqa: PLC0415 - same

            async with open_embedded(user_id=user, settings=settings) as memory:
                yield memory


@dataclass(frozen=True, kw_only=True)
class AnswerOptions(StoreOptions):
    """Where the memory is, and how the answer is printed."""

    as_json: Json = False

    def show(self, found: Answer, plain: Callable[[Answer], None]) -> None:
        """Print what was found: as JSON if that was asked for, else by ``plain``."""
        if self.as_json:
            output.print_json(found)
        else:
            plain(found)

    def of(self, user: str) -> MemoryOptions:
        """The same for one user's memory."""
        return MemoryOptions(
            user=user, data_dir=self.data_dir, connected=self.connected, as_json=self.as_json
        )


@dataclass(frozen=True, kw_only=True)
class MemoryOptions(AnswerOptions):
    """Whose memory is meant, where it is, and how the answer is printed."""

    user: User

    def ask(
        self,
        question: Callable[[MemoryStore], Awaitable[Answer]],
        *,
        doing: str = "Looking",
        left: Left | None = None,
    ) -> Answer:
        """What the memory answers; meanwhile what is being done is shown, and how far it is.

        Args:
            question: What is asked.
            doing: That in a word or two.
            left: How much is left to do; asked again and again. Where it is not given, it is
                shown for how long it goes on.
        """
        with output.telling(doing) as tell:

            async def work() -> Answer:
                async with self.memory_of(self.user) as memory:
                    look = None if left is None else _looking(memory, left)
                    return await watched(question(memory), tell, look)

            return run(work)

    def answer(
        self,
        question: Callable[[MemoryStore], Awaitable[Answer]],
        plain: Callable[[Answer], None],
        *,
        doing: str = "Looking",
        left: Left | None = None,
    ) -> Answer:
        """Ask the memory and print what it answers, as :meth:`show` does."""
        found = self.ask(question, doing=doing, left=left)
        self.show(found, plain)
        return found


_LOOK_EVERY: Final = 1.0
"""Seconds between two looks at how far something long is; ten times what one takes, at least."""


Look: TypeAlias = Callable[[], Awaitable[str | None]]
"""How far something is, in words; None where that cannot be told just then."""


async def watched(
    asked: Awaitable[Answer], tell: Callable[[str], None], look: Look | None = None
) -> Answer:
    """The answer; until it is there, how far it is is asked and told.

    Args:
        asked: What is waited for.
        tell: Takes how far it is.
        look: Asks for that, before it begins and then again and again; where there is none, it
            is told for how long it has gone on.
    """
    import asyncio  # noqa: PLC0415 - slow; no help text needs it

    if look is not None:
        await look()
    work = asyncio.ensure_future(asked)
    started, pause = time.monotonic(), _LOOK_EVERY
    try:
        while not (await asyncio.wait({work}, timeout=pause))[0]:
            began = time.monotonic()
            told = f"{began - started:.0f} s" if look is None else await look()
            pause = max(_LOOK_EVERY, 10 * (time.monotonic() - began))
            if told is not None:
                tell(told)
        return await work
    finally:
        if work.cancel():
            await asyncio.wait({work})


def _looking(memory: MemoryStore, left: Left) -> Look:
    """Asks how much is left of the most that ever was."""
    total = 0

    async def look() -> str | None:
        nonlocal total
        now = await _left(memory, left)
        if now is None:
            return None
        total = max(total, now)
        return f"{total - now} of {total}"

    return look


async def _left(memory: MemoryStore, left: Left) -> int | None:
    """How much is left; None where that cannot be told, which is no reason to stop."""
    from engram.errors import EngramError  # noqa: PLC0415 - no help text needs it

    try:
        return left(await memory.status(), await memory.status(test_only=True))
    except EngramError:
        return None


class Commands(typer.Typer):
    """Commands whose parameters may be options that are taken together.

    Such a parameter is taken apart into its options: the required ones where it stands, the
    others behind all that the command itself has. :meth:`ready` does that, for those commands
    only that may be called.
    """

    def ready(self) -> Self:
        """The same, once all commands are as Typer reads them."""
        for each in self.registered_commands:
            if each.callback is not None and not hasattr(each.callback, "__signature__"):
                each.callback = _taken_apart(each.callback)
        for group in self.registered_groups:
            if isinstance(group.typer_instance, Commands):
                group.typer_instance.ready()
        return self

    def outline(self) -> typer.Typer:
        """Names and texts alone, for a help that lists them."""
        outlined = typer.Typer()
        for each in self.registered_commands:
            shown = copy(each)
            shown.name = name_of(each)
            shown.help = each.help or getdoc(each.callback)
            shown.callback = _nothing
            outlined.registered_commands.append(shown)
        for group in self.registered_groups:
            told = group.typer_instance.info if group.typer_instance else group
            outlined.add_typer(typer.Typer(name=told.name, help=told.help))
        return outlined


def name_of(command: CommandInfo) -> str:
    """What a command is called by: its own name, or that of its function."""
    own = command.name or getattr(command.callback, "__name__", None)
    return get_command_name(str(own))


def _nothing() -> None:
    """What a command does that is only listed."""


def _taken_apart(function: Callable[..., None]) -> Callable[..., None]:
    """The command with an option for each field of the options that are taken together."""
    hints = get_type_hints(function, include_extras=True)
    groups = {
        name: hint
        for name, hint in hints.items()
        if isinstance(hint, type) and issubclass(hint, OptionGroup)
    }
    own, common = list[Parameter](), list[Parameter]()
    for each in signature(function).parameters.values():
        if each.name not in groups:
            own.append(each.replace(kind=Parameter.KEYWORD_ONLY, annotation=hints[each.name]))
            continue
        for option in _options(groups[each.name]):
            (own if option.default is Parameter.empty else common).append(option)

    @wraps(function)
    def called(**given: Any) -> None:
        for name, group in groups.items():
            together = {field.name: given.pop(field.name) for field in fields(group)}
            given[name] = group(**together)
        function(**given)

    parameters = [*own, *common]
    called.__annotations__ = {each.name: each.annotation for each in parameters}
    # Where Typer looks for what a command takes.
    called.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    return called


def _options(group: type[OptionGroup]) -> Iterator[Parameter]:
    hints = get_type_hints(group, include_extras=True)
    for field in fields(group):
        default = Parameter.empty if field.default is MISSING else field.default
        yield Parameter(
            field.name, Parameter.KEYWORD_ONLY, default=default, annotation=hints[field.name]
        )
