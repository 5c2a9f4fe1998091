"""`engram temporal`: for which workflow is encoded, and what Temporal's command line is told."""

from __future__ import annotations

import os

import pytest

from engram.cli.serving import OF_NO_WORKFLOW, environment_for, workflow_of
from engram.errors import InvalidInput
from engram.settings import Settings


def test_a_workflow_is_bound_however_its_option_is_written() -> None:
    """As Temporal's command line reads it; other options and other arguments are none."""
    for written in ("--workflow-id ID", "--workflow-id=ID", "-w ID", "-wID", "-w=ID", "-fwID"):
        assert workflow_of(["workflow", "show", *written.split(), "-o", "json"]) == "ID"
    for other in ("workflow list", "start --workflow-id-reuse-policy A", "run -- -wID", "-tweb"):
        assert workflow_of(other.split()) == OF_NO_WORKFLOW


def test_a_workflow_that_is_not_clear_is_refused() -> None:
    """What is encrypted for another is refused by workers, long after it was sent."""
    assert workflow_of(["-w", "ID", "--workflow-id=ID"]) == "ID"
    with pytest.raises(InvalidInput, match="Two arguments"):
        workflow_of(["workflow", "cancel", "-w", "ID", "--reason", "-what for"])


def test_what_the_shell_has_for_another_server_is_not_handed_on() -> None:
    """Blank or not, keys, TLS and profiles of others keep nobody from this server."""
    shell = {
        "PATH": "/bin",
        "TEMPORAL_API_KEY": "",
        "TEMPORAL_TLS": "",
        "TEMPORAL_PROFILE": "cloud",
    }
    own = environment_for("localhost:1", "default", None, shell)
    assert own == {
        "PATH": "/bin",
        "TEMPORAL_ADDRESS": "localhost:1",
        "TEMPORAL_NAMESPACE": "default",
        "TEMPORAL_CONFIG_FILE": os.devnull,
        "TEMPORAL_ENV_FILE": os.devnull,
    }
    settings = Settings.load(temporal_tls=True, temporal_api_key="k")
    others = environment_for("cloud:7233", "ours", settings, shell)
    assert (others["TEMPORAL_TLS"], others["TEMPORAL_API_KEY"]) == ("true", "k")
