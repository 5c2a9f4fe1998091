"""An agent with memory, in process and inside a durable workflow, on real servers."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from uuid import uuid4

import pytest
import pytest_asyncio
from pydantic_ai.durable_exec.temporal import PydanticAIPlugin
from temporalio.client import Client, WorkflowFailureError, WorkflowHistory
from temporalio.worker import Replayer, Worker

from engram.client.memory import MemoryStore
from engram.domain.memories import Episode
from engram.domain.scope import Scope
from engram.embedded.open import run
from engram.settings import Settings
from engram.system import new_id, system_clock
from tests.support.durable_agent import Asking, Concierge, durable, held

# What runs is started once, in one process.
pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.xdist_group("pydantic_ai")]


@dataclass
class Setup:
    """A running Engram, and a client of its Temporal server."""

    memory: MemoryStore
    client: Client


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def setup(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Setup]:
    """An embedded Engram, on whose Temporal server the agents' workflows run too."""
    settings = Settings.load(data_dir=tmp_path_factory.mktemp("agents") / "data", temporal_ui=False)
    async with run(settings) as running:
        assert running.address is not None
        client = await Client.connect(running.address, plugins=[PydanticAIPlugin()])
        scope = Scope.of("default", "nobody")
        memory = MemoryStore(running.engine, scope, settings, system_clock, new_id)
        held["memory"] = memory
        yield Setup(memory, client)
        held.clear()


async def turns(memory: MemoryStore) -> list[Episode]:
    """What was said, in order."""
    page = await memory.list(memory_types=["episodic"])
    return [episode for episode in page.memories if isinstance(episode, Episode)]


async def test_memory_from_run_to_run(setup: Setup, user: str) -> None:
    """What is said in one run is shown to the model in the next, and not left in its history."""
    memory = setup.memory.for_user(user)
    first = await durable.run("I drink green tea.", deps=Asking(user), run_id="r1")
    assert first.output.startswith("Shown:  Told:")
    second = await durable.run("What do I drink?", deps=Asking(user), run_id="r2")
    assert "I drink green tea." in second.output
    assert re.search(r"<engram-memory \w", second.output)
    sent = second.all_messages_json().decode().split("Shown: ")[0]
    assert re.search(r"<engram-memory \w", sent) is None
    kept = await turns(memory)
    assert [(turn.message_id, turn.role) for turn in kept] == [
        ("r1:user", "user"),
        ("r1:assistant", "assistant"),
        ("r2:user", "user"),
        ("r2:assistant", "assistant"),
    ]


async def test_a_run_that_is_made_again_is_kept_once(setup: Setup, user: str) -> None:
    """The same run id stores once, even when the model answers otherwise."""
    memory = setup.memory.for_user(user)
    await durable.run("I drink tea.", deps=Asking(user), run_id="r1", conversation_id="c")
    first = await turns(memory)
    again = await durable.run("I drink tea.", deps=Asking(user), run_id="r1", conversation_id="c")
    assert again.output != first[1].content
    assert await turns(memory) == first


async def test_a_durable_agent_remembers_in_activities(setup: Setup, user: str) -> None:
    """In a sandboxed workflow all memory work is done by activities, and the history replays."""
    memory = setup.memory.for_user(user)
    await memory.encode("I drink green tea.", session_id="before")
    async with Worker(setup.client, task_queue=user, workflows=[Concierge]):
        handle = await setup.client.start_workflow(
            Concierge.run, args=[user, "Use your tools."], id=f"chat:{user}", task_queue=user
        )
        said = await handle.result()
    assert "I drink green tea." in said.split("Told:")[0]
    assert "I drink green tea." in said.split("Told:")[1]
    kept = {turn.content: turn for turn in await turns(memory)}
    assert kept["The user was asked about tea."].tags == ("note",)
    assert kept["Use your tools."].session_id == f"chat:{user}"
    assert said in kept
    history = await handle.fetch_history()
    assert activities(history) == [
        "agent__concierge__capability__engram__recall",
        "agent__concierge__model_request",
        "agent__concierge__toolset__engram__call_tool",
        "agent__concierge__toolset__engram__call_tool",
        "agent__concierge__model_request",
        "agent__concierge__capability__engram__keep",
    ]
    await Replayer(workflows=[Concierge], plugins=[PydanticAIPlugin()]).replay_workflow(history)


async def test_what_cannot_be_mended_fails_the_run_at_once(setup: Setup) -> None:
    """A refused user id fails a durable run without endless retries, and says why."""
    async with Worker(setup.client, task_queue="refused", workflows=[Concierge]):
        with pytest.raises(WorkflowFailureError) as failed:
            await setup.client.execute_workflow(
                Concierge.run, args=["a/b", "Hello."], id=f"chat-{uuid4()}", task_queue="refused"
            )
    causes = str(failed.value.cause), str(failed.value.cause.__cause__)
    assert any("user id is not usable" in cause for cause in causes)


def activities(history: WorkflowHistory) -> list[str]:
    """The activities that a run scheduled, in order."""
    return [
        event.activity_task_scheduled_event_attributes.activity_type.name
        for event in history.events
        if event.HasField("activity_task_scheduled_event_attributes")
    ]
