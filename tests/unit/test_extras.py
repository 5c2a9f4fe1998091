"""A small installation says what is missing, and how to get it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.support.ports import free_port

# What every installation has is loaded once; each case goes on in a copy of that program.
CASES = """
import json, os, sys
import pydantic_ai, qdrant_client, temporalio.client, temporalio.worker

for number, (packages, arguments) in enumerate(json.loads(sys.argv[1])):
    if not (child := os.fork()):
        said = os.open(f"{number}", os.O_CREAT | os.O_WRONLY)
        os.dup2(said, 1)
        os.dup2(said, 2)
        sys.modules.update(dict.fromkeys(packages))
        if not arguments:
            import engram.client.servers
            raise SystemExit
        sys.argv = ["engram", *arguments]
        from engram.cli import main
        main()
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
MISSING = (
    ("phonenumbers", ["up"], "embedded"),
    ("fastapi", ["up"], "embedded"),
    ("phonenumbers", ["worker"], "worker"),
    ("mcp", ["mcp", "-u", "ada"], "mcp"),
)
OF_EXTRAS = ("phonenumbers", "qdrant_edge", "wordllama", "fastapi", "uvicorn")


def test_a_missing_package_names_its_extra_and_a_client_needs_none(tmp_path: Path) -> None:
    """Commands exit 1 with the line to type, not with a traceback; the connected client loads."""
    asked = [*(([package], command) for package, command, _ in MISSING), (OF_EXTRAS, [])]
    done = subprocess.run(
        [sys.executable, "-c", CASES, json.dumps(asked)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        cwd=tmp_path,
        env={
            "HOME": str(tmp_path),
            "PATH": "/usr/bin:/bin",
            "COLUMNS": "200",
            "ENGRAM_HTTP_PORT": str(free_port()),
        },
    )
    assert done.stdout.split() == [*("1" for _ in MISSING), "0"], done.stderr
    for number, (package, _, extra) in enumerate(MISSING):
        said = (tmp_path / str(number)).read_text()
        assert f"engram-memory[{extra}]" in said
        assert package in said
        assert "Traceback" not in said


def test_whoever_asks_over_http_loads_neither_engine_nor_models() -> None:
    """A command with ``--url`` starts with what a request takes; Temporal and agents stay out."""
    code = (
        "import sys\n"
        "for name in ('temporalio', 'pydantic_ai', 'qdrant_client', 'numpy'):\n"
        "    sys.modules[name] = None\n"
        "import engram.client.connect\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
