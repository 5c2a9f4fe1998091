"""The Nexus service: what workflows of other Temporal namespaces may ask of memory."""

from __future__ import annotations

import nexusrpc

from engram.contracts import names
from engram.contracts.calls import (
    ConsolidateArgs,
    ContextArgs,
    EncodeArgs,
    ProfileArgs,
    RecallArgs,
)
from engram.contracts.consolidation import ConsolidationReport
from engram.operations.digests import Profile
from engram.operations.recall import ContextBlock
from engram.operations.registry import Answered
from engram.operations.turns import Receipt
from engram.recall.results import RecallHit


class Recalled(Answered):
    """What answers a question.

    Attributes:
        hits: Best first.
    """

    hits: tuple[RecallHit, ...]


@nexusrpc.service(name=names.NEXUS_SERVICE)
class MemoryService:
    """Memory, for workflows of other Temporal namespaces and in other languages.

    ``workflow.create_nexus_client(service=MemoryService, endpoint="engram")``. Each operation takes
    a JSON object and answers with one; those of Python have Pydantic's data converter.

    Attributes:
        encode: Keeps turns, once for each request.
        recall: Answers a question.
        context: Answers a question with a block for a prompt.
        profile: Tells what is known about somebody.
        consolidate: Consolidates, and answers when that is done. Can be cancelled, which ends the
            waiting; what was begun goes on.
    """

    encode: nexusrpc.Operation[EncodeArgs, Receipt]
    recall: nexusrpc.Operation[RecallArgs, Recalled]
    context: nexusrpc.Operation[ContextArgs, ContextBlock]
    profile: nexusrpc.Operation[ProfileArgs, Profile]
    consolidate: nexusrpc.Operation[ConsolidateArgs, ConsolidationReport]
