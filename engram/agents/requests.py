"""What agents are asked, and the structured outputs that they answer with."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from engram.consolidation.decisions import Relation
from engram.domain.learning import LearningRules
from engram.domain.memories import Category, LinkKind, MemoryKind, Resolution, Slot
from engram.domain.plan import MAX_QUOTES, MAX_STATEMENT_CHARACTERS, MAX_STATEMENT_TAGS
from engram.domain.turns import MAX_NAME_CHARACTERS

# --- what an agent is asked: typed, and handed over as one JSON document
#
# A turn is a value inside that document, so that no turn can pose as another
# turn, as an instruction, or as the end of the conversation.


class _RequestPart(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class TurnView(_RequestPart):
    """An episode as a model sees it: ``alias`` (e1, e2, ...) stands for its id."""

    alias: str
    role: str
    speaker: str | None
    said_at: datetime
    content: str


class MemoryView(_RequestPart):
    """A memory as a model sees it: ``alias`` (m1, m2, ...) stands for its id.

    Attributes:
        kind: Whether later knowledge may replace it (a note) or it happened (an episode).
        event_at: When it happened or began to hold.
        known_at: When it was first said.
        fresh: Whether it was stored since the last linking pass.
    """

    alias: str
    content: str
    category: Category
    kind: MemoryKind = MemoryKind.NOTE
    slot: Slot | None
    entities: tuple[str, ...]
    event_at: datetime
    known_at: datetime
    fresh: bool


class PromiseView(_RequestPart):
    """A promise that is still open.

    Attributes:
        subject: Who made it: "user", or a name.
        object: What was promised: "send Mira the slides".
        said_at: When.
    """

    subject: str
    object: str
    said_at: datetime


class ExtractionRequest(_RequestPart):
    """Find what these turns state.

    Attributes:
        before: The turns that were said just before, in order: what these refer to, and take
            back. They are read already, and no statement rests on them.
        guidance: What became of earlier statements, and what to be careful with.
        learning: What the namespace asks for.
        promised: What was promised in other conversations before, and is still open.
    """

    task: Literal["extract"] = "extract"
    turns: tuple[TurnView, ...]
    guidance: tuple[str, ...] = ()
    before: tuple[TurnView, ...] = ()
    learning: LearningRules | None = None
    promised: tuple[PromiseView, ...] = ()


class LinkingRequest(_RequestPart):
    """Find what links these memories, and which are not worth keeping.

    Attributes:
        learning: What the namespace asks for.
    """

    task: Literal["link"] = "link"
    memories: tuple[MemoryView, ...]
    learning: LearningRules | None = None


AgentRequest: TypeAlias = Annotated[ExtractionRequest | LinkingRequest, Field(discriminator="task")]
REQUESTS: TypeAdapter[ExtractionRequest | LinkingRequest] = TypeAdapter(AgentRequest)


def as_prompt(request: ExtractionRequest | LinkingRequest) -> str:
    """The user prompt: the request as one JSON document.

    A namespace that asks for nothing of its own gets the prompt that it had before any could, and
    so does who has promised nothing.
    """
    unused = {"learning"} if request.learning is None else set[str]()
    if isinstance(request, ExtractionRequest) and not request.promised:
        unused.add("promised")
    return request.model_dump_json(exclude=unused)


def read_prompt(prompt: str) -> ExtractionRequest | LinkingRequest:
    """The request in a user prompt.

    Raises:
        pydantic.ValidationError: it is not one document of a request type.
    """
    return REQUESTS.validate_json(prompt)


# --- what an agent answers: the structured outputs that models are held to

# Bounds of one answer. With them a plan stays far below Temporal's payload limit.
# An answer that is full says that more may be stated: the turns are then read in halves.
MAX_STATEMENTS = 120
MAX_PROPOSED_LINKS = 200
MAX_DECISIONS = 60
_REASON = 300


class _AnswerPart(BaseModel):
    model_config = ConfigDict(frozen=True)


class StatedKnowledge(_AnswerPart):
    """One thing that the turns state about a person or thing."""

    sources: list[str] = Field(
        min_length=1, max_length=20, description="Aliases of the turns that state it, like e1."
    )
    content: str = Field(
        min_length=1,
        max_length=MAX_STATEMENT_CHARACTERS,
        description="A self-contained sentence in the third person.",
    )
    quotes: list[str] = Field(
        default_factory=list,
        max_length=MAX_QUOTES,
        description="The words of those turns that state it, letter by letter, and no more.",
    )
    tags: list[str] = Field(
        default_factory=list,
        max_length=MAX_STATEMENT_TAGS,
        description="Up to five topics, one word each.",
    )
    category: Category = Category.FACT
    subject: str | None = Field(
        default=None,
        max_length=MAX_NAME_CHARACTERS,
        description='"user", or the name of whom it is about.',
    )
    predicate: str | None = Field(
        default=None,
        max_length=MAX_NAME_CHARACTERS,
        description="The relation, in few words: lives in, uses.",
    )
    object: str | None = Field(
        default=None,
        max_length=MAX_NAME_CHARACTERS,
        description="What the relation holds, without articles.",
    )
    holds: bool = Field(
        default=True, description="False if the turns say that this is no longer, or not, so."
    )
    begins: bool = Field(default=False, description="True if the turns say that it began then.")
    ended: Resolution | None = Field(
        default=None,
        description="For a promise that no longer holds: whether it was kept (fulfilled) "
        "or came to nothing (expired).",
    )
    entities: list[str] = Field(
        default_factory=list,
        max_length=20,
        description="Names of people, places, organisations and products in it.",
    )
    happened_at: datetime | None = Field(
        default=None, description="When it happened or began, if said; ISO 8601 with offset."
    )
    confidence: float = Field(ge=0, le=1, description="How plainly the turns state it.")
    importance: float = Field(default=0.5, ge=0, le=1)


class ExtractionAnswer(_AnswerPart):
    """What the turns state, and how that was read."""

    reasoning: str = Field(max_length=2000)
    statements: list[StatedKnowledge] = Field(default_factory=list, max_length=MAX_STATEMENTS)


# What a model may find; the other kinds tell how a memory came about, or was used.
ProposedKind = Literal[
    LinkKind.RELATED,
    LinkKind.ENTITY,
    LinkKind.TIME,
    LinkKind.CAUSAL,
    LinkKind.REINFORCES,
    LinkKind.BELONGS_TO,
]


class LinkProposal(_AnswerPart):
    """Two memories that belong together."""

    source: str = Field(max_length=MAX_STATEMENT_CHARACTERS, description="Alias, like m1.")
    target: str = Field(max_length=MAX_STATEMENT_CHARACTERS, description="Alias, like m2.")
    kind: ProposedKind = LinkKind.RELATED
    confidence: float = Field(ge=0, le=1)
    why: str = Field(max_length=_REASON)


class Decision(_AnswerPart):
    """What a newer memory means for an older one."""

    newer: str = Field(max_length=MAX_STATEMENT_CHARACTERS, description="Alias, like m1.")
    older: str = Field(max_length=MAX_STATEMENT_CHARACTERS, description="Alias, like m2.")
    relation: Relation = Field(
        description="same: both say the same. updates: the newer replaces the older. "
        "contradicts: both cannot be true. fulfils: the newer keeps the older one's promise."
    )
    confidence: float = Field(ge=0, le=1)
    why: str = Field(max_length=_REASON)


class LinkingAnswer(_AnswerPart):
    """The links that were found, and the memories that are not worth keeping."""

    reasoning: str = Field(max_length=2000)
    links: list[LinkProposal] = Field(default_factory=list, max_length=MAX_PROPOSED_LINKS)
    pruned: list[str] = Field(
        default_factory=list,
        max_length=MAX_PROPOSED_LINKS,
        description="Aliases of memories, like m3.",
    )
    decisions: list[Decision] = Field(default_factory=list, max_length=MAX_DECISIONS)
    confidence: float = Field(ge=0, le=1)
