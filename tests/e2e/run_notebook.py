"""Runs the cells of a notebook in one process, in order, as a fresh kernel would.

Arguments: the notebook, and a folder for its pictures. Prints what the cells print, then a line of
JSON with what each picture shows.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np


def main(notebook: Path, pictures: Path) -> None:
    """Run it, and keep its pictures."""
    names: dict[str, Any] = {"__name__": "__main__"}
    for cell in json.loads(notebook.read_text("utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            code = compile("".join(cell["source"]), f"cell {cell['id']}", "exec")
            exec(code, names)  # noqa: S102 - running our own notebook is what this is for
    shown = []
    for number in plt.get_fignums():
        figure = plt.figure(number)
        figure.savefig(pictures / f"{number}.png")
        (axes,) = figure.axes
        lines = [
            [np.asarray(data).tolist() for data in (line.get_xdata(), line.get_ydata())]
            for line in axes.lines
        ]
        ticks = [label.get_text() for label in axes.get_yticklabels()]
        shown.append({"title": axes.get_title(), "ticks": ticks, "lines": lines})
    sys.stdout.write("\n" + json.dumps(shown, default=str))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
