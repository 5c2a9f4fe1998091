"""What several files of end-to-end tests share."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import uuid4

import pytest

from tests.support.running_up import Up, running_up


@pytest.fixture(scope="package")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """`engram up` on a fresh folder, for every file in the group ``up``; it begins no passes."""
    passes = ("ACCESS_FLUSH", "CONSOLIDATION", "PROMOTION", "DECAY")
    never = {f"ENGRAM_{name}_INTERVAL": "P1000D" for name in passes}
    with running_up(tmp_path_factory.mktemp("up"), **never) as running:
        yield running


@pytest.fixture
def user() -> str:
    """A user who has said nothing yet."""
    return f"user-{uuid4().hex[:8]}"
