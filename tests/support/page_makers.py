"""The programs that make pages of the documentation, which are no part of the package."""

from __future__ import annotations

import importlib.util
from functools import cache
from pathlib import Path
from types import ModuleType

DOCS = Path(__file__).parents[2] / "docs"


@cache
def page_maker(what: str) -> ModuleType:
    """``docs/generate_WHAT.py``."""
    spec = importlib.util.spec_from_file_location(f"generate_{what}", DOCS / f"generate_{what}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
