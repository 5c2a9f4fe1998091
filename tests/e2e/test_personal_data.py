"""In a namespace that masks, no door lets personal data in: it is in no byte of the data folder."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

import engram
from engram import MemoryStore
from engram.domain.access import Access
from engram.errors import InvalidInput
from engram.settings import Settings
from tests.support.live_engram import LiveEngram, live_engram
from tests.support.personal_canaries import (
    CANARIES,
    MASKED,
    SAID,
    bring_in,
    import_all,
    restore,
    tell_all,
    words,
    write_export,
    write_turns,
)
from tests.support.raw_files import holders

NAMESPACE = "clinic"
MASK: dict[str, Any] = {"personal_data_by_namespace": {NAMESPACE: "mask"}}


@asynccontextmanager
async def attached(here: LiveEngram, **rules: Any) -> AsyncIterator[MemoryStore]:
    """A client with rules of its own."""
    settings = Settings.load(data_dir=here.folder, **rules)
    async with engram.open(user_id="nobody", namespace=NAMESPACE, settings=settings) as memory:
        yield memory


async def tell_over_http(here: LiveEngram) -> None:
    """The same with nothing of ours on the caller's side."""
    token = here.key("clinic", Access.WRITE, namespace=NAMESPACE)
    async with httpx.AsyncClient(headers={"Authorization": f"Bearer {token}"}) as web:
        answer = await web.post(
            f"{here.url}/v1/namespaces/{NAMESPACE}/users/web/sessions/s1/turns",
            json={"turns": [{"content": one} for one in SAID]},
        )
    assert answer.status_code == 200, answer.text


@pytest.mark.slow
async def test_no_door_lets_personal_data_into_a_namespace_that_masks(tmp_path: Path) -> None:
    """Twenty canaries by each way in: masked or refused, in no byte of store, history and log."""
    turns, export, out = (tmp_path / name for name in ("turns.jsonl", "export.jsonl", "out"))
    write_turns(turns)
    write_export(export)
    out.mkdir()
    with live_engram(tmp_path / "data", schedules=False, **MASK) as here:
        async with attached(here, **MASK) as client:
            await tell_all(client.for_user("client"))
            await client.for_user("client").consolidate()
            await import_all(client.for_user("importer"), turns)
            await restore(client.for_user("restorer"), export)
            for user in ("client", "importer", "restorer"):
                await client.for_user(user).export_file(out / f"{user}.jsonl")
        async with attached(here) as careless:
            await tell_all(careless.for_user("door"))
            await tell_over_http(here)
            assert await words(careless.for_user("web")) >= MASKED
            await bring_in(careless.for_user("elsewhere"))
            for file in (turns, export):
                with pytest.raises(InvalidInput, match="personal data"):
                    await careless.for_user("refused").import_file(file, consolidate=False)
            assert await words(careless.for_user("refused")) == set()
            # The search finds what is there.
            await careless.encode("It is the thylacine.", session_id="s1")
        found = holders(here.folder, [*CANARIES, "thylacine"])
        assert set().union(*found.values()) == {"thylacine"}
        assert holders(out, CANARIES) == {}
        log = "\n".join(here.log)
        assert [canary for canary in CANARIES if canary in log] == []
