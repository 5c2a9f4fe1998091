"""A folder for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.folders import quick_folder


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder for one store."""
    with quick_folder() as made:
        yield made
