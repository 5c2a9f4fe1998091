"""A recall request, and which memories count for it: as a rule and as store conditions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import Annotated, Any, Final, Self, TypedDict

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    WithJsonSchema,
)

from engram.domain.memories import (
    ANSWERING_FORMS,
    LONGEST_PLAIN,
    MOST_DIGITS,
    STORED_TYPES,
    DerivedMemory,
    Episode,
    LifecycleState,
    Memory,
    MemoryForm,
    MemoryStatus,
    MemoryType,
    NegationFact,
    Plain,
    SemanticMemory,
    plain_pairs,
    plain_part,
)
from engram.domain.sanitize import is_visible
from engram.domain.scope import check_identifier
from engram.domain.slots import ends_something
from engram.domain.turns import MAX_NAME_CHARACTERS, MAX_TAGS, ROLES
from engram.domain.values import unknown_zone, zone_named
from engram.errors import EngramError, InvalidInput, InvalidQuery
from engram.language.before import denies_the_past, is_over_by_now
from engram.ports import After, AnyOf, Between, Condition, Either, Equals, Filter, Not
from engram.settings import Settings

# --- which memories count as an answer: by status, by what was known when, by what was true when
#
# The same rule as conditions for a store is in ``engram.recall.request``; a
# property test holds the two together.


@dataclass(frozen=True, slots=True)
class Visibility:
    """From when, and of when, one looks at memory.

    Attributes:
        now: The present. Without ``as_of``, what counts is what is active now.
        as_of: Only what was known then, and had not been replaced then; whatever
            became of it later.
        valid_at: Only what was true then, of what is known (``as_of`` or now).
            This brings back replaced memories for the time they were true. It
            excludes no episode: what was said was said.
        include_archived: Archived memories count too.
        include_test: Test memories count too.
        include_stale: Memories count that have not been used for long; with ``as_of`` always.
        include_expired: Expired memories count too, but for those past a date of their own.
    """

    now: datetime
    as_of: datetime | None = None
    valid_at: datetime | None = None
    include_archived: bool = False
    include_test: bool = False
    include_stale: bool = True
    include_expired: bool = False

    @property
    def moment(self) -> datetime:
        """The moment one looks from."""
        return self.as_of or self.now

    @property
    def counts_stale(self) -> bool:
        """Whether stale memories count: of the past it is not known which ones were."""
        return self.include_stale or self.as_of is not None

    def recalled(self, memory: Memory) -> datetime | None:
        """When ``memory`` was last recalled, as far as that was known then."""
        at = memory.last_accessed_at
        return at if at is not None and at <= self.moment else None

    def counts(self, memory: Memory) -> bool:
        """Whether ``memory`` counts."""
        return (
            (self.include_test or not memory.is_test)
            and (self.counts_stale or memory.lifecycle is not LifecycleState.STALE)
            and (memory.expires_at is None or memory.expires_at > self.moment)
            and (self._stands(memory) if self.as_of is None else self._stood(memory, self.as_of))
            and (self.valid_at is None or self._true(memory, self.valid_at))
        )

    @property
    def standing(self) -> tuple[MemoryStatus, ...]:
        """The statuses that count now."""
        archived = (MemoryStatus.ARCHIVED,) if self.include_archived else ()
        expired = (MemoryStatus.EXPIRED,) if self.include_expired else ()
        replaced = (MemoryStatus.SUPERSEDED,) if self.valid_at is not None else ()
        return (MemoryStatus.ACTIVE, *archived, *expired, *replaced)

    def _stands(self, memory: Memory) -> bool:
        if memory.status is MemoryStatus.ACTIVE:
            return True
        if memory.status is MemoryStatus.SUPERSEDED:
            return self.was_true(memory)
        return memory.status in self.standing

    def _stood(self, memory: Memory, then: datetime) -> bool:
        if memory.known_at > then:
            return False
        replaced = memory.superseded_known_at
        return replaced is None or replaced > then or self.was_true(memory)

    def was_true(self, memory: Memory) -> bool:
        """Whether a replaced memory counts for the time before its end."""
        return (
            self.valid_at is not None
            and isinstance(memory, DerivedMemory)
            and memory.valid_to is not None
            and memory.valid_to > self.valid_at
        )

    def _true(self, memory: Memory, when: datetime) -> bool:
        if not isinstance(memory, DerivedMemory):
            return True
        begins = _begins(memory)
        if begins is not None and begins > when:
            return False
        return memory.valid_to is None or memory.valid_to > when or self._end_unknown(memory)

    def _end_unknown(self, memory: DerivedMemory) -> bool:
        """Whether its end was only learnt after ``as_of``, with what replaced it."""
        replaced = memory.superseded_known_at
        return self.as_of is not None and replaced is not None and replaced > self.as_of


def _begins(memory: DerivedMemory) -> datetime | None:
    """From when it is true: that something is not so any more says nothing of the time before."""
    if isinstance(memory, NegationFact) and not denies_the_past(memory.content):
        return memory.known_at
    slot = memory.slot if isinstance(memory, SemanticMemory) else None
    ends = ends_something(slot) if slot is not None else is_over_by_now(memory.content)
    return memory.event_at if ends else memory.valid_from


# --- what recall is asked, checked before anything is searched


# Of types, forms or roles; there are fewer of each, and none counts twice.
_MOST_NAMED = 32
_MOST_PAIRS = 16


def _out_of_range(what: str) -> InvalidQuery:
    return InvalidQuery(f"{what} is out of range.", allowed="a number from 0 to 1; or leave it out")


def _no_moment(what: str) -> InvalidQuery:
    return InvalidQuery(
        f"{what} is not a moment in time.",
        allowed="a moment with its timezone, such as 2026-05-20T08:15:00+01:00",
    )


def _no_tags() -> InvalidQuery:
    return InvalidQuery(
        "The tags are not usable.", allowed="a list of non-empty tags; or leave it out"
    )


def _no_pairs() -> InvalidQuery:
    return InvalidQuery(
        "The metadata asked for is not usable.",
        allowed=f"1 to {_MOST_PAIRS} keys, each with a text of up to {LONGEST_PLAIN} characters, "
        "a number, a boolean or null",
    )


def _share(value: float | None, info: ValidationInfo) -> float | None:
    if value is not None and not 0.0 <= value <= 1.0:
        raise _out_of_range(str(info.field_name))
    return value


def _moment(value: datetime | None, info: ValidationInfo) -> datetime | None:
    if value is not None and value.utcoffset() is None:
        raise _no_moment(str(info.field_name))
    return value


def _session(value: str | None) -> str | None:
    return None if value is None else check_identifier(value, "session id")


def _tags(value: tuple[str, ...] | None) -> tuple[str, ...] | None:
    if value is None:
        return None
    if not value or not all(value):
        raise _no_tags()
    if len(value) > MAX_TAGS or any(len(tag) > MAX_NAME_CHARACTERS for tag in value):
        raise InvalidQuery(
            "There are too many tags, or one is too long.",
            allowed=f"up to {MAX_TAGS} tags of up to {MAX_NAME_CHARACTERS} characters",
        )
    return tuple(dict.fromkeys(value))


def _chosen(
    names: tuple[str, ...] | None, what: str, known: Iterable[str]
) -> tuple[str, ...] | None:
    """Those that are named, each once and in our order."""
    if names is None:
        return None
    members = tuple(str(one) for one in known)
    allowed = f"{', '.join(members)}; or leave it out"
    if len(names) > _MOST_NAMED:
        raise InvalidQuery("Too many names are given.", allowed=f"up to {_MOST_NAMED}")
    if not names:
        raise InvalidQuery(f"No {what} is asked for.", allowed=allowed)
    if not set(names) <= set(members):
        raise InvalidQuery(f"A {what} is unknown.", allowed=allowed)
    return tuple(one for one in members if one in names)


def _types(names: tuple[str, ...] | None) -> tuple[str, ...] | None:
    return _chosen(names, "memory type", STORED_TYPES)


def _forms(names: tuple[str, ...] | None) -> tuple[str, ...] | None:
    return _chosen(names, "form of memories", MemoryForm)


def _roles(names: tuple[str, ...] | None) -> tuple[str, ...] | None:
    return _chosen(names, "role", ROLES)


def _pairs(wanted: Mapping[str, Plain] | None) -> Mapping[str, Plain] | None:
    if wanted is not None and (not wanted or len(wanted) > _MOST_PAIRS or "" in wanted):
        raise InvalidQuery(
            "The metadata asked for is empty, or too much.", allowed=f"1 to {_MOST_PAIRS} keys"
        )
    if wanted is not None and len(plain_part(wanted)) < len(wanted):
        raise InvalidQuery(
            "Metadata is asked for by a key, text or number that is too long.",
            allowed=f"up to {LONGEST_PLAIN} characters, or {MOST_DIGITS:,} digits",
        )
    return wanted


def _zone(name: str | None) -> str | None:
    if name is not None:
        zone_named(name, InvalidQuery)
    return name


def _one_of(names: Iterable[str]) -> WithJsonSchema:
    """What a schema says of a name; that of another is refused in our words."""
    return WithJsonSchema({"type": "string", "enum": [str(name) for name in names]})


# On the fields themselves, so that they hold wherever the fields go. They see what has the
# right type; what has not is refused before.
Share = Annotated[float | None, AfterValidator(_share)]
Moment = Annotated[datetime | None, AfterValidator(_moment)]
Session = Annotated[str | None, AfterValidator(_session)]
Tags = Annotated[tuple[str, ...] | None, AfterValidator(_tags)]
TypeNames = Annotated[
    tuple[Annotated[str, _one_of(STORED_TYPES)], ...] | None, AfterValidator(_types)
]
FormNames = Annotated[
    tuple[Annotated[str, _one_of(MemoryForm)], ...] | None, AfterValidator(_forms)
]
RoleNames = Annotated[tuple[Annotated[str, _one_of(ROLES)], ...] | None, AfterValidator(_roles)]
Pairs = Annotated[Mapping[str, Plain] | None, AfterValidator(_pairs)]
ZoneName = Annotated[str | None, AfterValidator(_zone)]


class RecallFilters(TypedDict, total=False):
    """Further arguments of ``recall``, ``recall_at`` and ``context``, by name.

    Attributes:
        session_id: Only memories of this session.
        tags: Only memories that carry at least one of these.
        forms: Of semantic memories, only these: statement, artifact, summary, profile, topic,
            box, guideline; the first three if None.
        min_score: Leave out answers with a lower score, 0 to 1. Scores compare within one
            answer: the best of little that fits may have a high one.
        without_tags: Leave out memories that carry any of these.
        roles: Of turns, only those of these: user, assistant, system, tool; all if None.
        metadata: Only memories whose metadata has all of these, up to 16: keys at its top, with
            texts of up to 128 characters, numbers, booleans or null.
        include_stale: Bring also what was not used for long, and leaves soon; True if absent. Of
            the present only: with ``as_of`` it leaves nothing out.
        context: Circumstances, in words; habits bound to others come further behind.
        timezone: Where the user is, a name of the IANA database such as Asia/Tokyo: what day
            "yesterday" in the question is, and in which days ``context`` shows when something was
            said; UTC if None. It hides nothing, and no other argument is read by it.
    """

    session_id: str | None
    tags: Sequence[str] | None
    forms: Iterable[MemoryForm | str] | MemoryForm | str | None
    min_score: float | None
    without_tags: Sequence[str] | None
    roles: Iterable[str] | str | None
    metadata: Mapping[str, Plain] | None
    include_stale: bool
    context: str | None
    timezone: str | None


class RecallAtArguments(RecallFilters, total=False):
    """All arguments of ``recall`` but the question and ``as_of``, by name; those of ``recall_at``.

    Attributes:
        limit: How many answers at most.
        memory_types: episodic, factual, semantic, procedural, negation; all if None.
        min_confidence: Leave out conclusions below this effective confidence, 0 to 1.
        min_selectivity: Leave out semantic memories below this selectivity, 0 to 1.
        include_sources: Bring the turns that each answer was concluded from.
        follow_links: Bring also what the answers are linked to.
        valid_at: Answer with what was true then.
        include_archived: Bring archived memories too.
        include_test: Bring test memories too.
        explain: Explain every answer.
    """

    limit: int
    memory_types: Iterable[MemoryType | str] | MemoryType | str | None
    min_confidence: float | None
    min_selectivity: float | None
    include_sources: bool
    follow_links: bool
    valid_at: datetime | None
    include_archived: bool
    include_test: bool
    explain: bool


class RecallArguments(RecallAtArguments, total=False):
    """All arguments of ``recall`` but the question, by name; ``context`` takes them, too.

    Attributes:
        as_of: Answer from what was known then, by the conversation's own dates.
    """

    as_of: datetime | None


class RecallRequest(BaseModel):
    """A question, and what narrows or widens the answers to it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    query: str = Field(description="A question, or a few words about one thing.")
    limit: int = Field(default=10, description="How many answers at most.")
    memory_types: TypeNames = Field(
        default=None, description="Only memories of these types; all if left out."
    )
    min_confidence: Share = Field(
        default=None, description="Leave out conclusions below this effective confidence, 0 to 1."
    )
    min_selectivity: Share = Field(
        default=None,
        description="Leave out conclusions (semantic) below this selectivity, 0 to 1, which rises "
        "with each linking pass that finds them worth keeping.",
    )
    include_sources: bool = Field(
        default=False, description="Bring the turns that each answer was concluded from."
    )
    follow_links: bool = Field(
        default=False, description="Bring also what the answers are linked to, further behind."
    )
    as_of: Moment = Field(
        default=None,
        description="Answer from what was known then, by the conversation's own dates.",
    )
    valid_at: Moment = Field(
        default=None, description="Answer with what was true then, by all that is known."
    )
    include_archived: bool = Field(default=False, description="Bring archived memories too.")
    include_test: bool = Field(default=False, description="Bring test memories too.")
    session_id: Session = Field(default=None, description="Only memories of this session.")
    tags: Tags = Field(default=None, description="Only memories that carry at least one of these.")
    explain: bool = Field(
        default=False,
        description="Say of every answer why it was found, and what its score is made of.",
    )
    forms: FormNames = Field(
        default=None,
        description="Of conclusions (semantic), only those of these forms; statement, artifact and "
        "summary if left out.",
    )
    min_score: Share = Field(
        default=None,
        description="Leave out answers with a lower score, 0 to 1. Scores compare within one "
        "answer only.",
    )
    without_tags: Tags = Field(
        default=None, description="Leave out memories that carry any of these."
    )
    roles: RoleNames = Field(
        default=None,
        description="Of turns, only those said in one of these roles; all if left out.",
    )
    metadata: Pairs = Field(
        default=None,
        description="Only memories whose metadata has all of these: up to 16 keys at its top, with "
        "texts of up to 128 characters, numbers, booleans or null.",
    )
    include_stale: bool = Field(
        default=True,
        description="Bring also what was not used for long, and leaves soon. Of the present only: "
        "with as_of it leaves nothing out.",
    )
    context: str | None = Field(
        default=None,
        description="Present circumstances, in words; habits bound to others come further behind.",
    )
    timezone: ZoneName = Field(
        default=None,
        description="Where the user is, a name of the IANA database such as Asia/Tokyo: by it "
        '"yesterday" in the question is read; UTC if left out.',
    )

    @classmethod
    def of(
        cls,
        query: str,
        *,
        settings: Settings,
        memory_types: Iterable[MemoryType | str] | MemoryType | str | None = None,
        tags: Sequence[str] | None = None,
        without_tags: Sequence[str] | None = None,
        forms: Iterable[MemoryForm | str] | MemoryForm | str | None = None,
        roles: Iterable[str] | str | None = None,
        **options: Any,
    ) -> Self:
        """A request of a program, of whose values none is converted to another type.

        Args:
            query: The question.
            settings: The longest question, and the most answers.
            memory_types: One type or several; all if None.
            tags: Only memories that carry at least one of these.
            without_tags: Only memories that carry none of these.
            forms: The forms of semantic memories that answer; the usual ones if None.
            roles: Of turns, only those said in one of these roles.
            options: The other fields.

        Raises:
            InvalidQuery: naming the argument and what is allowed.
            InvalidScope: the session id has a form that is refused.
        """
        _check_text(query, settings.max_turn_bytes)
        _check_limit(options.get("limit", 1), settings.recall_max_limit)
        if options.get("context") is not None:
            _check_text(options["context"], settings.max_turn_bytes, "context")
        if options.get("session_id") is not None:
            check_identifier(options["session_id"], "session id")
        given = {
            **options,
            "query": query,
            "memory_types": names_of(memory_types),
            "tags": tags_of(tags),
            "without_tags": tags_of(without_tags),
            "forms": names_of(forms),
            "roles": names_of(roles),
        }
        try:
            return cls.model_validate(given, strict=True)
        except ValidationError as error:
            raise _refused(error, cls) from None  # its text would repeat what was given

    @property
    def types(self) -> tuple[MemoryType, ...]:
        """The types to search."""
        if self.memory_types is None:
            return STORED_TYPES
        return tuple(MemoryType(name) for name in self.memory_types)

    @property
    def answering_forms(self) -> tuple[MemoryForm, ...]:
        """The forms of semantic memories that answer."""
        if self.forms is None:
            return ANSWERING_FORMS
        return tuple(MemoryForm(name) for name in self.forms)

    @property
    def zone(self) -> tzinfo | None:
        """Where the user is, if it is known."""
        return None if self.timezone is None else zone_named(self.timezone, InvalidQuery)

    def asked_at(self, now: datetime) -> datetime:
        """The present where the user is, by which days in the question are read."""
        zone = self.zone
        return now if zone is None else now.astimezone(zone)

    def check_limits(self, settings: Settings) -> None:
        """Refuse a question that is longer, or asks for more, than settings allow.

        Raises:
            InvalidQuery: saying which of these, and what is allowed.
        """
        _check_text(self.query, settings.max_turn_bytes)
        if self.context is not None:
            _check_text(self.context, settings.max_turn_bytes, "context")
        _check_limit(self.limit, settings.recall_max_limit)

    def visibility(self, now: datetime) -> Visibility:
        """From when one looks, asking at ``now``."""
        return Visibility(
            now=now,
            as_of=self.as_of,
            valid_at=self.valid_at,
            include_archived=self.include_archived,
            include_test=self.include_test,
            include_stale=self.include_stale,
        )

    def admits(self, memory: Memory) -> bool:
        """:func:`asked_for` for a memory that no search has brought up."""
        metadata, least = self.metadata, self.min_selectivity
        return (
            (self.session_id is None or memory.session_id == self.session_id)
            and (not self.tags or not set(self.tags).isdisjoint(memory.tags))
            and (not self.without_tags or set(self.without_tags).isdisjoint(memory.tags))
            and (not metadata or {*plain_pairs(metadata)} <= {*plain_pairs(memory.metadata)})
            and (not self.roles or not isinstance(memory, Episode) or memory.role in self.roles)
            and (
                least is None
                or not isinstance(memory, SemanticMemory)
                or memory.selectivity >= least
            )
        )


def tags_of(given: Iterable[str] | None) -> tuple[str, ...] | None:
    """Tags, as they cross the wire; None for none given.

    Raises:
        InvalidQuery: it is no list, as one text is none: it would be taken for its letters.
    """
    if given is None:
        return None
    if isinstance(given, str | Mapping) or not isinstance(given, Iterable):
        raise _no_tags()
    return tuple(given)


def names_of(given: Iterable[str] | str | None) -> tuple[str, ...] | None:
    """One name or several, as they cross the wire; None for none given."""
    if given is None:
        return None
    return (str(given),) if isinstance(given, str) else tuple(str(name) for name in given)


_BY_FIELD: Final[Mapping[str, Callable[[str], InvalidInput]]] = {
    **dict.fromkeys(("min_confidence", "min_selectivity", "min_score"), _out_of_range),
    **dict.fromkeys(("as_of", "valid_at"), _no_moment),
    **dict.fromkeys(("tags", "without_tags"), lambda _: _no_tags()),
    "metadata": lambda _: _no_pairs(),
    "timezone": lambda _: unknown_zone(InvalidQuery),
}
_BY_TYPE: Final = {"bool_type": "true or false", "int_type": "a whole number"}


def _refused(error: ValidationError, request: type[RecallRequest]) -> EngramError:
    """What was wrong first, in our words."""
    first = error.errors(include_input=False, include_url=False)[0]
    raised = first.get("ctx", {}).get("error")
    if isinstance(raised, EngramError):
        return raised
    what = str(first["loc"][0])
    if what in _BY_FIELD:
        return _BY_FIELD[what](what)
    if first["type"] == "extra_forbidden":
        options = ", ".join(name for name in request.model_fields if name != "query")
        return InvalidQuery(f"{what} is no option.", allowed=options)
    return InvalidQuery(f"{what} is not usable.", allowed=_BY_TYPE.get(first["type"]))


def _check_text(text: object, max_bytes: int, what: str = "query") -> None:
    if not isinstance(text, str) or not is_visible(text):
        raise InvalidQuery(f"The {what} is empty.", allowed="text with a visible character")
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        raise InvalidQuery(
            f"The {what} holds a lone surrogate, so it is not valid Unicode.",
            allowed="text that can be encoded as UTF-8",
        ) from error
    if size > max_bytes:
        raise InvalidQuery(
            f"The {what} has {size} bytes.",
            allowed=f"up to {max_bytes} bytes of UTF-8",
            details={"size": size, "limit": max_bytes},
        )


def _check_limit(limit: object, most: int) -> None:
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= most:
        raise InvalidQuery(
            "The limit is out of range.",
            allowed=f"a whole number from 1 to {most}",
            hint="ENGRAM_RECALL_MAX_LIMIT sets the upper bound.",
        )


# --- what a request asks for, as conditions that the store checks


def where(request: RecallRequest, visibility: Visibility, memory_type: MemoryType) -> Filter:
    """All conditions of a request on one type."""
    forms: Sequence[Condition] = ()
    if memory_type is MemoryType.SEMANTIC and set(request.answering_forms) != set(MemoryForm):
        forms = narrowed(memory_type, forms=tuple(form.value for form in request.answering_forms))
    return (*visible(visibility, memory_type), *forms, *asked_for(request, memory_type))


def asked_for(request: RecallRequest, memory_type: MemoryType) -> Filter:
    """Those conditions that few memories may fulfil."""
    conditions = [
        *narrowed(
            memory_type,
            session_id=request.session_id,
            tags=request.tags,
            without_tags=request.without_tags,
            roles=request.roles,
        ),
        *(Equals("metadata_pairs", pair) for pair in plain_pairs(request.metadata or {})),
    ]
    if request.min_selectivity is not None and memory_type is MemoryType.SEMANTIC:
        conditions.append(Between("selectivity", at_least=request.min_selectivity))
    return tuple(conditions)


def narrowed(
    memory_type: MemoryType,
    *,
    session_id: str | None = None,
    tags: tuple[str, ...] | None = None,
    without_tags: tuple[str, ...] | None = None,
    roles: tuple[str, ...] | None = None,
    forms: tuple[str, ...] | None = None,
    run_id: str | None = None,
) -> list[Condition]:
    """What answers, listings and counts alike can be narrowed to; None leaves everything.

    A type that has no role, or no form, is not narrowed by it.
    """
    conditions: list[Condition] = []
    if session_id is not None:
        conditions.append(Equals("session_id", session_id))
    if tags:
        conditions.append(AnyOf("tags", tags))
    if without_tags:
        conditions.append(Not(AnyOf("tags", without_tags)))
    if roles and memory_type is MemoryType.EPISODIC:
        conditions.append(AnyOf("role", roles))
    if forms and memory_type is MemoryType.SEMANTIC:
        conditions.append(AnyOf("form", forms))
    if run_id is not None:
        conditions.append(Equals("run_id", run_id))
    return conditions


def visible(visibility: Visibility, memory_type: MemoryType) -> Filter:
    """:meth:`Visibility.counts` for a store."""
    conditions: list[Condition] = []
    if not visibility.include_test:
        conditions.append(Not(Equals("is_test", value=True)))
    if not visibility.counts_stale:
        conditions.append(Not(Equals("lifecycle", LifecycleState.STALE.value)))
    # "Not past" rather than "missing or to come": the same, and a third of the engine's work.
    conditions.append(Not(Between("expires_at", at_most=visibility.moment)))
    derived = memory_type is not MemoryType.EPISODIC
    if visibility.as_of is None:
        conditions.extend(_standing(visibility, derived=derived))
    else:
        conditions.extend(_stood(visibility, derived=derived))
    if visibility.valid_at is not None and derived:
        conditions.extend(_true(visibility))
    return tuple(conditions)


def _standing(visibility: Visibility, *, derived: bool) -> Filter:
    status = AnyOf("status", tuple(status.value for status in visibility.standing))
    if visibility.valid_at is None:
        return (status,)
    not_replaced = Not(Equals("status", MemoryStatus.SUPERSEDED.value))
    return (status, Either((not_replaced, *_was_true(visibility, derived=derived))))


def _stood(visibility: Visibility, *, derived: bool) -> Filter:
    then = visibility.moment
    standing = Not(Between("superseded_known_at", at_most=then))
    was_true = _was_true(visibility, derived=derived)
    return (
        Between("known_at", at_most=then),
        Either((standing, *was_true)) if was_true else standing,
    )


def _was_true(visibility: Visibility, *, derived: bool) -> Filter:
    if visibility.valid_at is None or not derived:
        return ()
    return (After("valid_to", visibility.valid_at),)


def _true(visibility: Visibility) -> Filter:
    when, then = visibility.valid_at, visibility.as_of
    assert when is not None  # noqa: S101 - for the type checker; the caller has looked
    unknown_end = () if then is None else (After("superseded_known_at", then),)
    return (
        Not(After("valid_from", when)),
        Either((Not(Between("valid_to", at_most=when)), *unknown_end)),
    )
