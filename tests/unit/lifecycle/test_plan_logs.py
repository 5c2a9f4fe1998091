"""What applying a plan says in the log: counts; ids only where somebody debugs."""

from __future__ import annotations

import json
from uuid import uuid4

from structlog.testing import capture_logs

from engram.consolidation.apply import PlanWriter
from engram.domain.plan import ConsolidationPlan, LinkGraph
from engram.embedding.choice import make_embedder
from tests.support.edge_stores import borrowed_store
from tests.support.reconciliation import SCOPE


async def test_a_large_plan_takes_one_short_line() -> None:
    """At info a plan of 300 actions is as long as one of 3; debug names every memory."""
    links = [
        LinkGraph(why="alike", first_id=str(uuid4()), second_id=str(uuid4())) for _ in range(300)
    ]
    lengths = []
    async with borrowed_store() as repository:
        writer = PlanWriter(repository, make_embedder("wordllama"), lambda: uuid4().hex)
        for size in (3, 300):
            with capture_logs() as lines:
                await writer.write(SCOPE, ConsolidationPlan(actions=tuple(links[:size])))
            (told,) = [line for line in lines if line["log_level"] == "info"]
            assert sum(told["actions"].values()) == sum(told["reasons"].values()) == size
            lengths.append(len(json.dumps(told)))
            debugged = [line for line in lines if line["log_level"] == "debug"]
            assert sum(len(line["actions"]) for line in debugged) == size
            assert max(len(json.dumps(line)) for line in debugged) < 4000
    assert lengths[1] - lengths[0] < 20
    assert lengths[1] < 300
