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
        left_out_perfects: There "I've" is left out before these.
        left_out_pasts: There "I was" is left out before these.
        company_words: What the names of companies and institutions hold.
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
        hobby_words: What is done for pleasure is no job.
        relations: Somebody close, or with whom one has to do.
        services: Somebody or something whose name is introduced.
        attributes: What everybody has one of.
        skill_verbs: What "I can" tells as a skill.
        stative_verbs: After "always" or "never" these tell a state, not a rule.
        to_you_verbs: After "always" or "never" these tell the listener what to do.
        memorable_verbs: Past tenses that are worth remembering by themselves.
        chore_verbs: Past tenses that are not.
        irregular_pasts: Past tenses that do not end in "ed".
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
    promise_verbs: frozenset[str]
    irregular_pasts: frozenset[str]
    chore_verbs: frozenset[str]
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
    text = files("engram.agents.rules").joinpath("words.toml").read_text(encoding="utf-8")
    return Vocabulary.model_validate(tomllib.loads(text))


def alternatives(words: tuple[str, ...] | frozenset[str]) -> str:
    """A regular expression for any of the words, longest first."""
    ordered = sorted(words, key=lambda word: (-len(word), word))
    return "|".join(word.replace(" ", r"\s+").replace(".", r"\.") for word in ordered)
