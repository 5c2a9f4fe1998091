"""A second look at the best answers, by a model that reads question and answer together."""

from __future__ import annotations

from collections.abc import Sequence

import structlog

from engram.errors import EngramError
from engram.ports import Reranker
from engram.recall.ranked import Ranked, by_score

_log = structlog.get_logger("engram.recall")


async def reranked(reranker: Reranker, query: str, found: Sequence[Ranked]) -> list[Ranked]:
    """The answers in the reranker's order, each with the score of its new place.

    Scores of models have any scale, so only their order is taken: the best answer
    gets the best score there was, and so on. Recall never fails for the reranker:
    without its word the order stays.
    """
    if len(found) < 2:  # noqa: PLR2004 - one answer has one order
        return list(found)
    try:
        said = await reranker.rerank(query, [one.memory.indexed_text for one in found])
    except EngramError as error:
        _log.warning("the reranker failed; the order stays", reason=error.code)
        return list(found)
    if len(said) != len(found):
        _log.warning("the reranker failed; the order stays", reason="wrong number of scores")
        return list(found)
    places = sorted((one.score for one in found), reverse=True)
    order = sorted(range(len(found)), key=lambda at: (-said[at], at))
    moved = [
        found[at].moved_to(place, "reranked", said[at])
        for at, place in zip(order, places, strict=True)
    ]
    return by_score(moved)
