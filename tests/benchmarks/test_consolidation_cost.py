"""What consolidation asks of a model depends on what is new, not on what is known."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest
from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.settings import ModelSettings

from engram.domain.confidence import Confidence, ExtractionMethod
from engram.domain.identity import content_hash, derived_id
from engram.domain.memories import MemoryType, SemanticMemory, Telling
from engram.domain.scope import Scope
from engram.domain.slots import slot_of
from engram.embedding.choice import make_embedder
from engram.ports import MemoryRepository, NewMemory
from tests.support.in_process_memory import InProcessMemory, when
from tests.support.rules_model import RulesModel
from tests.support.scripted_model import user_prompt

SIZES = (100, 1_000, 10_000)
EPISODES = 40
START = datetime(2020, 1, 1, tzinfo=UTC)
TOOLS = ("Trello", "Linear", "Notion", "Vim", "Figma", "Slack", "Zotero", "Blender")
PLACES = ("Lisbon", "Oslo", "Quito", "Ghent", "Perth", "Turin", "Split", "Kyoto")


@dataclass
class Counting(RulesModel):
    """The rules, noting what they are asked."""

    prompts: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        """See the base class."""
        self.prompts.append(user_prompt(messages))
        return await super().request(messages, model_settings, model_request_parameters)


def _known(scope: Scope, size: int) -> Iterator[SemanticMemory]:
    """Things known long since: like what will be said, and about the same person."""
    for number in range(size):
        tool, place = TOOLS[number % 8], PLACES[number // 8 % 8]
        thing = f"{tool} {number}"
        content = f"The user uses {thing} for the work in {place}."
        at = START + timedelta(hours=number)
        identity = content_hash(content)
        source = derived_id(scope, MemoryType.EPISODIC, identity, 0)
        yield SemanticMemory(
            id=derived_id(scope, MemoryType.SEMANTIC, identity, 0),
            namespace=scope.namespace,
            user_id=scope.user_id,
            content=content,
            known_at=at,
            created_at=at,
            event_at=at,
            derived_at=at,
            source_episode_ids=(source,),
            identity=identity,
            slot=slot_of("user", "uses", thing),
            tellings=(Telling(event_at=at, known_at=at, episode_ids=(source,)),),
            entities=(tool, place),
            confidence=Confidence(
                method=ExtractionMethod.EXTRACTED, extraction=0.9, last_confirmed=at
            ),
        )


async def _fill(repository: MemoryRepository, scope: Scope, size: int) -> None:
    embedder = make_embedder("wordllama")
    memories = list(_known(scope, size))
    for start in range(0, size, 1000):
        part = memories[start : start + 1000]
        vectors = await embedder.embed_documents([m.indexed_text for m in part])
        pairs = zip(part, vectors, strict=True)
        await repository.insert(scope, [NewMemory(m, v) for m, v in pairs])


@pytest.mark.slow
@pytest.mark.benchmark
async def test_models_are_asked_as_much_whatever_is_known(repository: MemoryRepository) -> None:
    """The same turns after 100, 1,000 and 10,000 memories: as many calls, of the same size."""
    said = [
        f"I use {TOOLS[n % 8]} for the work in {PLACES[n // 8]}. I like tea number {n}."
        for n in range(EPISODES)
    ]
    asked: dict[int, list[int]] = {}
    for size in SIZES:
        model, scope = Counting(), Scope.of("default", f"user-{size}")
        await _fill(repository, scope, size)
        memory = InProcessMemory(repository, model)
        await memory.hear(scope, said, 0)
        await memory.consolidate(scope, when(EPISODES))
        asked[size] = [len(prompt.encode()) for prompt in model.prompts]
    for size, prompts in asked.items():
        print(f"{size:>6} known: {len(prompts)} calls, {sum(prompts):>7} bytes, {prompts}")  # noqa: T201 - the figures are what is measured
    few = asked[SIZES[0]]
    for prompts in asked.values():
        assert len(prompts) == len(few)
        assert sum(prompts) <= 1.2 * sum(few)


@pytest.mark.slow
@pytest.mark.benchmark
async def test_models_are_asked_in_proportion_to_what_is_said(
    repository: MemoryRepository,
) -> None:
    """Twice, and four times, the turns: twice, and four times, the extractions."""
    calls: dict[int, int] = {}
    for count in (20, 40, 80):
        model, scope = Counting(), Scope.of("default", f"talker-{count}")
        memory = InProcessMemory(repository, model)
        await memory.hear(scope, [f"I use Tool{n}." for n in range(count)], 0)
        await memory.consolidate(scope, when(count))
        calls[count] = sum('"task":"extract"' in prompt for prompt in model.prompts)
    assert calls[40] == 2 * calls[20]
    assert calls[80] == 4 * calls[20]
