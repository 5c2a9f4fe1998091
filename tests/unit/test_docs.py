"""The documentation is true: examples run, the settings page is current, links lead somewhere."""

from __future__ import annotations

import json
import os
import re
import runpy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from unittest.mock import patch

import pytest
import typer
import typer.core
from pydantic_ai.models import override_allow_model_requests

from engram.cli.app import whole
from engram.contracts import names
from engram.embedded.folder import AUDIT, DataFolder
from engram.operations.catalogue import OPERATIONS
from engram.settings import Settings
from tests.support.page_makers import DOCS, page_maker

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
WITH_PROGRAMS = [README, *sorted(DOCS.rglob("*.md"))]
PAGES = sorted([*WITH_PROGRAMS, *(ROOT / "deploy").rglob("*.md")])
EXAMPLE = re.compile(r"^<!-- run -->\n```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
DECISION = re.compile(r"\[(\d{4})\]\((?:[^):\s]*/)?(\d{4})-[^)]*\)")
# "GET /v1/ready", "POST .../erased": what stands before an address of a user may be left out.
ADDRESS = re.compile(r"\b(GET|POST|PUT|PATCH|DELETE) (/v1|\.\.\.)(/[^\s`?]*)")
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
# In tables and prose ENGRAM_X_Y; an ending like "..._BYTES" is not a name.
# What a figure is to be put in place of.
PLACEHOLDER = re.compile(r"@\w+@")
VARIABLE = re.compile(r"\bENGRAM_[A-Z0-9_]*[A-Z0-9]\b")
# "`ENGRAM_X`, 200 for each", "`ENGRAM_Y` (5 s)"; a number alone in brackets is an HTTP status.
DEFAULT = re.compile(
    r"`(ENGRAM_[A-Z0-9_]+)`(?:, (\d+)| \((\d+)(?= [a-zA-Z]))(?: (KB|s|min|minutes|days)\b)?"
)
UNITS: dict[str, Callable[[int], object]] = {
    "": int,
    "KB": lambda count: count * 1024,
    "s": lambda count: timedelta(seconds=count),
    "min": lambda count: timedelta(minutes=count),
    "minutes": lambda count: timedelta(minutes=count),
    "days": lambda count: timedelta(days=count),
}
SETTINGS_OF_THE_TESTS = {
    *("ENGRAM_USER", "ENGRAM_TEST_QDRANT", "ENGRAM_TEST_TEMPORAL"),
    *("ENGRAM_SLOT_SEQUENCES", "ENGRAM_CHAOS_ROUNDS", "ENGRAM_CHAOS_SEED", "ENGRAM_MEMORY_TURNS"),
}

# What docs/http.md calls what a key opens, and the operation that does it.
OPENED = {
    "recall": "recall",
    "verify": "verify",
    "profiles": "profiles",
    "encode": "encode",
    "import turns": "import-turns",
    "forget one memory": "forget",
    "erase a user": "erase",
    "decay": "decay",
    "repair": "repair",
    "migrate": "import",
    "restore an export": "restore-memories",
    "test memories": "test-create",
}


@dataclass(frozen=True)
class Example:
    """A program in a page."""

    page: Path
    line: int
    code: str

    def __str__(self) -> str:
        return f"{self.page.stem}:{self.line}"


def examples() -> Iterator[Example]:
    """Every marked example of the README and the docs."""
    for page in WITH_PROGRAMS:
        text = page.read_text(encoding="utf-8")
        for found in EXAMPLE.finditer(text):
            yield Example(page, text[: found.start()].count("\n") + 1, found.group(1))


EXAMPLES = list(examples())


@pytest.mark.parametrize("example", EXAMPLES, ids=str)
@pytest.mark.long
def test_example_runs(
    example: Example,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Each marked example runs as it stands, in an empty folder, without warnings."""
    program = tmp_path / "example.py"
    program.write_text(example.code, encoding="utf-8")
    # Nothing of the surroundings: no settings, no Temporal client configuration, no home.
    clean = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("ENGRAM_", "TEMPORAL_"))
    }
    monkeypatch.chdir(tmp_path)
    with (
        patch.dict(os.environ, {**clean, "HOME": str(tmp_path)}, clear=True),
        # Of a stand-in that the example brings.
        override_allow_model_requests(True),
    ):
        runpy.run_path(str(program), run_name="__main__")
    if example.page == README:
        first = capsys.readouterr().out.splitlines()[0]
        assert "The user lives in Lisbon." in first
        assert "I moved to Lisbon" in first


def test_the_two_commands_come_first() -> None:
    """A new user meets the demo first and the tests second, as they are documented."""
    text = README.read_text("utf-8")
    commands = re.findall(r"^```sh\n(pip install.*)\n```$", text, re.MULTILINE)
    assert commands[:2] == [
        "pip install uv && uv run engram demo",
        "pip install uv && uv run pytest",
    ]
    assert "a checkout of this repository" in text.partition("```sh")[0]


def test_every_page_with_programs_has_them_run() -> None:
    """No python block goes unmarked, and there are examples at all."""
    blocks = sum(
        len(re.findall(r"^```python$", page.read_text(encoding="utf-8"), re.MULTILINE))
        for page in WITH_PROGRAMS
    )
    assert blocks == len(EXAMPLES) > 1


def test_settings_page_is_current() -> None:
    """docs/settings.md is what the settings say."""
    committed = (DOCS / "settings.md").read_text(encoding="utf-8")
    again = "run: uv run python docs/generate_settings.py"
    assert committed == page_maker("settings").page(), again


def test_pages_say_what_each_access_opens() -> None:
    """What the table of keys names takes that access, and no other."""
    page = (DOCS / "http.md").read_text(encoding="utf-8")
    table = dict(re.findall(r"^\| `(read|write|admin)` \| (.*) \|$", page, re.MULTILINE))
    access_of = {one.name: one.access.value for one in OPERATIONS}
    for said, operation in OPENED.items():
        rows = {access for access, words in table.items() if said in words}
        assert rows == {access_of[operation]}, said


def test_every_setting_has_a_meaning() -> None:
    """Each setting says what it is for, and no section has lost its first setting."""
    maker = page_maker("settings")
    settings = dict(maker.settings_of())
    silent = [name for name, field in settings.items() if not maker.meaning(field)]
    assert silent == []
    assert set(maker.SECTIONS) <= set(settings)
    assert {name.split(".")[0] for name in settings} == set(Settings.model_fields)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    """Every relative link of a page names a file that exists."""
    targets = LINK.findall(page.read_text(encoding="utf-8"))
    local = [target for target in targets if "://" not in target]
    assert [target for target in local if not (page.parent / target).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_figure_is_left_out(page: Path) -> None:
    """Nothing stands where a figure was to be put and was forgotten."""
    assert PLACEHOLDER.findall(page.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_named_variables_exist(page: Path) -> None:
    """Every ENGRAM_ variable that a page names is a setting."""
    maker = page_maker("settings")
    known = {maker.variable_of(name) for name, _ in maker.settings_of()}
    known |= {maker.variable_of(name) for name in Settings.model_fields}
    named = set(VARIABLE.findall(page.read_text(encoding="utf-8")))
    assert named - known - SETTINGS_OF_THE_TESTS == set()


def test_defaults_that_pages_name_hold() -> None:
    """A default that a page tells beside a setting's name is the one that holds."""
    maker = page_maker("settings")
    defaults = {maker.variable_of(name): field.default for name, field in maker.settings_of()}
    told = [
        (variable, UNITS[unit](int(bare or bracketed)))
        for page in [*PAGES, *ROOT.glob("*.md")]
        # A decision tells what held when it was taken.
        if page.parent.name != "decisions"
        for variable, bare, bracketed, unit in DEFAULT.findall(page.read_text(encoding="utf-8"))
    ]
    assert {variable for variable, _ in told} >= {
        *("ENGRAM_HTTP_REQUESTS_PER_SECOND", "ENGRAM_DECAY_INTERVAL", "ENGRAM_FLUSH_INTERVAL"),
    }
    assert [(variable, value) for variable, value in told if defaults[variable] != value] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_to_decisions_say_their_number(page: Path) -> None:
    """A link that is called by a number leads to the decision of this number."""
    named = DECISION.findall(page.read_text(encoding="utf-8"))
    assert [(said, target) for said, target in named if said != target] == []


def test_named_addresses_exist() -> None:
    """Every address of the HTTP API that a page names is in the OpenAPI document."""
    paths = json.loads((DOCS / "openapi.json").read_text(encoding="utf-8"))["paths"]
    there = {f"{method.upper()} {path}" for path, methods in paths.items() for method in methods}
    of_users = "/v1/namespaces/{namespace}/users/{user_id}"
    named = {
        f"{method} {of_users if start == '...' else start}{rest}"
        for page in PAGES
        for method, start, rest in ADDRESS.findall(page.read_text(encoding="utf-8"))
    }
    assert len(named) > 3
    assert named - there == set()


def test_operations_page_names_what_lies_in_a_data_folder(tmp_path: Path) -> None:
    """Whoever backs a folder up can look up every file that it may have."""
    folder = DataFolder(tmp_path)
    # Only its owner knows where it answers.
    assert folder.try_lock()
    kept = [getattr(folder, name) for name in vars(DataFolder) if not name.startswith("__")]
    folder.release()
    named = {path.name for path in kept if isinstance(path, Path) and path != folder.path}
    named |= {AUDIT, "lock", Settings.load(data_dir=tmp_path).keys_path.name}
    assert {"encryption", "encryption.json", "temporal.sqlite", "owner.json"} <= named
    table = (DOCS / "operations.md").read_text(encoding="utf-8").partition("Only the lock files")[0]
    listed = {name.rstrip("/") for name in re.findall(r"`([^`]+)`", table)}
    assert named - listed == set()


def test_operations_page_tells_what_can_be_tried_without_writing() -> None:
    """Each command by hand exists and takes --json; what changes memories takes --dry-run."""
    text = (DOCS / "operations.md").read_text(encoding="utf-8")
    section = text.partition("## Operating by hand")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (.*?) \|", section, re.MULTILINE)
    group = typer.main.get_command(whole())
    assert isinstance(group, typer.core.TyperGroup)
    takes = {
        name: {option for one in group.commands[name].params for option in one.opts}
        for row in rows
        for words in re.findall(r"`([^`]+)`", row)
        for name in [words.removeprefix("engram ").split()[0]]
    }
    assert len(takes) > 20
    assert [name for name, options in takes.items() if "--json" not in options] == []
    assert {name for name, options in takes.items() if "--dry-run" not in options} == {
        *("status", "energy", "promotions", "health", "inspect", "validate", "briefing", "reviews"),
        *("replay", "save-histories", "audit"),
        # Rewrites files; the memories in them stay.
        "compact",
        # What the page names as the exception.
        "review",
    }
    assert "except for `review`" in section


def test_decisions_are_numbered_and_listed() -> None:
    """Decision pages are numbered without gaps, titled by their number, and all in the list."""
    pages = sorted(page for page in (DOCS / "decisions").glob("*.md") if page.stem != "README")
    listed = (DOCS / "decisions" / "README.md").read_text(encoding="utf-8")
    for number, page in enumerate(pages, start=1):
        assert page.name.startswith(f"{number:04d}-")
        assert page.read_text(encoding="utf-8").startswith(f"# {number:04d} ")
        assert f"({page.name})" in listed


def test_operations_page_names_what_the_temporal_ui_shows() -> None:
    """The page on debugging knows every search attribute, activity and query by its real name."""
    text = (DOCS / "operations.md").read_text(encoding="utf-8")
    shown = [
        *(names.USER_ATTRIBUTE, names.SESSION_ATTRIBUTE, names.STAGE_ATTRIBUTE),
        *(value for name, value in vars(names).items() if name.endswith("_ACTIVITY")),
        *(names.WORKING_MEMORY_QUERY, names.CONSOLIDATION_PROGRESS_QUERY),
    ]
    # Storing turns shows as its summary, because it is a local activity.
    missing = [name for name in shown if name not in text and name != names.STORE_TURNS_ACTIVITY]
    assert missing == []
