"""A run that its worker puts out of memory ends at once: nothing can be waited for any more."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from engram.workflows.consolidation_pass import ConsolidationPass


async def test_a_pass_that_reads_ahead_can_be_put_out_of_memory() -> None:
    """It does not wait for what is read ahead, which would be an error of its worker's."""

    async def selected(*_: object, **__: object) -> SimpleNamespace:
        return SimpleNamespace(batches=("a batch", "another"), more=False)

    async def read(*_: object) -> tuple[()]:
        return ()

    async def never(*_: object, **__: object) -> None:
        await asyncio.get_running_loop().create_future()

    being: Any = SimpleNamespace(
        _calls=SimpleNamespace(select_due=selected),
        _refusals=SimpleNamespace(selected=lambda _: None),
        _begin_reading=lambda _: SimpleNamespace(),
        _answered=read,
        _enough_to_link=lambda: False,
        _digest=never,
        state=SimpleNamespace(refused=()),
        _reason="asked",
        _asked=(),
    )
    going_on = ConsolidationPass._consolidate_in_few_steps(being)  # noqa: SLF001 - what is put away
    going_on.send(None)
    going_on.close()
