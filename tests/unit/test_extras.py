"""A small installation says what is missing, and how to get it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.ports import free_port


@pytest.mark.parametrize(
    ("package", "command", "extra"),
    [
        ("phonenumbers", ["up"], "embedded"),
        ("fastapi", ["up"], "embedded"),
        ("phonenumbers", ["worker"], "worker"),
    ],
)
def test_a_missing_package_names_its_extra(
    tmp_path: Path, package: str, command: list[str], extra: str
) -> None:
    """Without the package the command exits 1 with the line to type, not with a traceback."""
    code = (
        f"import sys; sys.modules[{package!r}] = None; sys.argv = ['engram', *{command!r}]; "
        "from engram.cli import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={
            "HOME": str(tmp_path),
            "PATH": "/usr/bin:/bin",
            "COLUMNS": "200",
            "ENGRAM_HTTP_PORT": str(free_port()),
        },
    )
    assert done.returncode == 1
    assert f"engram-memory[{extra}]" in done.stderr
    assert package in done.stderr
    assert "Traceback" not in done.stderr


def test_a_client_needs_no_extra() -> None:
    """The connected client imports without any package of the extras."""
    code = (
        "import sys\n"
        "for name in ('phonenumbers', 'qdrant_edge', 'wordllama', 'fastapi', 'uvicorn'):\n"
        "    sys.modules[name] = None\n"
        "import engram.client.servers\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_whoever_asks_over_http_loads_neither_engine_nor_models() -> None:
    """A command with ``--url`` starts with what a request takes; Temporal and agents stay out."""
    code = (
        "import sys\n"
        "for name in ('temporalio', 'pydantic_ai', 'qdrant_client', 'numpy'):\n"
        "    sys.modules[name] = None\n"
        "import engram.client.connect\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
