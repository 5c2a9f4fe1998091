"""A model that judges pairs of memories, for tests of what its judgements may do."""

from __future__ import annotations

from collections.abc import Callable

from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, UserPromptPart
from pydantic_ai.messages import ToolCallPart as Call
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.settings import ModelSettings
from pydantic_ai.usage import RequestUsage

from engram.agents.requests import Decision, LinkingAnswer, LinkingRequest, MemoryView, read_prompt
from engram.consolidation.decisions import Relation
from tests.support.rules_model import RulesModel

Judges = Callable[[tuple[MemoryView, ...]], list[Decision]]


class Deciding(RulesModel):
    """The rules for turns; for links, only these decisions.

    Args:
        judges: What it decides about the memories it is shown.
    """

    def __init__(self, judges: Judges) -> None:
        super().__init__()
        self._judges = judges

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        """See the base class."""
        (prompt,) = [
            part.content
            for message in messages[:1]
            if isinstance(message, ModelRequest)
            for part in message.parts
            if isinstance(part, UserPromptPart) and isinstance(part.content, str)
        ]
        request = read_prompt(prompt)
        if not isinstance(request, LinkingRequest):
            return await super().request(messages, model_settings, model_request_parameters)
        answer = LinkingAnswer(
            reasoning="as told", decisions=self._judges(request.memories), confidence=1.0
        )
        call = Call(model_request_parameters.output_tools[0].name, answer.model_dump(mode="json"))
        return ModelResponse(parts=[call], model_name="deciding", usage=RequestUsage())


def _decision(newer: MemoryView, older: MemoryView) -> Decision:
    return Decision(
        newer=newer.alias, older=older.alias, relation=Relation.UPDATES, confidence=1.0, why="told"
    )


def newest_replaces_all(memories: tuple[MemoryView, ...]) -> list[Decision]:
    """An answer that somebody talked the model into."""
    newest = max(memories, key=lambda memory: (memory.known_at, memory.alias))
    return [_decision(newest, older) for older in memories if older.alias != newest.alias]


def using_replaces_having(memories: tuple[MemoryView, ...]) -> list[Decision]:
    """One pair that slots leave apart: what is used replaces what was had."""
    having = [m for m in memories if m.slot and m.slot.predicate == "has"]
    using = [m for m in memories if m.slot and m.slot.predicate == "uses"]
    return [_decision(u, h) for u in using[:1] for h in having[:1] if u.known_at >= h.known_at]
