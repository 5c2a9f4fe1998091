"""Word lists and patterns from the data files, loaded and checked once."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from engram.domain.memories import Category

# --- the one loader of ``data/*.toml``


@cache
def load(name: str) -> dict[str, Any]:
    """The tables of ``data/{name}.toml``. Callers must not change what they get."""
    return tomllib.loads(
        files("engram.language").joinpath(f"data/{name}.toml").read_text(encoding="utf-8")
    )


@cache
def words(name: str, key: str) -> frozenset[str]:
    """A word list of ``data/{name}.toml``; in the file, one text of words or a list."""
    value = load(name)[key]
    return frozenset(value.split() if isinstance(value, str) else value)


@cache
def _kinds_of_tools() -> tuple[frozenset[str], ...]:
    return tuple(frozenset(kind) for kind in load("tools").values())


def of_one_kind(one: str, other: str) -> bool:
    """Whether two are tools for the same, so that one can take the other's place."""
    names = {one.casefold(), other.casefold()}
    return len(names) > 1 and any(names <= kind for kind in _kinds_of_tools())


# --- the word lists that the rules go by


class Vocabulary(BaseModel):
    """Lower-case words and phrases, by what they do to a sentence.

    Attributes:
        hypothetical_openings: A sentence that opens so states nothing.
        hypothetical_words: A sentence that holds one of these states nothing.
        commands: A sentence that holds one of these is about the memory, not about the speaker.
        fictions: A turn that holds one of these plays a part.
        authorities: What they say of the speaker is so.
        shared_verbs: "and" before one of these leaves out the same subject.
        left_out_states: At the start of a sentence "I'm" is left out before these.
        left_out_perfects: There "I've" is left out before these.
        left_out_pasts: There "I was" is left out before these.
        company_words: What the names of companies and institutions hold.
        house_words: Those of them that the names of houses end with as well.
        left_out_verbs: At the start of a sentence "I" is left out before these.
        reporting: After one of these, "I" may be somebody else.
        openings: May stand between the start of a clause and "I".
        adverbs: May stand between "I" and its verb.
        leading_determiners: Not part of what is named.
        pronouns: Name nothing by themselves.
        trailing: At the end of what is named they belong to the verb.
        manner: So do these adverbs.
        cut_words: What follows them is about something else.
        thing_prepositions: What follows them describes a thing further.
        place_particles: Lower-case words inside names.
        place_nouns: What one can live in that has a place on the map.
        uses_blockers: What one uses or works at without it saying anything.
        occupations: What one can be.
        places: Places that could be mistaken for companies or tools.
        has_nouns: What it means something to have.
        has_blockers: What one has without owning or suffering it.
        products: Names of tools that could be mistaken for places.
        employers: Well-known employers.
        cars: Makes of cars, and models that are called nothing else.
        subjects: What one studies.
        languages: Names of languages.
        plan_blockers: "Going to" before one of these is no plan.
        hobby_words: What is done for pleasure is no job.
        relations: Somebody close, or with whom one has to do.
        services: Somebody or something whose name is introduced.
        attributes: What everybody has one of.
        skill_verbs: What "I can" tells as a skill.
        stative_verbs: After "always" or "never" these tell a state, not a rule.
        to_you_verbs: After "always" or "never" these tell the listener what to do.
        memorable_verbs: Past tenses that are worth remembering by themselves.
        chore_verbs: Past tenses that are not.
        order_verbs: What one asks an assistant to do, as a rule.
        irregular_pasts: Past tenses that do not end in "ed".
        liked_with_the: What one likes by "the", wherever it is.
        shared_nouns: Nouns that several kinds can share: "action and sci-fi movies".
        hollow_words: What names nothing to do, however many of them come together.
    promise_verbs: What one promises to do by "I'll".
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    hypothetical_openings: tuple[str, ...]
    hypothetical_words: tuple[str, ...]
    commands: tuple[str, ...]
    fictions: tuple[str, ...]
    authorities: tuple[str, ...]
    shared_verbs: frozenset[str]
    left_out_states: tuple[str, ...]
    left_out_perfects: tuple[str, ...]
    left_out_pasts: tuple[str, ...]
    company_words: frozenset[str]
    house_words: frozenset[str]
    left_out_verbs: frozenset[str]
    reporting: frozenset[str]
    openings: tuple[str, ...]
    adverbs: tuple[str, ...]
    leading_determiners: tuple[str, ...]
    pronouns: frozenset[str]
    trailing: tuple[str, ...]
    manner: tuple[str, ...]
    cut_words: tuple[str, ...]
    thing_prepositions: tuple[str, ...]
    place_particles: frozenset[str]
    place_nouns: tuple[str, ...]
    uses_blockers: frozenset[str]
    occupations: frozenset[str]
    places: frozenset[str]
    has_nouns: frozenset[str]
    has_blockers: frozenset[str]
    products: frozenset[str]
    employers: frozenset[str]
    cars: frozenset[str]
    subjects: frozenset[str]
    languages: frozenset[str]
    plan_blockers: frozenset[str]
    liked_with_the: frozenset[str]
    shared_nouns: frozenset[str]
    hollow_words: frozenset[str]
    promise_verbs: frozenset[str]
    irregular_pasts: frozenset[str]
    chore_verbs: frozenset[str]
    order_verbs: frozenset[str]
    memorable_verbs: frozenset[str]
    to_you_verbs: frozenset[str]
    stative_verbs: frozenset[str]
    skill_verbs: frozenset[str]
    attributes: frozenset[str]
    services: frozenset[str]
    relations: frozenset[str]
    hobby_words: frozenset[str]


@cache
def vocabulary() -> Vocabulary:
    """The word lists."""
    return Vocabulary.model_validate(load("words"))


def alternatives(words: tuple[str, ...] | frozenset[str]) -> str:
    """A regular expression for any of the words, longest first."""
    ordered = sorted(words, key=lambda word: (-len(word), word))
    return "|".join(word.replace(" ", r"\s+").replace(".", r"\.") for word in ordered)


# --- what tells of a change


@cache
def verbs_of_change() -> frozenset[str]:
    """The verbs of ``changes.toml``, as they are said of what has changed."""
    data = load("changes")
    of_kinds = {
        verb for key in ("made", "roles") for kind in data[key] for verb in kind["verbs"].split()
    }
    return frozenset(of_kinds | words("changes", "changed"))


@cache
def words_of_change() -> frozenset[str]:
    """What tells by itself that something changed: those verbs, "now", "new", "left"."""
    return verbs_of_change() | words("changes", "now")


@cache
def cues_of_change() -> frozenset[str]:
    """One of these is in every sentence that tells of a change."""
    return words_of_change() | words("changes", "cues")


# --- holidays


class Holiday(BaseModel):
    """A day of each year that has names.

    Attributes:
        names: What it is called, in lower case.
        on: Its month and day; one of this and the next two.
        easter: Its days from Easter Sunday.
        nth: Its month, weekday (Monday is 0) and which of them it is, -1 for the last.
        then: So many days after that.
        around: Days from it to where what is meant more loosely begins and ends; None for the day.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    names: tuple[str, ...]
    on: tuple[int, int] | None = None
    easter: int | None = None
    nth: tuple[int, int, int] | None = None
    then: int = 0
    around: tuple[int, int] | None = None


@cache
def holidays() -> tuple[Holiday, ...]:
    """The data file, checked."""
    return tuple(Holiday.model_validate(one) for one in load("holidays")["holidays"])


# --- the turns of phrase of ``expressions.toml``, compiled when first needed

_TableEntry = str | list[str]
_TABLES: TypeAdapter[dict[str, dict[str, _TableEntry]]] = TypeAdapter(
    dict[str, dict[str, _TableEntry]]
)
_TABLE_REFERENCE = re.compile(r"\{([a-z_]+)\}")


@cache
def expression(table: str, name: str, *, exact_case: bool = False) -> re.Pattern[str]:
    """A regular expression by table and name.

    Args:
        table: A table of the data file.
        name: An entry of it.
        exact_case: Whether capitals matter.

    Raises:
        KeyError: there is none of that name.
    """
    return re.compile(_written_out(_tables()[table], name), 0 if exact_case else re.I)


def expression_text(table: str, name: str) -> str:
    """The same, not compiled, to be put into another one."""
    return f"(?:{_written_out(_tables()[table], name)})"


@cache
def word_groups(table: str, name: str) -> tuple[frozenset[str], ...]:
    """The words of each line of a list that is no expression."""
    return tuple(frozenset(line.split()) for line in word_lines(table, name))


def word_lines(table: str, name: str) -> tuple[str, ...]:
    """The lines of a list that is no expression."""
    return tuple(_tables()[table][name])


@cache
def fields_of_work() -> Mapping[str, tuple[str, ...]]:
    """What those are who work in a field, the most usual first: "nurse" of "nursing"."""
    lines = (line.partition(":") for line in word_lines("statements", "fields_of_work"))
    return {
        field.strip(): tuple(one.strip() for one in people.split(",")) for field, _, people in lines
    }


@cache
def _tables() -> Mapping[str, Mapping[str, _TableEntry]]:
    return _TABLES.validate_python(load("expressions"))


def spaced(text: str) -> str:
    """With any white space for a space; one that may be missing, may be: "any ?more"."""
    return _SPACE.sub(lambda found: r"\s?" if found.group("missing") else r"\s+", text)


_SPACE = re.compile(r"(?<!\\) (?P<missing>\?)?")


def _written_out(table: Mapping[str, _TableEntry], name: str) -> str:
    entry = table[name]
    return written_out(table, entry if isinstance(entry, str) else "|".join(entry))


def written_out(table: Mapping[str, _TableEntry], text: str) -> str:
    """A regular expression with entries of a table in place of their names: "{relation}"."""
    return _TABLE_REFERENCE.sub(
        lambda one: f"(?:{_written_out(table, one.group(1))})", spaced(text)
    )


# --- the data file ``wordings.toml`` as values, read once


class _Data(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Wording(_Data):
    """One way to say it.

    Attributes:
        says: A regular expression; see the data file.
        kind: How its object is cut out and checked, where not as the predicate's.
        when: The condition that the clause must meet as well.
        loose: Whether it is less than plain, and counts only for promises.
    """

    says: str
    kind: str | None = None
    when: str | None = None
    loose: bool = False


class MustBeSaid(_Data):
    """What must be said as well.

    Attributes:
        of: Whether the clause, its sentence or the whole turn must say it.
        holds: The regular expression.
    """

    of: Literal["clause", "sentence", "turn"]
    holds: str


class Predicate(_Data):
    """What can be stated of somebody, and how.

    Attributes:
        name: What the statement calls it.
        category: Which of the ten it is.
        importance: Of such statements, 0 to 1.
        kind: How its object is cut out and checked, see ``kinds``.
        base: The verb as it follows "I".
        gerund: The verb as it follows "I am".
        can_end: Whether "no longer" makes sense of it.
        can_deny: Whether "not" says something of it.
        past: Wordings after "I" that say it was so, and not that it is.
        says: Further wordings that say that it is so.
        begins: Wordings that say that it began.
        ended: Wordings that say that it is no longer so.
    """

    name: str
    category: Category
    importance: float = Field(ge=0, le=1)
    kind: str
    base: str
    gerund: str
    can_end: bool = True
    can_deny: bool = False
    past: tuple[str, ...] = ()
    says: tuple[str | Wording, ...] = ()
    begins: tuple[str | Wording, ...] = ()
    ended: tuple[str | Wording, ...] = ()


class Templates(_Data):
    """What every predicate can be said with."""

    holds: tuple[str, ...]
    ended: tuple[str, ...]
    ended_any_more: tuple[str, ...]
    denied: tuple[str, ...]
    being_denied: tuple[str, ...]
    being_ended: tuple[str, ...]
    being_ended_any_more: tuple[str, ...]
    was: tuple[str, ...]
    were: tuple[str, ...]


class Wordings(_Data):
    """The data file.

    Attributes:
        conditions: Regular expressions by name.
        topics: By predicate, what is said before "it's ... now" gives it a new value.
        templates: Wordings made for every predicate.
        predicates: In the order in which they are tried.
    """

    conditions: dict[str, MustBeSaid]
    topics: dict[str, str]
    templates: Templates
    predicates: tuple[Predicate, ...]


@cache
def wordings() -> Wordings:
    """The data file, checked."""
    return Wordings.model_validate(load("wordings"))


@cache
def predicates() -> Mapping[str, Predicate]:
    """Every predicate by name."""
    return {one.name: one for one in wordings().predicates}
