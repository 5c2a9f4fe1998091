"""Reaching the Temporal server behind a memory, embedded, attached or connected."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from engram.cli.running import over_http, settings_from
from engram.errors import InvalidSettings, TemporalUnavailable

if TYPE_CHECKING:
    from temporalio.client import Client

    from engram.settings import Settings


@asynccontextmanager
async def temporal(
    data_dir: Path | None, connected: bool
) -> AsyncIterator[tuple[Client, Settings]]:
    """A client of Temporal, and the settings that go with it.

    Raises:
        InvalidSettings: the memory is reached over HTTP, which does not lead to Temporal.
        TemporalUnavailable: no server can be reached.
    """
    settings = settings_from(data_dir)
    if over_http(settings, data_dir, connected):
        raise InvalidSettings(
            "This command is about everybody's memory and needs Temporal itself, which an HTTP "
            "API does not give.",
            allowed="--connected, or --data-dir on the machine of `engram up`",
            hint="Run it there, without --url and ENGRAM_URL.",
        )
    if connected:
        from engram.client.temporal_connection import (  # noqa: PLC0415 - only what is used loads
            connect_temporal,
        )

        yield await connect_temporal(settings), settings
        return
    from engram.embedded.open import run  # noqa: PLC0415 - same

    async with run(settings) as running:
        address = running.address or _address_of_owner(running.folder)
        yield await _connected(address, settings), settings


async def _connected(address: str, settings: Settings) -> Client:
    from temporalio.client import Client  # noqa: PLC0415 - only what is used loads
    from temporalio.contrib.pydantic import pydantic_data_converter  # noqa: PLC0415 - same

    try:
        return await Client.connect(
            address,
            namespace=settings.temporal_namespace,
            data_converter=pydantic_data_converter,
        )
    except RuntimeError as error:
        raise TemporalUnavailable(
            f"Temporal's development server does not answer at {address}."
        ) from error


def _address_of_owner(folder: Path) -> str:
    """Where the process that owns the folder has its server."""
    from engram.embedded.folder import DataFolder  # noqa: PLC0415 - only what is used loads
    from engram.embedded.records import ServerRecord  # noqa: PLC0415 - same

    record = ServerRecord.read(DataFolder(folder).server_record)
    if record is None:
        raise TemporalUnavailable(
            "The process that owns the folder has not said where its Temporal server is.",
            hint="It may be starting or ending; try again.",
        )
    return f"127.0.0.1:{record.port}"
