"""Writes docs/cli.md from the commands themselves.

Run it after changing a command: ``uv run python docs/generate_cli.py``
A test compares the page with what this gives.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from engram.cli import exits
from engram.cli.app import panels, whole

PAGE = Path(__file__).with_name("cli.md")
# Said once, above, and not at every command.
COMMON = ("user", "data_dir", "connected", "as_json", "help")

HEAD = """# The command line

<!-- Made by docs/generate_cli.py; change the command in engram/cli and run that. -->

`engram --help` lists the commands by purpose, `engram COMMAND --help` tells one of them with
examples, and `engram --install-completion` makes <kbd>Tab</kbd> complete commands, options, memory
types and settings in bash, zsh and fish.

**Where the memory is.** Without anything said, in the data folder of this machine: the first
process that opens it runs everything, others attach to it, so a command alone takes some seconds
and is quick beside `engram up`. `--data-dir` (`-d`) or `ENGRAM_DATA_DIR` name another folder.
`--connected` uses the Temporal and Qdrant servers that the [settings](settings.md) name. `engram
--url URL COMMAND` or `ENGRAM_URL` work through an [HTTP API](http.md).

**Whose memory.** `--user` (`-u`), or `ENGRAM_USER` for a whole shell.

**What is printed.** Answers go to standard output; errors, questions and progress to standard
error. What takes long shows on a terminal how far it is; elsewhere a line every ten seconds does. A
terminal gets tables and colours (not with `NO_COLOR`); a pipe gets a line for each row with tabs
between the cells, the first line naming the columns. Times are UTC. `--json` prints one JSON
document, complete and unabridged: use it in programs. Where text is expected, `-` reads standard
input. Questions (`forget`, `erase`) are asked on a terminal only: elsewhere, and with `--json`, say
`--yes`.

**Errors** say what was wrong, what is allowed and what to do. With `--json`, standard output also
gets `{"error": {"code": ..., "message": ..., "allowed": ..., "hint": ..., "details": ...,
"retryable": ...}}`; wrong usage is told on standard error alone.

| Exit code | Meaning |
|---|---|
"""


def commands(command: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Every command below this one, with the words that call it."""
    inner = getattr(command, "commands", None)
    if inner is None:
        yield path, command
        return
    for name, each in inner.items():
        yield from commands(each, f"{path} {name}")


def told(command: Any) -> Iterator[str]:
    """A command's help: paragraphs, then its examples."""
    paragraphs = [" ".join(each.split()) for each in command.help.strip().split("\n\n")]
    examples = [each for each in paragraphs if each.startswith("Example: ")]
    for paragraph in paragraphs:
        if paragraph not in examples:
            yield from (code(paragraph), "")
    yield from ("```sh", *(each.removeprefix("Example: ") for each in examples), "```")


def code(text: str) -> str:
    """Text in which variables are set as code."""
    return re.sub(r"(?<!`)\b(ENGRAM_[A-Z_]*[A-Z])\b(?!`)", r"`\1`", text)


def cell(text: str) -> str:
    """Text inside a table."""
    return " ".join(text.split()).replace("|", "\\|")


def parameters(command: Any) -> Iterator[str]:
    """A table of what only this command takes."""
    own = [each for each in command.params if each.name not in COMMON and not each.hidden]
    if not own:
        return
    yield from ("", "| | |", "|---|---|")
    for each in own:
        options = ", ".join(f"`{name}`" for name in (*each.opts, *each.secondary_opts))
        name = options if each.param_type_name == "option" else f"`{each.name.upper()}`"
        words = [code(each.help or ""), _default(each)]
        yield f"| {name} | {cell(' '.join(filter(None, words)))} |"


def _default(parameter: Any) -> str:
    if parameter.required:
        return "Required." if parameter.param_type_name == "option" else ""
    if parameter.default in (None, False, (), []) or callable(parameter.default):
        return ""
    several = isinstance(parameter.default, list)
    named = ", ".join(parameter.default) if several else parameter.default
    return f"Default: `{getattr(named, 'value', named)}`."


def page() -> str:
    """The whole page."""
    lines = [HEAD.rstrip()]
    lines += [f"| {number} | {cell(said)} |" for number, said in exits.MEANINGS.items()]
    root: Any = typer.main.get_command(whole())
    for panel, names in panels().items():
        lines += ["", f"## {panel}"]
        for name in names:
            for path, command in commands(root.commands[name], f"engram {name}"):
                lines += ["", f"### `{path}`", "", *told(command), *parameters(command)]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
