"""What contributors are told is so: paths, commands, CI, hooks and addresses."""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
PAGES = ("CONTRIBUTING.md", "SECURITY.md", ".github/PULL_REQUEST_TEMPLATE.md")
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
YAML_FILES = [ROOT / ".pre-commit-config.yaml", *sorted((ROOT / ".github").rglob("*.yml"))]
IN_BACKTICKS = re.compile(r"^```\w*\n(.*?)^```$|`([^`]+)`", re.MULTILINE | re.DOTALL)
# A word with a slash in it, or one that ends like a file; a star stands for any of several.
PATH = re.compile(r"(?:[\w.*-]+/)+[\w.*-]*|[\w.*-]+\.(?:md|toml|py|ya?ml|lock)")
LINK = re.compile(r"\]\((?!https?://)([^)#\s]+)(?:#[^)]*)?\)")
TASK = re.compile(r"\buv run poe ([\w-]+)")


def read(name: str) -> str:
    """A file of the project."""
    return (ROOT / name).read_text(encoding="utf-8")


def paths(page: str) -> list[str]:
    """Everything in backticks that reads like a path, inside commands too."""
    code = [block or inline for block, inline in IN_BACKTICKS.findall(page)]
    words = [word.partition("::")[0] for text in code for word in text.split()]
    return [word for word in words if PATH.fullmatch(word)]


def project() -> dict[str, Any]:
    """pyproject.toml."""
    return tomllib.loads(read("pyproject.toml"))


def tasks() -> dict[str, Any]:
    """What poe can run, by name."""
    found: dict[str, Any] = project()["tool"]["poe"]["tasks"]
    return found


def commands(task: Any, known: dict[str, Any]) -> Iterator[list[str]]:
    """The words of each command that a task runs, those of the tasks that it names included."""
    match task:
        case str():
            words = without_uv(shlex.split(task))
            if words and words[0] in known:
                yield from commands(known[words[0]], known)
            else:
                yield words
        case list():
            for part in task:
                yield from commands(part, known)
        case dict():
            for kind in ("cmd", "sequence", "parallel", "ref"):
                if kind in task:
                    yield from commands(task[kind], known)
            for line in re.split(r"&&|;|\n", task.get("shell", "")):
                if line.strip():
                    yield from commands(line, known)


def without_uv(words: list[str]) -> list[str]:
    """A command without ``uv run`` before it."""
    return words[2:] if words[:2] == ["uv", "run"] else words


def hooks() -> list[dict[str, Any]]:
    """Every hook of pre-commit."""
    configured = yaml.safe_load(read(".pre-commit-config.yaml"))
    assert [repository["repo"] for repository in configured["repos"]] == ["local"]
    return [hook for repository in configured["repos"] for hook in repository["hooks"]]


def steps(workflow: Path) -> list[str]:
    """What the jobs of a workflow run, in order."""
    jobs = yaml.safe_load(workflow.read_text(encoding="utf-8"))["jobs"].values()
    return [step["run"] for job in jobs for step in job["steps"] if "run" in step]


def test_paths_are_recognised() -> None:
    """What stands for a path is taken for one, and commands, names and values are not."""
    page = (
        "`a/b.py` `a/` `c.md` `uv run pytest a/c.py::test_d` a/no\n```sh\nls x/*.toml | wc\n```\n"
    )
    assert paths(page) == ["a/b.py", "a/", "c.md", "a/c.py", "x/*.toml"]
    assert paths("`https://a.b/c` `engram.open` `A_B=1` `--x=y/z` `<a>/b`") == []


@pytest.mark.checkout
def test_every_path_exists() -> None:
    """Whatever file or folder CONTRIBUTING.md names is there."""
    named = paths(read("CONTRIBUTING.md"))
    assert len(named) > 50
    assert [name for name in named if not any(ROOT.glob(name.rstrip("/")))] == []


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    """Every relative link of a page names a file that exists."""
    targets = LINK.findall(read(page))
    assert [
        target for target in targets if not (ROOT / page).parent.joinpath(target).exists()
    ] == []


def test_every_task_exists() -> None:
    """Each `uv run poe` of CONTRIBUTING.md, of the templates and of CI names a task of poe."""
    texts = [read(page) for page in PAGES]
    texts += [path.read_text(encoding="utf-8") for path in YAML_FILES]
    named = {name for text in texts for name in TASK.findall(text)}
    assert named >= {"lint", "nightly"}
    assert named - tasks().keys() == set()


def test_ci_runs_what_the_readme_says() -> None:
    """CI tests a checkout with the README's second command, word for word, then lint and docs."""
    blocks = re.findall(r"^```sh\n(.*?)^```$", read("README.md"), re.MULTILINE | re.DOTALL)
    assert steps(ROOT / ".github" / "workflows" / "ci.yml") == [
        blocks[1].strip(),
        "uv run poe lint",
        "uv run poe docs",
    ]


def test_ci_knows_every_supported_python() -> None:
    """The versions that CI tests are those that the package says it runs on."""
    matrix = yaml.safe_load(read(".github/workflows/ci.yml"))["jobs"]["tests"]["strategy"]["matrix"]
    said = re.findall(r"Python :: (3\.\d+)", "\n".join(project()["project"]["classifiers"]))
    assert matrix["python"] == said


@pytest.mark.parametrize("path", YAML_FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_yaml_parses(path: Path) -> None:
    """Every file that GitHub and pre-commit read is YAML with something in it."""
    assert isinstance(yaml.safe_load(path.read_text(encoding="utf-8")), dict)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_may_read_and_no_more(path: Path) -> None:
    """A workflow only reads the repository, ends some time, and does not pile up."""
    workflow = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert workflow["permissions"] == {"contents": "read"}
    assert workflow["concurrency"]["group"]
    for job in workflow["jobs"].values():
        assert "permissions" not in job
        assert 0 < job["timeout-minutes"] < 360


def test_hooks_run_what_lint_runs() -> None:
    """pre-commit calls nothing that `poe lint` does not call, and changes no file."""
    known = tasks()
    linted = [
        command
        for name in ("lint", "types")
        if name in known
        for command in commands(known[name], known)
    ]
    for hook in hooks():
        words = shlex.split(hook["entry"])
        assert words[:2] == ["uv", "run"]
        assert hook["language"] == "system"
        called = words[2:]
        assert called in [command[: len(called)] for command in linted], hook["entry"]


def test_commands_of_a_task_are_found() -> None:
    """However a task of poe is written down, the commands that it comes to are known."""
    known: dict[str, Any] = {
        "types": "mypy",
        "style": {"cmd": "uv run ruff check ."},
        "lint": {
            "sequence": ["style", {"ref": "types"}, {"shell": "uv lock --check && lint-imports"}]
        },
        "all": ["lint", {"cmd": "pytest -q"}],
    }
    assert list(commands(known["all"], known)) == [
        ["ruff", "check", "."],
        ["mypy"],
        ["uv", "lock", "--check"],
        ["lint-imports"],
        ["pytest", "-q"],
    ]


def test_no_page_leads_to_a_repository_that_is_not_ours() -> None:
    """The project has no public address yet: none is named in the package, pages and templates."""
    assert "urls" not in project()["project"]
    texts = [read(page) for page in PAGES]
    texts += [path.read_text(encoding="utf-8") for path in YAML_FILES]
    assert not [found for text in texts for found in re.findall(r"github\.com/[\w-]+/[\w-]+", text)]
