"""Real MCP client sessions: over a pipe with `engram mcp`, over HTTP with `engram up`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp_types import CallToolResult, TextContent, TextResourceContents

from tests.conftest import free_port


@dataclass
class Up:
    """A running `engram up` that serves MCP."""

    folder: Path
    process: subprocess.Popen[str]
    url: str

    def stop(self) -> int:
        """End it in order."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(30)


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """`engram up` with MCP for Ada on a free port."""
    folder = tmp_path_factory.mktemp("mcp") / "data"
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, "-m", "engram.cli", "up", "-d", str(folder)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "ENGRAM_MCP_USER": "ada", "ENGRAM_MCP_PORT": str(port)},
    )
    assert process.stdout is not None
    said = []
    for line in process.stdout:
        said.append(line)
        if "Ctrl-C stops" in line:
            break
    url = f"http://127.0.0.1:{port}/mcp"
    assert f"MCP for ada: {url}\n" in said
    found = Up(folder, process, url)
    yield found
    if process.poll() is None:
        assert found.stop() == 0
    process.stdout.close()


def over_a_pipe(folder: Path) -> Client:
    """A client that starts `engram mcp`."""
    return Client(
        StdioServerParameters(
            command=sys.executable,
            args=["-m", "engram.cli", "mcp", "-u", "ada", "-d", str(folder)],
            env={key: os.environ[key] for key in ("PYTHONPATH", "PATH") if key in os.environ},
        )
    )


async def answer(client: Client, tool: str, /, **arguments: Any) -> str:
    """What a tool says; it must not be an error."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result
    return words(result)


def words(result: CallToolResult) -> str:
    """The text of an answer."""
    (content,) = result.content
    assert isinstance(content, TextContent)
    return content.text


async def test_over_http(up: Up) -> None:
    """Remember, recall now and as of before, verify, count and read, in one session."""
    async with Client(up.url) as client:
        kept = await answer(client, "remember", text="My e-mail is ada@example.org.")
        fact = kept.split("Facts in it: ")[1].rstrip(".")
        found = await answer(client, "recall", query="e-mail", types=["factual"])
        assert f"ada@example.org [factual {fact} conf=" in found
        assert "user: My e-mail is ada@example.org." in found
        before = await answer(client, "recall_at", query="e-mail", as_of="2020-01-01")
        assert before == "Nothing that answers this is remembered."
        assert "It stands" in await answer(client, "verify", memory_id=fact)
        assert "1 episodic (1 active), 1 factual" in await answer(client, "stats")
        assert fact in await answer(client, "confirm", memory_id=fact)
        (listed,) = (await client.read_resource("engram://memories")).contents
        assert isinstance(listed, TextResourceContents)
        assert fact in listed.text
        said = await answer(client, "remember", text="I am Bob, no, forget that.")
        turn = said.split("Kept as ")[1].split(".")[0]
        assert "1 episodic" in await answer(client, "forget", memory_id=turn)
        wrong = await client.call_tool("verify", {"memory_id": turn})
        assert wrong.is_error
        assert "No memory with this id" in words(wrong)


def test_it_ends_when_asked_though_nobody_closes_the_pipe(up: Up) -> None:
    """SIGTERM and Ctrl-C close the memory and end the program while it waits for input."""
    command = [sys.executable, "-m", "engram.cli", "mcp", "-u", "ada", "-d", str(up.folder)]
    for number in (signal.SIGTERM, signal.SIGINT):
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as program:
            assert program.stdin is not None
            assert program.stdout is not None
            assert program.stderr is not None
            program.stdin.write(b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n')
            program.stdin.flush()
            assert b'"id":1' in program.stdout.readline()
            program.send_signal(number)
            assert program.wait(20) == 0
            assert program.stderr.read() == b""


async def test_over_a_pipe_and_after_the_owner_has_ended(up: Up) -> None:
    """A pipe's server shares the memory of `engram up`, and takes it over when that ends."""
    async with over_a_pipe(up.folder) as client:
        assert [tool.name for tool in (await client.list_tools()).tools][:2] == [
            "remember",
            "recall",
        ]
        await answer(client, "remember", text="I live in Porto.")
        async with Client(up.url) as other:
            assert "I live in Porto." in await answer(other, "recall", query="Porto")
        assert up.stop() == 0
        assert "I live in Porto." in await answer(client, "recall", query="Porto")
        await answer(client, "remember", text="I moved to Lisbon.")
        assert "Lisbon" in await answer(client, "recall", query="moved")
