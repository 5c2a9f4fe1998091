"""Tenants under random concurrent use of all doors: not one result crosses.

`uv run pytest -n 0 -m slow tests/http/test_tenants.py -s` does it for a minute.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from random import Random
from typing import Any, cast

import httpx
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

import engram
from engram.client.engine import MemoryEngine
from engram.client.memory import MemoryStore
from engram.domain.access import Access
from engram.domain.scope import Scope
from engram.system import new_id, system_clock
from tests.support.live_engram import LiveEngram
from tests.support.tenants import Tenant, use_http, use_mcp, use_shell, use_store

SEED = 20260312
DOORS = {"http", "key of the user", "key of the namespace", "socket", "in process", "mcp", "cli"}
Step = Callable[[], Awaitable[None]]

# What runs is started once, in one process (tests/http/conftest.py).
pytestmark = pytest.mark.xdist_group("live")


class Elsewhere:
    """An engine whose loop is another thread's."""

    def __init__(self, here: LiveEngram) -> None:
        self._here = here

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._here.engine, name)
        if not asyncio.iscoroutinefunction(found):
            return found

        async def asked(*args: Any, **kwargs: Any) -> Any:
            work = asyncio.run_coroutine_threadsafe(found(*args, **kwargs), self._here.loop)
            return await asyncio.wrap_future(work)

        return asked


def tenants(round_name: str) -> list[Tenant]:
    """Two users of one namespace, and one of another whose user id is that of the first."""
    found = [
        Tenant("default", f"ada{round_name}", "marzipanum"),
        Tenant("default", f"bob{round_name}", "quincebush"),
        Tenant("other", f"ada{round_name}", "tamarillow"),
    ]
    for one in found:
        one.others = [other for other in found if other is not one]
    return found


def in_process(here: LiveEngram, tenant: Tenant) -> MemoryStore:
    """The memory of a tenant without any door between."""
    engine = cast("MemoryEngine", Elsewhere(here))
    scope = Scope.of(tenant.namespace, tenant.user)
    return MemoryStore(engine, scope, here.settings, system_clock, new_id)


@asynccontextmanager
async def doors(here: LiveEngram, tenant: Tenant, seed: int) -> AsyncIterator[list[Step]]:
    """Every way in for one tenant, each with keys and random choices of its own."""
    name = f"{tenant.namespace}-{tenant.user}"
    bound = here.key(f"{name}-user", Access.ADMIN, namespace=tenant.namespace, user=tenant.user)
    free = here.key(f"{name}-all", Access.ADMIN, namespace=tenant.namespace)
    whose: dict[str, Any] = {"user_id": tenant.user, "namespace": tenant.namespace}
    headers = {"Authorization": f"Bearer {bound}"}
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        stores = {
            "key of the user": await enter(engram.connect(here.url, api_key=bound, **whose)),
            "key of the namespace": await enter(engram.connect(here.url, api_key=free, **whose)),
            "socket": await enter(engram.open(here.folder, **whose)),
            "in process": in_process(here, tenant),
        }
        web = await enter(httpx.AsyncClient(base_url=here.url, headers=headers, timeout=60))
        http = await enter(httpx2.AsyncClient(headers=headers, timeout=60))
        client = await enter(Client(streamable_http_client(f"{here.url}/mcp", http_client=http)))
        steps: list[Step] = [
            _step(use_store, tenant, door, store, Random(seed + number))  # noqa: S311 - no secret
            for number, (door, store) in enumerate(stores.items())
        ]
        steps.append(_step(use_http, tenant, web, Random(seed + 10)))  # noqa: S311 - same
        steps.append(_step(use_mcp, tenant, client, Random(seed + 11)))  # noqa: S311 - same
        shell = (tenant, here.folder, here.url, bound)
        steps.append(_step(use_shell, *shell, Random(seed + 12)))  # noqa: S311 - same
        yield steps


def _step(use: Callable[..., Awaitable[None]], *given: Any) -> Step:
    return lambda: use(*given)


@pytest.mark.parametrize(
    "seconds",
    [
        3,
        pytest.param(60, marks=pytest.mark.slow),
    ],
)
@pytest.mark.long
async def test_nothing_crosses(here: LiveEngram, seconds: int) -> None:
    """Every answer of every door holds words and ids of the tenant who asked, and no other's."""
    all_of_them = tenants(str(seconds))
    async with AsyncExitStack() as stack:
        steps: list[Step] = []
        for number, tenant in enumerate(all_of_them):
            steps += await stack.enter_async_context(doors(here, tenant, SEED + 100 * number))
            first = await in_process(here, tenant).encode(f"I am {tenant.word}.", session_id="s0")
            tenant.ids.extend(first.episode_ids)
        end = time.monotonic() + seconds

        async def keep_on(step: Step) -> None:
            while True:
                await step()
                if time.monotonic() > end:
                    return

        async with asyncio.TaskGroup() as together:
            for step in steps:
                together.create_task(keep_on(step))
    theirs = {tenant.word: await everything(here, tenant) for tenant in all_of_them}
    for tenant in all_of_them:
        assert set(tenant.answers) == DOORS
        assert set(tenant.refused) == DOORS
        assert tenant.seen & theirs[tenant.word]
        for other in tenant.others:
            assert not tenant.seen & theirs[other.word]
    answers = sum((tenant.answers for tenant in all_of_them), Counter[str]())
    refused = sum((tenant.refused for tenant in all_of_them), Counter[str]())
    print(f"seed {SEED}: {seconds} s, answers {answers}, others' ids {refused}")  # noqa: T201 - figures
    told = "\n".join(here.log)
    assert not [tenant.word for tenant in all_of_them if tenant.word in told.lower()]


async def everything(here: LiveEngram, tenant: Tenant) -> set[str]:
    """Ids of all memories that a tenant has or had."""
    page = await in_process(here, tenant).list(limit=1000, include_test=True)
    for memory in page.memories:
        text = memory.content.lower()
        assert not [other.word for other in tenant.others if other.word in text]
    return {memory.id for memory in page.memories} | set(tenant.ids)
