"""The word lists that the rules go by, read once from the data file beside this module."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files

from pydantic import BaseModel, ConfigDict


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
        left_out_verbs: At the start of a sentence "I" is left out before these.
        reporting: After one of these, "I" may be somebody else.
        openings: May stand between the start of a clause and "I".
        adverbs: May stand between "I" and its verb.
        leading_determiners: Not part of what is named.
        pronouns: Name nothing by themselves.
        cut_words: What follows them is about something else.
        thing_prepositions: What follows them describes a thing further.
        place_particles: Lower-case words inside names.
        place_nouns: What one can live in that has a place on the map.
        uses_blockers: What one uses or works at without it saying anything.
        months: January first.
        occupations: What one can be.
        places: Places that could be mistaken for companies or tools.
        has_nouns: What it means something to have.
        has_blockers: What one has without owning or suffering it.
        products: Names of tools that could be mistaken for places.
        languages: Names of languages.
        plan_blockers: "Going to" before one of these is no plan.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    hypothetical_openings: tuple[str, ...]
    hypothetical_words: tuple[str, ...]
    commands: tuple[str, ...]
    fictions: tuple[str, ...]
    authorities: tuple[str, ...]
    shared_verbs: frozenset[str]
    left_out_states: tuple[str, ...]
    left_out_verbs: frozenset[str]
    reporting: frozenset[str]
    openings: tuple[str, ...]
    adverbs: tuple[str, ...]
    leading_determiners: tuple[str, ...]
    pronouns: frozenset[str]
    cut_words: tuple[str, ...]
    thing_prepositions: tuple[str, ...]
    place_particles: frozenset[str]
    place_nouns: tuple[str, ...]
    uses_blockers: frozenset[str]
    months: tuple[str, ...]
    occupations: frozenset[str]
    places: frozenset[str]
    has_nouns: frozenset[str]
    has_blockers: frozenset[str]
    products: frozenset[str]
    languages: frozenset[str]
    plan_blockers: frozenset[str]


@cache
def vocabulary() -> Vocabulary:
    """The word lists."""
    text = files("engram.agents.rules").joinpath("words.toml").read_text(encoding="utf-8")
    return Vocabulary.model_validate(tomllib.loads(text))


def alternatives(words: tuple[str, ...] | frozenset[str]) -> str:
    """A regular expression for any of the words, longest first."""
    ordered = sorted(words, key=lambda word: (-len(word), word))
    return "|".join(word.replace(" ", r"\s+").replace(".", r"\.") for word in ordered)
