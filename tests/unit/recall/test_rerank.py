"""A second look at the best answers, off by default and never in the way."""

import asyncio
import json
import sys
import threading
from collections.abc import Sequence
from datetime import timedelta
from types import ModuleType

import pytest
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import ModelMessage, ModelResponse, ToolCallPart, UserPromptPart
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.models.function import AgentInfo, FunctionModel

from engram.agents.reranking import CrossEncoderReranker, ModelReranker, make_reranker
from engram.contracts.messages import metering
from engram.domain.confidence import ConfidenceWeights
from engram.domain.scope import Scope
from engram.errors import EngramError, InvalidSettings, ModelUnavailable
from engram.ports import Reranker
from engram.recall.pipeline import Recaller
from engram.recall.request import RecallRequest
from engram.settings import Settings
from tests.support.offline_fastembed import offline_fastembed
from tests.support.recall_memories import (
    ADA,
    NOW,
    SETTINGS,
    Memories,
    contents,
    covers_by_words,
    episode,
)
from tests.support.scripted_model import failing

TALK = (
    episode("My sister plays the cello in an orchestra.", 1),
    episode("My sister sold her cello.", 2),
    episode("The cello is in the attic.", 3),
)


class Scripted:
    """Prefers what holds a word; fails if told to."""

    def __init__(self, word: str, failure: Exception | None = None) -> None:
        self.word, self.failure = word, failure
        self.seen: list[str] = []

    async def rerank(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        """See the port."""
        self.seen = list(texts)
        if self.failure is not None:
            raise self.failure
        return [float(self.word in text) for text in texts]


class Silent:
    """Never answers; notes whether somebody waits for it."""

    def __init__(self) -> None:
        self.asked, self.left = 0, 0

    async def rerank(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        """See the port."""
        self.asked += 1
        try:
            await asyncio.Event().wait()
        finally:
            self.left += 1
        raise AssertionError


async def ask(
    memories: Memories,
    reranker: Reranker | None,
    limit: int = 3,
    settings: Settings = SETTINGS,
) -> list[str]:
    """The answers about a cello, in order."""
    recaller = Recaller(
        memories.repository,
        memories.embedder,
        ConfidenceWeights(),
        settings,
        covers_by_words,
        reranker,
    )
    request = RecallRequest.of("cello", settings=settings, limit=limit, explain=True)
    hits = await recaller.recall(Scope.of(ADA.namespace, ADA.user_id), request, NOW)
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    for hit in hits:
        assert hit.explanation is not None
        total = sum(part.contribution for part in hit.explanation.parts)
        assert total == pytest.approx(hit.score)
    return contents(hits)


async def test_the_reranker_decides_the_order(memories: Memories) -> None:
    """Also over answers that would not have been among the few asked for."""
    await memories.keep(*TALK)
    last = (await ask(memories, None))[-1]
    reranker = Scripted(last)
    assert (await ask(memories, reranker, limit=1)) == [last]
    assert len(reranker.seen) == 3


BUSY = failing(ModelHTTPError(429, "m"))


@pytest.mark.parametrize(
    "reranker",
    [
        Scripted("", ModelUnavailable("It is down.")),
        Scripted("", ZeroDivisionError("of the answers' words: none")),
        ModelReranker(BUSY),
        ModelReranker(failing(IndexError("list index out of range"))),
        ModelReranker(FallbackModel(BUSY, BUSY)),
    ],
    ids=["of one's own", "a faulty one of one's own", "a model", "no answer", "several models"],
)
async def test_without_its_word_the_order_stays(memories: Memories, reranker: Reranker) -> None:
    """A reranker that fails costs nothing but its help."""
    await memories.keep(*TALK)
    assert await ask(memories, reranker) == await ask(memories, None)


async def test_recall_does_not_wait_for_a_reranker_for_ever(memories: Memories) -> None:
    """One that does not answer in time is left alone, and the order stays."""
    await memories.keep(*TALK)
    silent = Silent()
    hurried = SETTINGS.model_copy(update={"rerank_timeout": timedelta(milliseconds=1)})
    assert await ask(memories, silent, settings=hurried) == await ask(memories, None)
    assert (silent.asked, silent.left) == (1, 1)


async def test_any_model_can_rerank() -> None:
    """It sees one JSON document, a wrong number of scores is sent back once, both are counted."""
    asked: list[int] = []

    def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        prompt = next(p for p in messages[0].parts if isinstance(p, UserPromptPart))
        document = json.loads(str(prompt.content))
        asked.append(len(document["memories"]))
        scores = [float("attic" in one["text"]) for one in document["memories"]]
        given = scores if len(asked) > 1 else scores[:1]
        return ModelResponse(parts=[ToolCallPart(info.output_tools[0].name, {"scores": given})])

    reranker = ModelReranker(FunctionModel(model))
    with metering() as meter:
        assert await reranker.rerank("Where is it?", ["a cello", "in the attic"]) == [0.0, 1.0]
    assert asked == [2, 2]
    (spent,) = meter.spent
    assert spent.requests == 2
    assert spent.output_tokens > 0


def test_a_setting_names_the_reranker() -> None:
    """A cross-encoder by name, anything else as Pydantic AI names models."""
    assert isinstance(make_reranker("fastembed:some/cross-encoder"), CrossEncoderReranker)
    with pytest.raises(InvalidSettings):
        make_reranker("rules")


@pytest.mark.parametrize(
    ("name", "error"),
    [("Xenova/ms-marco-MiniLM-L-6-v2", ModelUnavailable), ("no/such", InvalidSettings)],
)
async def test_a_cross_encoder_without_a_network_is_no_unknown_one(
    monkeypatch: pytest.MonkeyPatch, name: str, error: type[EngramError]
) -> None:
    """What cannot be downloaded now is worth another try."""
    module = offline_fastembed("TextCrossEncoder")
    monkeypatch.setitem(sys.modules, "fastembed.rerank.cross_encoder", module)
    with pytest.raises(error, match=name):
        await CrossEncoderReranker(name).rerank("Where is it?", ["a cello", "in the attic"])


async def test_a_slow_cross_encoder_answers_only_questions_that_somebody_waits_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where more is asked than it can answer, it does not fall behind further and further."""
    begun, go_on = threading.Event(), threading.Event()
    answered: list[str] = []

    class Slow:
        def __init__(self, name: str) -> None:
            self.name = name

        @classmethod
        def list_supported_models(cls) -> list[dict[str, str]]:
            return [{"model": "slow"}]

        def rerank(self, query: str, texts: list[str]) -> list[float]:
            begun.set()
            assert go_on.wait(30)
            answered.append(query)
            return [0.0] * len(texts)

    module = ModuleType("fastembed")
    monkeypatch.setattr(module, "TextCrossEncoder", Slow, raising=False)
    monkeypatch.setitem(sys.modules, "fastembed.rerank.cross_encoder", module)
    reranker = CrossEncoderReranker("slow")
    first, left, last = (
        asyncio.create_task(reranker.rerank(query, ["a cello"]))
        for query in ("first", "left alone", "last")
    )
    await asyncio.to_thread(begun.wait, 30)
    left.cancel()
    await asyncio.gather(left, return_exceptions=True)
    go_on.set()
    assert list(await first) == list(await last) == [0.0]
    assert answered == ["first", "last"]
