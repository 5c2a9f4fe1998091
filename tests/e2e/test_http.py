"""A running `engram up`: the README's commands, and those of docs/http.md with real curl."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

import engram
from engram.cli.running import given_url, over_http
from engram.errors import InvalidSettings, MemoryNotFound
from engram.settings import Settings
from tests.support.cli import engram as engram_command
from tests.support.ports import free_port

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"<!-- run -->\n```bash\n(.*?)```", re.DOTALL)
COMMANDS = re.compile(r"<!-- run -->\n```sh\n(.*?)```", re.DOTALL)
CONTENT = "the marmalade is hidden behind the blue teapot"

# What runs is started once, in one process.
pytestmark = [pytest.mark.timeout(300), pytest.mark.xdist_group("http")]


@dataclass
class Up:
    """A running `engram up`."""

    home: Path
    port: int
    process: subprocess.Popen[str]
    log: Path

    @property
    def url(self) -> str:
        """Where it answers."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def environment(self) -> dict[str, str]:
        """Of a user of this machine."""
        return environment(self.home, self.port)

    def engram(self, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        """Run a command."""
        return subprocess.run(
            ["engram", *arguments],
            env={**self.environment, **more},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def key(self, name: str, *options: str) -> str:
        """A new key."""
        made = self.engram("keys", "create", name, *options, "--json")
        assert made.returncode == 0, made.stderr
        token: str = json.loads(made.stdout)["token"]
        return token

    def shell(self, page: str) -> str:
        """Run the marked blocks of a page, as one script; what they print."""
        script = "\n".join(BLOCK.findall((ROOT / page).read_text("utf-8")))
        assert "curl" in script
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script.replace(":8745", f":{self.port}")],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
        return done.stdout


def environment(home: Path, port: int) -> dict[str, str]:
    """Nothing of the surroundings but where programs are."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    up = {"ENGRAM_HTTP_PORT": str(port), "ENGRAM_TEMPORAL_UI": "true"}
    return {"HOME": str(home), "PATH": path, "COLUMNS": "160", **up}


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """`engram up` in a home of its own, ended with Ctrl-C."""
    home, port = tmp_path_factory.mktemp("http"), free_port()
    log = home / "up.log"
    with log.open("w") as errors:
        process = subprocess.Popen(
            ["engram", "up"],
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env={**environment(home, port), "ENGRAM_LOG_FORMAT": "json"},
        )
    assert process.stdout is not None
    said = []
    for line in process.stdout:
        said.append(line)
        if "Ctrl-C stops" in line:
            break
    assert f"HTTP: http://127.0.0.1:{port}\n" in said
    # Nobody gets in yet, and it says how somebody does.
    assert any("engram keys create" in line for line in said)
    yield Up(home, port, process, log)
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 130
    process.stdout.close()


def test_the_readme_s_commands_run(up: Up) -> None:
    """Its curl commands, word for word, keep a turn and find it."""
    kept, found = up.shell("README.md").replace("}[", "}\n[").splitlines()
    assert len(json.loads(kept)["episode_ids"]) == 1
    assert "ada@example.org" in json.loads(found)[0]["memory"]["content"]


def test_the_readme_s_shell_commands_run(up: Up) -> None:
    """Each line of its shell block succeeds, in order, beside `engram up`."""
    (block,) = COMMANDS.findall((ROOT / "README.md").read_text("utf-8"))
    first, *lines = block.splitlines()
    assert first == "engram up &"
    printed = []
    for line in lines:
        words = shlex.split(line)
        assert words[0] == "engram"
        # In this process: starting one takes longer than most commands.
        done = engram_command(*words[1:], env=up.environment)
        assert done.code == 0, done.stderr
        printed.append(done.stdout)
    assert "ada@example.org" in printed[1]
    assert '"content"' in printed[-1]


def test_the_walk_through_runs(up: Up) -> None:
    """Every command of docs/http.md, in order, does what the page says."""
    said = up.shell("docs/http.md")
    assert "laptop" in said
    assert "ada@example.org" in said
    assert "I moved to Lisbon in May." in said
    assert '"temporal":"answers"' in said
    assert "Revoked laptop" in said


async def test_a_run_leads_to_what_it_wrote(up: Up) -> None:
    """From a receipt and a report to the memories of their runs, and of no other."""
    key = up.key("runs", "--access", "admin")
    async with engram.connect(up.url, user_id="heidi", api_key=key) as memory:
        receipt = await memory.encode("I live in Porto. Mail heidi@example.org.", session_id="s1")
        assert receipt.run is not None
        report = await memory.consolidate()
        said = await memory.list(run_id=receipt.run.run_id)
        assert {one.id for one in said.memories} == {*receipt.episode_ids, *receipt.fact_ids}
        concluded = await memory.list(run_id=report.run_id)
        assert "Porto" in " ".join(one.content for one in concluded.memories)
        assert {one.provenance.run_id for one in concluded.memories} == {report.run_id}
        assert await memory.count(run_id=report.run_id) == len(concluded.memories)


async def test_a_real_memory_over_http(up: Up) -> None:
    """What the embedded engine does, over HTTP: encode, consolidate, recall, history, forget."""
    key = up.key("everything", "--access", "admin")
    async with engram.connect(up.url, user_id="grace", api_key=key) as memory:
        await memory.encode("I live in Porto. Mail grace@example.org.", session_id="s1")
        await memory.encode("I moved to Lisbon.", session_id="s1")
        assert len(await memory.working_memory("s1")) == 2
        assert await memory.end_session("s1") is not None
        report = await memory.consolidate()
        assert report.passes >= 1
        (hit, *_) = await memory.recall(
            "Where does the user live?", memory_types=["semantic"], include_sources=True
        )
        assert "Lisbon" in hit.memory.content
        assert [source.content for source in hit.sources] == ["I moved to Lisbon."]
        assert hit.run is not None
        assert hit.run.url == memory.run_url(hit.memory) is not None
        assert hit.run.workflow_id == hit.memory.provenance.workflow_id
        history = await memory.history(hit.memory.id)
        assert [one.status for one in history] == ["superseded", "active"]
        assert (await memory.verify(hit.memory.id)).ok
        fact = (await memory.recall("mail", memory_types=["factual"]))[0].memory
        await memory.forget(fact.id)
        with pytest.raises(MemoryNotFound):
            await memory.get(fact.id)
        page = await memory.list(limit=1)
        assert page.cursor is not None
        assert (await memory.list(limit=1, cursor=page.cursor)).memories != page.memories
        assert await memory.for_user("bob").recall("Where does the user live?") == []


@pytest.mark.slow
def test_commands_work_over_http(up: Up) -> None:
    """`--url` and ENGRAM_URL lead commands through the API; those about everybody say no."""
    key = up.key("shell", "--access", "write", "--user", "ada")
    remote = {"ENGRAM_API_KEY": key, "ENGRAM_DATA_DIR": str(up.home / "elsewhere")}
    done = up.engram("--url", up.url, "encode", CONTENT, "-u", "ada", **remote)
    assert done.returncode == 0, done.stderr
    found = up.engram("recall", "marmalade", "-u", "ada", "--json", ENGRAM_URL=up.url, **remote)
    assert found.returncode == 0, found.stderr
    assert json.loads(found.stdout)[0]["memory"]["content"] == CONTENT
    assert not (up.home / "elsewhere").exists()
    other = up.engram("--url", up.url, "recall", "marmalade", "-u", "bob", **remote)
    assert other.returncode == 1
    assert "the user that it was made for" in other.stderr
    everybody = up.engram("--url", up.url, "decay", "--all", **remote)
    assert everybody.returncode == 1
    assert "needs Temporal itself" in everybody.stderr
    assert "Traceback" not in other.stderr + everybody.stderr


@pytest.mark.parametrize(
    ("flag", "variable", "folder", "connected", "through"),
    [
        (None, None, None, False, False),
        (None, "http://a", None, False, True),
        (None, "http://a", Path("x"), False, False),
        (None, "http://a", None, True, False),
        (None, "", None, False, False),
        ("http://b", "http://a", None, False, True),
        ("http://b", None, Path("x"), False, None),
        ("http://b", None, None, True, None),
    ],
)
def test_which_place_a_command_means(
    flag: str | None,
    variable: str | None,
    folder: Path | None,
    connected: bool,
    through: bool | None,
) -> None:
    """--url means the API, other options other places, ENGRAM_URL whatever is left; never two."""
    token = given_url.set(flag)
    try:
        settings = Settings.load(url=flag or variable)
        if through is None:
            with pytest.raises(InvalidSettings, match="two places"):
                over_http(settings, folder, connected)
        else:
            assert over_http(settings, folder, connected) is through
    finally:
        given_url.reset(token)


def test_no_key_lies_about(up: Up) -> None:
    """No token stands in the data folder or in the log, and no content in the log."""
    key = up.key("secretive", "--access", "read")
    headers = {"Authorization": f"Bearer {key}"}
    address = f"{up.url}/v1/namespaces/default/users/ada"
    body = {"query": CONTENT}
    assert (
        httpx.post(f"{address}/recall", json=body, headers=headers, timeout=30).status_code == 200
    )
    assert httpx.get(f"{address}/memories/{key}", headers=headers).status_code == 404
    tail = key.removeprefix("engram_").encode()
    folder = up.home / ".engram"
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert folder / "keys.json" in files
    assert not [path for path in files if tail in path.read_bytes()]
    log = up.log.read_bytes()
    assert tail not in log
    assert CONTENT.encode() not in log
    lines = [json.loads(line) for line in log.splitlines()]
    (last, *_) = [line for line in reversed(lines) if line["event"] == "answered"]
    assert (last["key"], last["status"]) == ("secretive", 404)
    assert last["route"].endswith("/memories/{memory_id}")


def test_a_second_engram_says_that_the_port_is_taken(up: Up, tmp_path: Path) -> None:
    """Another folder, the same port: a typed error that names the setting, and nothing runs on."""
    done = up.engram("up", "-d", str(tmp_path / "other"))
    assert done.returncode == 1
    assert "ENGRAM_HTTP_PORT" in done.stderr
    assert str(up.port) in done.stderr
    again = up.engram("up")
    assert (again.returncode, "already runs" in again.stdout) == (0, True)


def test_up_does_not_listen_elsewhere_without_a_key(up: Up, tmp_path: Path) -> None:
    """On all addresses and with no key there is a typed error that says how to make one."""
    done = up.engram(
        *("up", "-d", str(tmp_path / "open")),
        ENGRAM_HTTP_HOST="0.0.0.0",  # noqa: S104 - is refused
        ENGRAM_HTTP_PORT=str(free_port()),
    )
    assert done.returncode == 1
    assert "engram keys create" in done.stderr
