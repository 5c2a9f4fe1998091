"""Workflows of another Temporal namespace, which call memory through Nexus."""

from __future__ import annotations

from datetime import timedelta

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from engram.contracts.calls import (
        ConsolidateArgs,
        ContextArgs,
        EncodeArgs,
        ProfileArgs,
        RecallArgs,
    )
    from engram.contracts.consolidation import ConsolidationReport
    from engram.operations.nexus import MemoryService

ENDPOINT = "memory"
LIMIT = timedelta(seconds=60)


@workflow.defn
class Calling:
    """Uses every operation."""

    @workflow.run
    async def run(self, user_id: str, text: str) -> list[str]:
        """What is known afterwards: turns, a block for a prompt, the profile, and how it came."""
        memory = workflow.create_nexus_client(service=MemoryService, endpoint=ENDPOINT)
        said = EncodeArgs(user_id=user_id, session_id="talk", turns=[{"content": text}])
        receipt = await memory.execute_operation(
            MemoryService.encode, said, schedule_to_close_timeout=LIMIT
        )
        asked = RecallArgs(user_id=user_id, query=text, options={"memory_types": "episodic"})
        found = await memory.execute_operation(
            MemoryService.recall, asked, schedule_to_close_timeout=LIMIT
        )
        assert [hit.memory.id for hit in found.hits] == [*receipt.episode_ids]
        report = await memory.execute_operation(
            MemoryService.consolidate,
            ConsolidateArgs(user_id=user_id),
            schedule_to_close_timeout=LIMIT,
        )
        block = await memory.execute_operation(
            MemoryService.context,
            ContextArgs(user_id=user_id, query=text),
            schedule_to_close_timeout=LIMIT,
        )
        profile = await memory.execute_operation(
            MemoryService.profile, ProfileArgs(user_id=user_id), schedule_to_close_timeout=LIMIT
        )
        return [str(report.episodes), block.context, profile.kind]


@workflow.defn
class Keeping:
    """Keeps one turn."""

    @workflow.run
    async def run(self, user_id: str, namespace: str | None) -> list[str]:
        """Its id."""
        memory = workflow.create_nexus_client(service=MemoryService, endpoint=ENDPOINT)
        said = EncodeArgs(
            user_id=user_id, namespace=namespace, session_id="talk", turns=[{"content": "I ski."}]
        )
        receipt = await memory.execute_operation(
            MemoryService.encode, said, schedule_to_close_timeout=LIMIT
        )
        return [*receipt.episode_ids]


@workflow.defn
class Waiting:
    """Consolidates, until it is cancelled or has waited long enough."""

    @workflow.run
    async def run(self, user_id: str, seconds: int) -> ConsolidationReport:
        """The report."""
        memory = workflow.create_nexus_client(service=MemoryService, endpoint=ENDPOINT)
        return await memory.execute_operation(
            MemoryService.consolidate,
            ConsolidateArgs(user_id=user_id),
            schedule_to_close_timeout=timedelta(seconds=seconds),
            cancellation_type=workflow.NexusOperationCancellationType.WAIT_COMPLETED,
        )


CALLERS = [Calling, Keeping, Waiting]
