"""Writes docs/settings.md from the settings themselves.

Run it after changing a setting: ``uv run python docs/generate_settings.py``
A test compares the page with what this gives. What a setting is for stands at its field, so
that ``engram config`` tells it too.
"""

from __future__ import annotations

from pathlib import Path

from engram.cli.config.reference import SECTIONS, default, meaning, settings_of, values
from engram.settings import variable_of

__all__ = ["SECTIONS", "meaning", "page", "settings_of", "variable_of"]

PAGE = Path(__file__).with_name("settings.md")

HEAD = """# Settings

<!-- Made by docs/generate_settings.py; change engram/settings.py and run that. -->

Every number and address that can be set. A program reads them once, when it starts: from the
environment, or from arguments to `engram.Settings.load(...)`, which win. A value out of range ends
the start with an error that names the variable. `engram config` shows what is set and where it
comes from, and points out variables that are no settings.

- Durations are plain seconds (`300`), ISO 8601 (`PT30S`, `PT5M`, `P90D`) or `hh:mm:ss`
  (`00:05:00`).
- *unset* means that the variable is left out, or empty: `ENGRAM_MODEL=` sets nothing.
- Nested settings can also be given as one JSON object:
  `ENGRAM_CONFIDENCE_WEIGHTS='{"extraction": 0.4, "corroboration": 0.35}'`.
- Keys are never printed.

Who reads what: a client needs the addresses, the keys and the embedder; a worker also the models.
The limits under *Writing* and *Consolidating* that rule a session or a consolidation are read by
the process that starts that workflow, and hold until it ends; changing them changes nothing in a
workflow that runs.
"""


def page() -> str:
    """The whole page."""
    lines = [HEAD.rstrip()]
    for name, field in settings_of():
        if name in SECTIONS:
            lines += [
                "",
                f"## {SECTIONS[name]}",
                "",
                "| Variable | Default | Values | Meaning |",
                "|---|---|---|---|",
            ]
        cells = (f"`{variable_of(name)}`", default(field), values(field), meaning(field))
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
