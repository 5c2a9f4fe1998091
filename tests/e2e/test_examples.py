"""The examples are run as a user runs them; a second process reads back what they remembered."""

from __future__ import annotations

import ast
import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import nbformat
import pytest
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from examples import chat_loop
from tests.support.ports import free_port

pytestmark = pytest.mark.timeout(300)

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
PYTHON = (sys.executable, "-W", "error")
README_ROW = re.compile(r"^\| \[(\S+)\]\((\S+)\) \| (.+) \| `(.+)` \|$", re.MULTILINE)


def example(name: str) -> Path:
    """The path of an example; test_every_example_is_listed_and_run looks for calls of this."""
    return EXAMPLES / name


def environment(home: Path) -> dict[str, str]:
    """A user's environment with a home of its own: no key, no setting of whoever runs the tests."""
    return {
        "HOME": str(home),
        "PATH": os.environ["PATH"],
        "ENGRAM_DATA_DIR": str(home / "data"),
        "ENGRAM_TEMPORAL_UI": "false",
        "MPLBACKEND": "agg",
    }


def run(home: Path, *arguments: str | Path, typed: str = "", **settings: str) -> str:
    """Run a program to its end; what it printed."""
    done = subprocess.run(
        [*PYTHON, *arguments],
        input=typed,
        capture_output=True,
        text=True,
        timeout=140,
        check=False,
        cwd=home,
        env={**environment(home), **settings},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def read_back(home: Path, question: str, *users: str) -> Any:
    """What another process finds afterwards, by user."""
    return json.loads(run(home, Path(__file__).with_name("read_back.py"), question, *users))


@pytest.mark.slow
def test_chat_loop(tmp_path: Path) -> None:
    """The chat answers from what was typed, and the next process knows all that was concluded."""
    typed = "I live in Porto and my email is ada@example.org.\nWhere do I live?\n"
    printed = run(tmp_path, example("chat_loop.py"), typed=typed)
    assert re.search(r"engram> I remember: .*Porto", printed)
    assert "I know: The user lives in Porto." in printed

    found = read_back(tmp_path, "Where does the user live?", "ada")["ada"]
    turns = found["kept"]["episodic"]
    assert [turns[0], turns[2]] == typed.splitlines()
    assert turns[1] == "Noted."
    assert turns[3].startswith("I remember: ")
    assert any("ada@example.org" in fact for fact in found["kept"]["factual"])
    assert "The user lives in Porto." in found["kept"]["semantic"]
    assert "Porto" in found["answer"]


@pytest.fixture
def loop_of_its_own() -> Iterator[None]:
    """The loop that an agent without `await` runs on; by itself it would leave one behind."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield
    asyncio.set_event_loop(None)
    loop.close()


@pytest.mark.usefixtures("loop_of_its_own")
def test_chat_loop_with_a_model() -> None:
    """A language model is shown the earlier turns as history and the memories beside the prompt."""
    seen: list[ModelMessage] = []

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        seen.extend(messages)
        return ModelResponse(parts=[TextPart("In Porto.")])

    said = chat_loop.ask(
        Agent(FunctionModel(answer)),
        "Where do I live?",
        "<engram-memory>\n- I live in Porto.\n</engram-memory>",
        [("user", "Hello."), ("assistant", "Noted.")],
    )
    assert said == "In Porto."
    assert [message.kind for message in seen] == ["request", "response", "request"]
    contents = [getattr(part, "content", None) for message in seen for part in message.parts]
    assert contents[:2] == ["Hello.", "Noted."]
    assert contents[2] == (
        "<engram-memory>\n- I live in Porto.\n</engram-memory>\n\nWhere do I live?"
    )


@pytest.mark.slow
def test_fastapi_service(tmp_path: Path) -> None:
    """The service answers each user from that user's memory, which outlives it."""
    module = example("fastapi_service.py")
    command = ("-m", "uvicorn", "--app-dir", module.parent, f"{module.stem}:app", "--port", "0")
    with subprocess.Popen(
        [*PYTHON, *command], env=environment(tmp_path), stderr=subprocess.PIPE, text=True
    ) as server:
        assert server.stderr is not None
        try:
            said = ""
            while not (running := re.search(r"running on (http://\S+)", said)):
                line = server.stderr.readline()
                assert line, said
                said += line
            talk_to_the_service(running.group(1))
        finally:
            server.send_signal(signal.SIGTERM)
            rest = server.stderr.read()
    assert "Application shutdown complete." in rest, rest

    found = read_back(tmp_path, "Where do I live?", "ada", "bob")
    assert found["ada"]["kept"]["episodic"][::2] == ["I live in Porto.", "Where do I live?"]
    assert "Porto" in found["ada"]["answer"]
    assert found["bob"]["kept"]["episodic"] == ["Where do I live?", "That is new to me."]
    assert "Porto" not in json.dumps(found["bob"])


def talk_to_the_service(url: str) -> None:
    """Tell, ask, be somebody else, be nobody, and list."""
    with httpx.Client(base_url=url, timeout=60, trust_env=False) as http:

        def chat(user: str, message: str) -> httpx.Response:
            return http.post("/chat", headers={"X-User": user}, json={"message": message})

        assert chat("ada", "I live in Porto.").json() == {
            "answer": "That is new to me.",
            "remembered": [],
        }
        assert "Porto" in chat("ada", "Where do I live?").json()["answer"]
        assert chat("bob", "Where do I live?").json()["answer"] == "That is new to me."
        refused = chat("no/body", "Hello.")
        assert (refused.status_code, refused.json()["code"]) == (422, "invalid_scope")

        ada = {"X-User": "ada"}
        page = http.get("/memories?limit=1", headers=ada).json()
        (first,) = page["memories"]
        assert (first["type"], first["content"]) == ("episodic", "I live in Porto.")
        rest = http.get("/memories", params={"cursor": page["cursor"]}, headers=ada).json()
        assert "Where do I live?" in [one["content"] for one in rest["memories"]]


@pytest.mark.slow
def test_pydantic_ai_agent(tmp_path: Path) -> None:
    """The agent knows in one run what it was told in another, and both are kept."""
    prompts = ("I live in Porto.", "Where do I live?")
    printed = run(tmp_path, example("pydantic_ai_agent.py"), *prompts)
    noted, remembered = re.findall(r"agent> (.*)", printed)
    assert noted == "Noted."
    assert re.fullmatch(r"I remember: .*Porto\.", remembered)

    found = read_back(tmp_path, "Where do I live?", "ada")["ada"]
    assert found["kept"]["episodic"] == [prompts[0], noted, prompts[1], remembered]
    assert "Porto" in found["answer"]


@pytest.mark.slow
def test_temporal_application(tmp_path: Path) -> None:
    """A workflow of the application's own recalls and encodes through the plugin of its worker."""
    program, port = example("temporal_application.py"), str(free_port())
    printed = run(tmp_path, program, "ada", "I live in Porto.", ENGRAM_TEMPORAL_PORT=port)
    assert printed == "That is new to me.\n"

    found = read_back(tmp_path, "Where do I live?", "ada", "bob")
    assert found["ada"]["kept"]["episodic"] == ["I live in Porto.", "That is new to me."]
    assert "Porto" in found["ada"]["answer"]
    assert found["bob"] == {"kept": {}, "answer": None}


@pytest.mark.slow
def test_notebook(tmp_path: Path) -> None:
    """Every cell runs, the pictures show what the documentation promises, and the memory stays."""
    runner = Path(__file__).with_name("run_notebook.py")
    *said, shown = run(tmp_path, runner, example("notebook.ipynb"), tmp_path).splitlines()
    assert any(line.startswith("The tram was late today. -> retention score") for line in said)
    fading, timeline = json.loads(shown)
    (_, faint), (dot, _), (_, strong), (later_dot, _), _ = fading["lines"]
    assert (faint[0], strong[0]) == (0.5, 1.0)
    # The days of docs/lifecycle.md, for turns of importance 0.5 and 1.
    assert (round(dot[0] * 7), round(later_dot[0] * 7)) == (69, 90)
    cities = ["Paris", "Lisbon", "Berlin"]
    lived = [f"The user lives in {city}." for city in cities]
    assert timeline["ticks"] == lived
    assert [y for _, (y,) in timeline["lines"]] == [0, 0, 0, 1, 1, 1, 1, 1, 2, 2, 2]
    for number in (1, 2):
        picture = (tmp_path / f"{number}.png").read_bytes()
        assert picture.startswith(b"\x89PNG")
        assert len(picture) > 5_000

    found = read_back(tmp_path, "Where does the user live?", "notebook")["notebook"]
    assert set(lived) <= set(found["kept"]["semantic"])
    assert found["answer"] == lived[-1]


def test_the_notebook_is_stored_clean() -> None:
    """It is valid, and holds no outputs: nothing in it is of another run than the reader's."""
    notebook = json.loads((EXAMPLES / "notebook.ipynb").read_text("utf-8"))
    nbformat.validate(notebook)
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert cells
    assert all(not cell["outputs"] and cell["execution_count"] is None for cell in cells)


def test_every_example_is_listed_and_run() -> None:
    """Each file has a row in the README with a command, a test that runs it, and checked types."""
    files = {path.name for path in EXAMPLES.iterdir() if path.is_file()} - {"README.md"}
    rows = README_ROW.findall((EXAMPLES / "README.md").read_text("utf-8"))
    assert sorted(name for name, *_ in rows) == sorted(files)
    for name, target, _, command in rows:
        assert name == target
        assert Path(name).stem in command
    assert run_by_tests() == files
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    assert "examples" in settings["tool"]["mypy"]["packages"]


def run_by_tests() -> set[str]:
    """The examples that a test of this module asks for."""
    functions = ast.parse(Path(__file__).read_text("utf-8")).body
    tests = [one for one in functions if getattr(one, "name", "").startswith("test_")]
    return {
        ast.literal_eval(call.args[0])
        for test in tests
        for call in ast.walk(test)
        if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "example"
    }
