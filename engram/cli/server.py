"""Commands that start something and stay, and those on API keys and encryption keys."""

from __future__ import annotations

from collections.abc import Awaitable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from engram.cli import output
from engram.cli.running import (
    Commands,
    DataDir,
    Json,
    StoreOptions,
    User,
    run,
    settings_from,
    settings_here,
)
from engram.domain.access import Access

if TYPE_CHECKING:
    from datetime import datetime

    from engram.server.keys import ApiKey, KeyFile
    from engram.settings import Settings
    from engram.temporal.keys import FolderKeyStore, KeysStatus

# --- commands that start something and stay: the demo, everything at once, a worker, MCP

commands = Commands()


@commands.command()
def demo(
    keep: Annotated[
        bool, typer.Option("--keep", help="Leave everything up for a look at the Temporal UI.")
    ] = False,
    conversation: Annotated[
        Path | None, typer.Option("--conversation", help="Play this file instead.")
    ] = None,
    data_dir: Annotated[
        Path | None, typer.Option("--data-dir", "-d", help="Keep the demo's data here.")
    ] = None,
) -> None:
    """Watch Engram remember a real conversation: nothing to set up, nothing left behind.

    Example: engram demo --keep
    """
    from engram.cli.demo import play  # noqa: PLC0415 - only what is used loads

    settings = settings_from()
    run(lambda: play(settings, conversation=conversation, data_dir=data_dir, keep=keep))


@commands.command()
def up(data_dir: DataDir = None) -> None:
    """Run everything on this machine until Ctrl-C; other commands and programs attach.

    In another terminal: engram recall "Where do I live?" -u ada

    Example: engram up
    """
    from engram.cli.up import serve_embedded  # noqa: PLC0415 - only what is used loads

    settings = settings_from(data_dir, stays=True)
    run(lambda: serve_embedded(settings))


AddressFile = Annotated[
    Path | None,
    typer.Option(
        help="Write the address into this file, which is yours alone and goes at the end, "
        "and do not print it.",
        metavar="FILE",
    ),
]


@commands.command()
def ui(
    options: StoreOptions,
    address_file: AddressFile = None,
    no_open: Annotated[
        bool, typer.Option("--no-open", help="Print the address; open no browser.")
    ] = False,
) -> None:
    """Open the Temporal UI with everything decoded, for one browser, until Ctrl-C.

    For reading. Whoever else reaches Temporal or its UI sees noise, as before.

    Example: engram ui

    Example: engram ui --no-open --address-file ~/ui.address
    """
    from engram.cli.serving import serve_ui  # noqa: PLC0415 - only what is used loads

    run(lambda: serve_ui(options, browse=not no_open, address_file=address_file))


@commands.command()
def codec(options: StoreOptions, address_file: AddressFile = None) -> None:
    """Encode and decode for programs that start Engram's workflows themselves, until Ctrl-C.

    The address that it prints is a Temporal codec endpoint. Whoever knows it reads and writes: hand
    it on by a variable or a file, not as an argument of a program.

    Example: engram codec

    Example: engram codec --address-file ~/codec.address
    """
    from engram.cli.serving import serve_codec  # noqa: PLC0415 - only what is used loads

    run(lambda: serve_codec(options, address_file=address_file))


@commands.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def temporal(
    arguments: Annotated[
        list[str], typer.Argument(help="What its own help says: `engram temporal -- --help`.")
    ],
    options: StoreOptions,
) -> None:
    """Run Temporal's command line on this memory's server, with the codec where one is needed.

    Give Engram's own options first, then `--`. Its exit code is passed on.

    Example: engram temporal -- workflow list --limit 5
    """
    from engram.cli.serving import run_temporal  # noqa: PLC0415 - only what is used loads

    if code := run(lambda: run_temporal(options, arguments)):
        raise typer.Exit(code)


@commands.command()
def worker() -> None:
    """Run a worker against the Temporal and Qdrant servers that the settings name.

    Example: ENGRAM_TEMPORAL_ADDRESS=temporal.example.org:7233 engram worker
    """
    from engram.cli.serving import serve_worker  # noqa: PLC0415 - only what is used loads

    settings = settings_from(stays=True)
    run(lambda: serve_worker(settings))


@commands.command()
def mcp(user: User, options: StoreOptions) -> None:
    """Give an MCP client (an assistant, an editor) this user's memory; the client starts this.

    In the client's configuration: {"command": "engram", "args": ["mcp", "-u", "ada"]}

    Example: engram mcp -u ada
    """
    from engram.cli.serving import serve_stdio  # noqa: PLC0415 - only what is used loads

    run(lambda: serve_stdio(lambda: options.memory_of(user)))


# --- commands of the HTTP door: API keys, and serving it alone

keys = Commands(
    name="keys",
    help="API keys of the HTTP API and of MCP over HTTP. A running server knows changes at once.",
    no_args_is_help=True,
)
commands.add_typer(keys)
# A hundred years.
_MOST_DAYS: Final = 36_525


@commands.command()
def serve() -> None:
    """Serve the HTTP API over the Temporal and Qdrant servers that the settings name.

    It does none of the work: `engram worker` does. Any number may run, with one file of keys.

    Example: ENGRAM_KEYS_FILE=keys.json engram serve
    """
    from engram.cli.serving import serve_api  # noqa: PLC0415 - only what is used loads

    settings = settings_from(stays=True)
    run(lambda: serve_api(settings))


@keys.command()
def create(
    name: Annotated[str, typer.Argument(help="What to call it; stands in the server's log.")],
    access: Annotated[
        Access,
        typer.Option(
            help="read; write: also add, import, correct and forget; admin: also erase, passes, "
            "restoring an export."
        ),
    ],
    namespace: Annotated[
        str | None,
        typer.Option(help="The namespace it opens; else ENGRAM_NAMESPACE.", show_default="default"),
    ] = None,
    user: Annotated[
        str | None,
        typer.Option("--user", "-u", help="The one user it opens; else all of the namespace."),
    ] = None,
    days: Annotated[
        float | None, typer.Option(help="Days until it expires; else never.", min=0, max=_MOST_DAYS)
    ] = None,
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Make an API key and show it, once: only a digest of it is kept.

    Example: engram keys create laptop --access write --user ada
    """
    from datetime import timedelta  # noqa: PLC0415 - only what is used loads

    from engram.server.keys import new_key  # noqa: PLC0415 - same
    from engram.system import new_secret, system_clock  # noqa: PLC0415 - same

    settings, file = _opened(data_dir)
    now = system_clock()
    token, key = new_key(
        new_secret(),
        name=name,
        access=access,
        namespace=namespace or settings.namespace,
        user_id=user,
        now=now,
        expires_at=None if days is None else now + timedelta(days=days),
    )
    file.add(key, now)
    if as_json:
        output.print_json({"token": token, "key": _shown(key), "file": str(file.path)})
        return
    output.console.print(token)
    output.errors.print(f"Kept in {file.path} as {key.name} ({key.id}).", style="dim")
    output.errors.print("Note it now: it is not shown again, and nobody can find it out.")


@keys.command("list")
def list_keys(data_dir: DataDir = None, as_json: Json = False) -> None:
    """Every key, with what it opens and whether it still does; never the key itself.

    Example: engram keys list
    """
    _, file = _opened(data_dir)
    found = [_shown(key) for key in file.read()]
    if as_json:
        output.print_json(found)
        return
    columns = ("id", "name", "access", "namespace", "user", "created", "expires", "state")
    output.print_table(
        columns,
        [[_cell(row[column]) for column in columns] for row in found],
        empty="There are no API keys. `engram keys create NAME --access write` makes one.",
    )


@keys.command()
def revoke(
    key: Annotated[str, typer.Argument(help="Its id or its name.")],
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Take a key back: the next request that carries it is refused.

    Example: engram keys revoke laptop
    """
    from engram.system import system_clock  # noqa: PLC0415 - only what is used loads

    _, file = _opened(data_dir)
    revoked = file.revoke(key, system_clock())
    if as_json:
        output.print_json([_shown(one) for one in revoked])
    elif revoked:
        output.console.print("Revoked " + ", ".join(f"{one.name} ({one.id})" for one in revoked))
    else:
        output.console.print("It was revoked before.")


def _opened(data_dir: Path | None) -> tuple[Settings, KeyFile]:
    from engram.server.keys import KeyFile  # noqa: PLC0415 - only what is used loads

    settings = settings_here(data_dir)
    return settings, KeyFile(settings.keys_path)


def _cell(value: datetime | str | None) -> str:
    if value is None:
        return "-"
    return value if isinstance(value, str) else output.utc(value)


def _shown(key: ApiKey) -> dict[str, Any]:
    from engram.system import system_clock  # noqa: PLC0415 - only what is used loads

    return {
        "id": key.id,
        "name": key.name,
        "access": key.access.value,
        "namespace": key.namespace,
        "user": key.user_id,
        "created": key.created_at,
        "expires": key.expires_at,
        "revoked": key.revoked_at,
        "state": key.state(system_clock()),
    }


# --- the keys that Temporal payloads are encrypted with

encryption = Commands(
    name="encryption",
    help="Keys that encrypt what passes through Temporal; they lie in ENGRAM_ENCRYPTION_KEYS, or "
    "in the data folder.",
    no_args_is_help=True,
)
commands.add_typer(encryption)


@encryption.command()
def init(data_dir: DataDir = None, as_json: Json = False) -> None:
    """Make the folder that ENGRAM_ENCRYPTION_KEYS names, for all clients and workers.

    The embedded mode makes its own. What goes on from before stays readable until it ends; keys
    that are there stay.

    Example: engram encryption init
    """
    from engram.embedded.folder import ENCRYPTION  # noqa: PLC0415 - only what is used loads
    from engram.system import new_secret, system_clock  # noqa: PLC0415 - same
    from engram.temporal.keys import FolderKeyStore  # noqa: PLC0415 - same

    settings = settings_here(data_dir)
    store = FolderKeyStore.create(
        settings.encryption_keys or settings.data_dir / ENCRYPTION,
        new_secret=new_secret,
        since=system_clock(),
        master=settings.master_key,
    )
    run(lambda: _tell_keys(store.status(), as_json=as_json))


@encryption.command("status")
def encryption_status(data_dir: DataDir = None, as_json: Json = False) -> None:
    """How many keys there are, and by which master key they are wrapped; never a key.

    Example: engram encryption status
    """
    run(lambda: _tell_keys(_encryption_keys(data_dir).status(), as_json=as_json))


@encryption.command()
def rotate(
    data_keys: Annotated[
        bool, typer.Option("--data-keys", help="Encrypt with new data keys from now on, too.")
    ] = False,
    into_folder: Annotated[
        bool,
        typer.Option(
            "--into-folder",
            help="Instead, keep the master key of the setting in the folder: the setting may go.",
        ),
    ] = False,
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Wrap all keys by a new master key, or by the first in ENGRAM_ENCRYPTION_MASTER_KEY.

    Others may work meanwhile. After an interruption, the same command goes on.

    Example: engram encryption rotate

    Example: engram encryption rotate --into-folder
    """
    keys = _encryption_keys(data_dir)
    if into_folder:
        run(lambda: _tell_keys(keys.keep_master(), as_json=as_json))
    else:
        run(lambda: _tell_keys(keys.rotate(data_keys=data_keys), as_json=as_json))


def _encryption_keys(data_dir: Path | None) -> FolderKeyStore:
    from engram.embedded.keys import folder_keys  # noqa: PLC0415 - only what is used loads

    settings = settings_here(data_dir)
    return folder_keys(settings.data_dir, settings)


async def _tell_keys(asked: Awaitable[KeysStatus], *, as_json: bool) -> None:
    status = await asked
    if as_json:
        output.print_json(_said(status))
        return
    output.print_table(("what", "value"), [[name, str(one)] for name, one in _said(status).items()])


def _said(status: KeysStatus) -> dict[str, Any]:
    return {
        "folder": str(status.folder),
        "since": status.since,
        "master": status.master,
        "owners": status.owners,
        "keys": status.keys,
        "old": status.old,
    }
