"""Which memories a negation covers."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from engram.domain.confidence import Confidence, ExtractionMethod
from engram.domain.memories import (
    AnyMemory,
    Episode,
    Fact,
    FactCategory,
    NegationFact,
    SemanticMemory,
    Slot,
)
from engram.language.negation import find_negations
from engram.language.negation_scope import covers, pattern_terms

NOW = datetime(2026, 3, 1, tzinfo=UTC)
CONFIDENCE = Confidence(
    method=ExtractionMethod.EXTRACTED, extraction=0.9, supporting_episodes=1, last_confirmed=NOW
)


def ep(text: str, role: str = "user") -> Episode:
    """A turn."""
    return Episode(
        id="e", namespace="n", user_id="u", known_at=NOW, created_at=NOW,
        content=text, role=role, timestamp=NOW, message_id="m",
    )  # fmt: skip


def sem(text: str, slot: Slot | None = None) -> SemanticMemory:
    """Knowledge, with or without a slot."""
    return SemanticMemory(
        id="s", namespace="n", user_id="u", known_at=NOW, created_at=NOW, content=text,
        source_episode_ids=("e",), event_at=NOW, derived_at=NOW, confidence=CONFIDENCE,
        identity="i", slot=slot,
    )  # fmt: skip


def slot(predicate: str, obj: str) -> Slot:
    """A slot of the user."""
    return Slot(subject="user", predicate=predicate, object=obj)


def neg(text: str) -> NegationFact:
    """The negation that a turn yields."""
    (found,) = find_negations(text)
    return NegationFact(
        id="n", namespace="n", user_id="u", known_at=NOW, created_at=NOW, content=found.content,
        source_episode_ids=("e",), event_at=NOW, derived_at=NOW, confidence=CONFIDENCE,
        identity="i", negates_pattern=found.negates_pattern, subject=found.subject,
        evidence=found.evidence,
    )  # fmt: skip


COVERED: list[tuple[str, AnyMemory]] = [
    (
        "I don't like fish and chips any more.",
        sem("User likes fish and chips", slot("likes", "fish and chips")),
    ),
    ("I don't use Mongo any more.", sem("User uses Mongo")),
    ("I don't use Mongo any more.", sem("The user uses Mongo.")),
    ("I don't use Mongo any more.", ep("I use Mongo for everything")),
    ("I don't use Mongo any more.", sem("User uses Mongo", slot("uses", "Mongo"))),
    ("I don't use Mongo any more.", ep("Hey, I've used Mongo for years and it's great.")),
    ("I no longer live in Lyon.", sem("User lives in Lyon", slot("lives in", "Lyon"))),
    ("I no longer live in Lyon.", ep("I live in Lyon, near the river.")),
    (
        "I'm not allergic to penicillin.",
        sem("User is allergic to penicillin", slot("is allergic to", "penicillin")),
    ),
    ("I'm not a dentist.", sem("User works as a dentist", slot("works as", "dentist"))),
    ("No coffee for me.", sem("User drinks coffee.")),
    ("I don't own a TV.", ep("I have a TV in the kitchen")),
    ("My sister doesn't eat meat.", ep("My sister eats meat every day.")),
    ("My sister doesn't eat meat.", sem("User's sister eats meat")),
    ("I don't smoke.", sem("User smokes")),
    ("I don't like mushrooms.", ep("I love mushrooms!")),
    ("I don't work at Ikea any more.", sem("User works at Ikea", slot("works at", "Ikea"))),
    ("I've stopped using Evernote.", ep("I mostly use Obsidian, Evernote and paper.")),
    ("I'm not married.", sem("User is married to Bob.", slot("is married to", "Bob"))),
    ("I'm not vegetarian.", sem("User is a vegetarian")),
    ("We sold the car.", sem("User owns a car", slot("owns", "car"))),
    ("I don't work with Rust any more.", ep("I work with Rust at my day job")),
]

NOT_COVERED: list[tuple[str, AnyMemory]] = [
    (
        "I don't like chess any more.",
        sem("User likes playing guitar and chess", slot("likes", "playing guitar and chess")),
    ),
    ("I don't like coffee.", sem("User owns a coffee machine")),
    ("I don't use Mongo any more.", ep("We moved from Mongo to Postgres")),
    ("I don't use Mongo any more.", ep("Do you use Mongo?")),
    ("I don't use Mongo any more.", ep("I don't use Mongo any more.")),
    ("I don't like coffee.", sem("User likes coffee cake", slot("likes", "coffee cake"))),
    ("I don't like coffee.", ep("I like the smell of coffee")),
    ("I don't use Mongo any more.", ep("I use Mongo", role="assistant")),
    ("I don't use Mongo any more.", ep("My brother uses Mongo.")),
    ("I don't eat meat.", sem("User's sister eats meat")),
    ("My sister doesn't eat meat.", sem("User eats meat", slot("eats", "meat"))),
    ("I don't use Mongo any more.", ep("I use Postgres, not Mongo.")),
    ("I don't use Mongo any more.", ep("I used to use Mongo.")),
    ("I don't use Mongo any more.", sem("User used Mongo at a previous job")),
    ("I don't use Mongo any more.", ep("I use Postgres and my brother uses Mongo")),
    ("I don't use Mongo any more.", sem("User no longer uses Mongo")),
    ("I never drink coffee after lunch.", sem("User drinks coffee", slot("drinks", "coffee"))),
    ("I don't use Mongo any more.", ep("If I use Mongo, will it scale?")),
    ("I'm not a nurse.", sem("User is married to a nurse", slot("is married to", "nurse"))),
    ("I don't eat pork.", sem("User likes pork", slot("likes", "pork"))),
    ("I'm not from France.", sem("User loves France")),
    ("I have no pets.", sem("User has a pet shop", slot("has", "pet shop"))),
]


@pytest.mark.parametrize(("said", "memory"), COVERED)
def test_same_claim_is_covered(said: str, memory: AnyMemory) -> None:
    """What says the denied thing of the same subject is covered."""
    assert covers(neg(said), memory)


@pytest.mark.parametrize(("said", "memory"), NOT_COVERED)
def test_other_claim_is_not_covered(said: str, memory: AnyMemory) -> None:
    """Other objects, other subjects, questions and denials are left alone."""
    assert not covers(neg(said), memory)


def test_negation_never_covers_a_negation() -> None:
    """Two denials of the same thing agree."""
    assert not covers(neg("I don't use Mongo"), neg("I no longer use Mongo"))


def test_wrong_name_is_covered() -> None:
    """A corrected name covers the fact that holds it, and no other fact."""

    def fact(category: FactCategory, value: str) -> Fact:
        return Fact(
            id="f", namespace="n", user_id="u", known_at=NOW, created_at=NOW, content=value,
            source_episode_ids=("e",), event_at=NOW, derived_at=NOW, confidence=CONFIDENCE,
            identity="i", category=category, value=value, evidence=value,
        )  # fmt: skip

    negation = neg("My name is Anna, not Hannah.")
    assert covers(negation, fact(FactCategory.NAME, "Hannah"))
    assert not covers(negation, fact(FactCategory.NAME, "Anna"))
    assert not covers(negation, fact(FactCategory.EMAIL, "hannah"))


def test_pattern_terms_are_stems_once_without_function_words() -> None:
    """Look-ups get the verb's stem first, then the object's."""
    assert pattern_terms("use mongo") == ("use", "mongo")
    assert pattern_terms("be allergic to the penicillin")[0] == "be"
    assert len(pattern_terms("be allergic to penicillin")) == 3
    assert pattern_terms("uses databases") == pattern_terms("using database")
    assert pattern_terms("") == ()
