"""Who is asked what turns state and what links memories: the language rules, or a model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Generic, Protocol, TypeAlias, TypeVar

import structlog

from engram.contracts.consolidation import ModelUse
from engram.domain.learning import LearningRules
from engram.settings import RULES

if TYPE_CHECKING:
    from pydantic_ai.models import Model

    from engram.agents.requests import ExtractionRequest, LinkingRequest
    from engram.aside import ProcessAside

DepsT = TypeVar("DepsT")
OutputT = TypeVar("OutputT")
ShownT_contra = TypeVar("ShownT_contra", contravariant=True)
AnswerT_co = TypeVar("AnswerT_co", covariant=True)
_log = structlog.get_logger("engram.agents")


class Rules:
    """The language rules in place of a model: offline, and to the same request the same answer.

    They are asked themselves, without an agent around them, and need none of Pydantic AI.
    """

    model_id: ClassVar[str] = f"engram:{RULES}"


Thinker: TypeAlias = "Rules | Model"
"""What is asked: the language rules, or any model of Pydantic AI."""


def thinker(spec: str | Model) -> Thinker:
    """What a setting, or a model, stands for.

    Args:
        spec: ``rules``, any Pydantic AI model string such as ``openai:gpt-5-mini``, or a model.

    Raises:
        ModelRejected: no such model, its package is missing, or its key is not set.
    """
    if spec == RULES:
        return Rules()
    if not isinstance(spec, str):
        return spec
    from engram.agents.models import make_model  # noqa: PLC0415 - only what is used loads

    return make_model(spec)


def followed(asked: Thinker, learning: Mapping[str, LearningRules]) -> Mapping[str, LearningRules]:
    """What can be followed of what namespaces ask for: all of it, or by rules nothing.

    It is told to the log once for each namespace. What was not followed is in no provenance.
    """
    asking = {namespace: wanted for namespace, wanted in learning.items() if wanted.parts}
    by_rules = isinstance(asked, Rules)
    for namespace, wanted in asking.items():
        told = _log.bind(namespace=namespace, version=wanted.version, parts=wanted.parts)
        if by_rules:
            told.warning("the language rules cannot follow what the namespace asks to learn")
        else:
            told.info("learning is shaped")
    return {} if by_rules else asking


@dataclass(frozen=True, slots=True)
class Task(Generic[DepsT, OutputT]):
    """What a model is asked for again and again.

    Attributes:
        name: For traces.
        instructions: What it is to do.
        deps: What ``fault`` is given beside an answer.
        output: What it answers with.
        fault: What of an answer is to be mended, in words for the model, or None. What it did not
            mend when it was asked often enough is taken as it is.
    """

    name: str
    instructions: str
    deps: type[DepsT]
    output: type[OutputT]
    fault: Callable[[DepsT, OutputT], str | None]


class Answering(Protocol[ShownT_contra, AnswerT_co]):
    """Answers requests of one kind."""

    async def answer(
        self,
        request: ExtractionRequest | LinkingRequest,
        shown: ShownT_contra,
        *,
        version: str,
        instructions: str | None = None,
    ) -> tuple[AnswerT_co, ModelUse]:
        """What is answered, and what it came from and cost.

        Args:
            request: Is asked.
            shown: What an answer is checked against.
            version: Of the instructions, all of them.
            instructions: Beside those of the task.

        Raises:
            ModelRejected: it is refused, and would be again.
            ModelUnavailable: there is no answer now.
            ModelAnswerUnusable: there was none in the asked form.
        """
        ...


def answering(
    asked: Thinker, task: Task[DepsT, OutputT], aside: ProcessAside | None = None
) -> Answering[DepsT, OutputT]:
    """Who answers a task: the rules themselves, or an agent over a model.

    Args:
        asked: Whose answers they are.
        task: What a model is told; the rules know what they are asked for.
        aside: Where rules read what is too long to be read here.
    """
    if isinstance(asked, Rules):
        from engram.agents.rules import AnsweringRules  # noqa: PLC0415 - as in thinker()

        return AnsweringRules(aside)
    from engram.agents.models import AnsweringModel  # noqa: PLC0415 - same

    return AnsweringModel(asked, task)
