"""What agents are asked, and the structured outputs that they answer with."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from datetime import date, datetime, time
from typing import Annotated, Any, ClassVar, Final, Literal, Self, TypeAlias

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    TypeAdapter,
    ValidationError,
    model_validator,
)
from pydantic.json_schema import SkipJsonSchema
from pydantic_core import ErrorDetails

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


# What is put in a place of its own, and what becomes of it there. An answer of thirty statements
# is not asked for again, and paid again, because one of them has a tag too many.

# Stands for nothing, as models write it where null is meant.
_NOTHING: Final = frozenset({"", "null", "none", "n/a", "na", "nil", "unknown", "unspecified"})
_ALIAS: Final = re.compile(r"\W{0,9}e?0{0,9}(?P<number>[1-9]\d{0,9})\W{0,9}", re.IGNORECASE)
_YEAR_OR_MONTH: Final = re.compile(r"(?P<year>\d{4})(?:-(?P<month>0[1-9]|1[0-2]))?")
_DAY: Final = re.compile(r"\d{4}-\d{2}-\d{2}(?!\d)")
# What is too long is cut first; only then its parts are looked at.
_MOST_MENDINGS: Final = 2
# How sure an answer is that does not say so in a number from 0 to 1.
_UNTOLD_CONFIDENCE: Final = 0.5


def _alias(said: object) -> object:
    """The alias that is meant by "E1", "[e1]" or "1": e1."""
    found = _ALIAS.fullmatch(str(said)) if isinstance(said, str | int) else None
    return f"e{found['number']}" if found else said


def _aliases(said: object) -> object:
    """Aliases, where one text holds several."""
    parts = said if isinstance(said, list) else [said]
    split = [p for part in parts for p in (part.split(",") if isinstance(part, str) else [part])]
    return [_alias(part) for part in split]


def _relation(said: object) -> object:
    """A predicate, or None where the word says that there is none."""
    nothing = isinstance(said, str) and said.strip().casefold() in _NOTHING
    return None if nothing else said


def _moment(said: object) -> object:
    """A moment; None where it is no date, or no more than a number.

    A year and a month stand for their first day, as where rules read them. Left to itself,
    "2019" is so many seconds after 1970.
    """
    if not isinstance(said, str):
        return said if isinstance(said, datetime) else None
    words = said.strip()
    named = _YEAR_OR_MONTH.fullmatch(words)
    try:
        if named is not None:
            first = date(int(named["year"]), int(named["month"] or 1), 1)
            return datetime.combine(first, time())
        return _MOMENTS.validate_python(words) if _DAY.match(words) else None
    except ValueError:
        return None


def _in_lower_case(said: object) -> object:
    return said.strip().casefold() if type(said) is str else said


_MOMENTS: Final = TypeAdapter(datetime)


class _AnswerPart(BaseModel):
    model_config = ConfigDict(frozen=True, coerce_numbers_to_str=True)

    # What to go by where a field that must be there cannot be read.
    _untold: ClassVar[Mapping[str, object]] = {}
    # Without these there is no answer, whatever is beside them.
    _core: ClassVar[frozenset[str]] = frozenset()
    # What is told of whom, and whether it holds: a default would say it of somebody else.
    _telling: ClassVar[frozenset[str]] = frozenset()

    @model_validator(mode="wrap")
    @classmethod
    def _read_loosely(cls, said: Any, read: ModelWrapValidatorHandler[Self]) -> Self:
        for _ in range(_MOST_MENDINGS):
            try:
                return read(said)
            except ValidationError as error:
                if not isinstance(said, dict) or not cls._core <= said.keys():
                    raise
                said = cls._mended(said, error.errors(include_url=False))
        return read(said)

    @classmethod
    def _mended(cls, said: Mapping[str, Any], faults: Iterable[ErrorDetails]) -> dict[str, Any]:
        """What was said, in the form that was asked for as far as it can be put into it."""
        mended, wrong = dict(said), dict[str, dict[int, str]]()
        for fault in faults:
            name, *inside = fault["loc"] or ("",)
            if not isinstance(name, str) or name not in cls.model_fields:
                continue
            if not inside:
                cls._mend(mended, name, fault)
            elif isinstance(inside[0], int):
                where = ".".join(map(str, (name, inside[0] + 1, *inside[1:])))
                wrong.setdefault(name, {})[inside[0]] = f"{where}: {fault['msg']}"
        for name, parts in wrong.items():
            kept = [one for number, one in enumerate(mended[name]) if number not in parts]
            if kept or name not in cls._core:
                mended[name] = kept
                mended["malformed"] = [*mended.get("malformed", ()), *parts.values()]
        return mended

    @classmethod
    def _mend(cls, mended: dict[str, Any], name: str, fault: ErrorDetails) -> None:
        """Put one field right, cut it, or leave it to its default; else it stays as it is."""
        kind, said = fault["type"], mended.get(name)
        if kind == "too_long" or (kind == "string_too_long" and name in cls._untold):
            mended[name] = mended[name][: fault["ctx"]["max_length"]]
        elif kind == "list_type" and isinstance(said, str):
            mended[name] = _as_list(said)
        elif name in cls._untold:
            mended[name] = cls._untold[name]
        elif not cls.model_fields[name].is_required() and not (said and name in cls._telling):
            mended.pop(name)


def _as_list(said: str) -> list[Any]:
    """The list that a text holds as JSON; else the text, as the only one."""
    try:
        held = json.loads(said)
    except ValueError:
        held = None
    return held if isinstance(held, list) else [said]


class StatedKnowledge(_AnswerPart):
    """One thing that the turns state about a person or thing."""

    _untold = {"confidence": _UNTOLD_CONFIDENCE}
    _telling = frozenset({"subject", "object", "holds"})

    sources: Annotated[list[str], BeforeValidator(_aliases)] = Field(
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
    category: Annotated[Category, BeforeValidator(_in_lower_case)] = Category.FACT
    subject: str | None = Field(
        default=None,
        max_length=MAX_NAME_CHARACTERS,
        description='"user", or the name of whom it is about.',
    )
    predicate: Annotated[str | None, BeforeValidator(_relation)] = Field(
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
    alongside: bool = Field(
        default=False,
        description="True if the turns say that it holds beside what held before: a second job.",
    )
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
    happened_at: Annotated[datetime | None, BeforeValidator(_moment)] = Field(
        default=None, description="When it happened or began, if said; ISO 8601 with offset."
    )
    confidence: float = Field(ge=0, le=1, description="How plainly the turns state it.")
    importance: float = Field(default=0.5, ge=0, le=1)

    @classmethod
    def _mended(cls, said: Mapping[str, Any], faults: Iterable[ErrorDetails]) -> dict[str, Any]:
        mended = super()._mended(said, faults)
        unknown = said.get("category")
        if "category" not in mended and isinstance(unknown, str):
            # One that the namespace asked for is looked for among the tags.
            tags = mended.get("tags")
            mended["tags"] = [unknown, *(tags if isinstance(tags, list) else ())]
        return mended


class ExtractionAnswer(_AnswerPart):
    """What the turns state, and how that was read."""

    _untold = {"reasoning": ""}
    _core = frozenset({"statements"})

    reasoning: str = Field(max_length=2000)
    # Not left to a default: who names its list otherwise has not said that there is nothing.
    statements: list[StatedKnowledge] = Field(max_length=MAX_STATEMENTS)
    # Those that were left out because nothing could be made of them, and what was wrong.
    malformed: SkipJsonSchema[tuple[str, ...]] = ()


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

    _untold = {"confidence": _UNTOLD_CONFIDENCE, "why": ""}

    source: str = Field(max_length=MAX_STATEMENT_CHARACTERS, description="Alias, like m1.")
    target: str = Field(max_length=MAX_STATEMENT_CHARACTERS, description="Alias, like m2.")
    kind: ProposedKind = LinkKind.RELATED
    confidence: float = Field(ge=0, le=1)
    why: str = Field(max_length=_REASON)


class Decision(_AnswerPart):
    """What a newer memory means for an older one."""

    # Who cannot say how sure it is ends nothing.
    _untold = {"confidence": 0.0, "why": ""}

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

    _untold = {"reasoning": "", "confidence": _UNTOLD_CONFIDENCE}

    reasoning: str = Field(max_length=2000)
    links: list[LinkProposal] = Field(default_factory=list, max_length=MAX_PROPOSED_LINKS)
    # Links and decisions that were left out because nothing could be made of them.
    malformed: SkipJsonSchema[tuple[str, ...]] = ()
    pruned: list[str] = Field(
        default_factory=list,
        max_length=MAX_PROPOSED_LINKS,
        description="Aliases of memories, like m3.",
    )
    decisions: list[Decision] = Field(default_factory=list, max_length=MAX_DECISIONS)
    confidence: float = Field(ge=0, le=1)
