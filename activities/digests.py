"""Activities of the digest stage: unpack, call the core, pack."""

from __future__ import annotations

from dataclasses import asdict

import structlog
from temporalio import activity

from activities.heartbeats import beating
from engram.contracts import names
from engram.contracts.digests import DigestInput, DigestOutput, LearnInput
from engram.domain.digests.versions import Composer
from engram.writing.digests import Digested, Digests

_log = structlog.get_logger(__name__)


class DigestActivities:
    """Rebuilds what is composed from memories; runs on the store queue.

    Args:
        digests: Rebuilds them.
    """

    def __init__(self, digests: Digests) -> None:
        self._digests = digests

    @activity.defn(name=names.DIGEST_KNOWLEDGE_ACTIVITY)
    async def digest_knowledge(self, request: DigestInput) -> DigestOutput:
        """Rebuild profiles and topics of what was touched."""
        async with beating():
            done = await self._digests.knowledge(
                _composer(request), request.memory_ids, request.episode_ids, request.policy
            )
        return _output("profiles and topics rebuilt", done)

    @activity.defn(name=names.DIGEST_SESSIONS_ACTIVITY)
    async def digest_sessions(self, request: DigestInput) -> DigestOutput:
        """Seal the boxes of sessions that were touched."""
        async with beating():
            done = await self._digests.sessions(
                _composer(request), request.episode_ids, request.ended, request.policy
            )
        return _output("boxes sealed", done)

    @activity.defn(name=names.LEARN_GUIDELINES_ACTIVITY)
    async def learn_guidelines(self, request: LearnInput) -> DigestOutput:
        """Count what became of memories, and draw guidance from it."""
        deeds = [(done.deed, done.memory_id) for done in request.done]
        async with beating():
            done = await self._digests.learn(
                _composer(request), deeds, request.operation, request.policy
            )
        return _output("guidelines learnt", done)


def _composer(request: DigestInput | LearnInput) -> Composer:
    return Composer(request.scope, request.now, request.workflow_id, request.run_id)


def _output(event: str, done: Digested) -> DigestOutput:
    counts = asdict(done)
    _log.info(event, **counts)
    return DigestOutput(**counts)
