"""How Temporal's development server is started: its ports and its arguments."""

from __future__ import annotations

from dataclasses import dataclass

from engram.embedded.folder import DataFolder
from engram.embedded.namespace import SEARCH_ATTRIBUTES
from engram.embedded.ports import LOOPBACK, free_ports, require_free
from engram.settings import Settings

PORT_SETTINGS = ("ENGRAM_TEMPORAL_PORT", "ENGRAM_TEMPORAL_UI_PORT")


@dataclass(frozen=True, slots=True)
class Ports:
    """Where it listens; ``ui`` is None without web pages."""

    grpc: int
    ui: int | None


def choose_ports(asked: Settings) -> Ports:
    """The ports that settings ask for, free ones for the rest.

    Raises:
        PortInUse: one that is asked for is taken.
    """
    for port, setting in zip(
        (asked.temporal_port, asked.temporal_ui_port if asked.temporal_ui else None),
        PORT_SETTINGS,
        strict=True,
    ):
        if port is not None:
            require_free(port, setting)
    grpc, ui = free_ports(2)
    return Ports(
        asked.temporal_port or grpc,
        (asked.temporal_ui_port or ui) if asked.temporal_ui else None,
    )


def server_arguments(folder: DataFolder, settings: Settings, ports: Ports) -> list[str]:
    """What the program is called with."""
    chosen = [
        *("server", "start-dev", "--ip", LOOPBACK, "--port", str(ports.grpc)),
        *("--db-filename", folder.temporal_db.name, "--log-level", "error"),
        *("--namespace", settings.temporal_namespace),
        *("--disable-config-env", "--disable-config-file"),
    ]
    for name in SEARCH_ATTRIBUTES:
        chosen += ["--search-attribute", f"{name}=Keyword"]
    if ports.ui is None:
        return [*chosen, "--headless"]
    return [*chosen, "--ui-port", str(ports.ui), "--ui-disable-news-fetch"]
