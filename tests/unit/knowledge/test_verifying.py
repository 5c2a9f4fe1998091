"""A memory is checked against the turns it was drawn from."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from engram.consolidation.verify import verify
from engram.domain.confidence import Confidence, ExtractionMethod
from engram.domain.memories import (
    Episode,
    Evidence,
    Fact,
    FactCategory,
    NegationFact,
    Provenance,
    SemanticMemory,
)

SAID = datetime(2026, 3, 1, 9, tzinfo=UTC)


def episode(number: int, content: str) -> Episode:
    """A turn of the user."""
    return Episode(
        id=f"e{number}",
        namespace="n",
        user_id="u",
        content=content,
        known_at=SAID,
        created_at=SAID,
        role="user",
        timestamp=SAID,
        message_id=f"m{number}",
    )


def derived(sources: tuple[str, ...], method: ExtractionMethod, **more: Any) -> dict[str, Any]:
    """The fields that every conclusion has."""
    return {
        "id": "d1",
        "namespace": "n",
        "user_id": "u",
        "content": "The user lives in Lisbon.",
        "known_at": SAID,
        "created_at": SAID,
        "source_episode_ids": sources,
        "event_at": SAID,
        "derived_at": SAID,
        "identity": "i",
        "confidence": Confidence(method=method, extraction=0.9, last_confirmed=SAID),
        **more,
    }


EPISODES = {"e1": episode(1, "Hi! I live in\n Lisbon now."), "e2": episode(2, "Still in Lisbon.")}


def known(sources: tuple[str, ...], *quotes: tuple[str, str], inferred: bool = False) -> Any:
    """A semantic memory with quotations."""
    method = ExtractionMethod.INFERRED if inferred else ExtractionMethod.EXTRACTED
    evidence = tuple(Evidence(episode_id=e, words=w) for e, w in quotes)
    return SemanticMemory(**derived(sources, method, evidence=evidence))


def test_a_turn_is_its_own_source() -> None:
    """An episode stands by itself."""
    checked = verify(EPISODES["e1"], {})
    assert (checked.ok, checked.method) == (True, ExtractionMethod.VERBATIM)


@pytest.mark.parametrize(
    ("memory", "ok"),
    [
        (known(("e1",), ("e1", "I live in Lisbon")), True),
        (known(("e1",), ("e1", "I live in Porto")), False),
        (known(("e1",), ("e2", "I live in Lisbon")), False),
        (known(("e1", "e2"), ("e1", "I live in Lisbon"), ("e2", "Still in Lisbon")), True),
        (known(("e1", "e2"), ("e1", "I live in Lisbon"), ("e2", "Still in Porto")), False),
        (known(("e1",)), False),
        (known(("e1",), inferred=True), True),
        (known(("gone",), inferred=True), False),
        (known(("gone",), ("gone", "I live in Lisbon")), False),
    ],
)
def test_quotations_must_stand_in_their_own_source(memory: SemanticMemory, ok: bool) -> None:
    """What was extracted is found word by word in the turn it names; what was inferred has one."""
    checked = verify(memory, EPISODES)
    assert checked.ok is ok
    assert len(checked.evidence) + len(checked.missing_evidence) == len(memory.evidence)


def test_a_forgotten_source_takes_nothing_from_the_others() -> None:
    """A memory still stands by the source that is left, and says which one is gone."""
    memory = known(("e1", "gone"), ("e1", "I live in Lisbon"))
    checked = verify(memory, EPISODES)
    assert (checked.ok, checked.missing_sources) == (True, ("gone",))
    both = known(("e1", "gone"), ("e1", "I live in Lisbon"), ("gone", "In Lisbon"))
    assert verify(both, EPISODES).ok
    assert checked.explanation == "1 of 2 sources exist; 1 of 1 quotation is there."


def test_pattern_facts_and_negations_are_checked_by_their_words() -> None:
    """The evidence of a fact and of a negation is looked for in the turn that gave it."""
    shared = derived(("e1",), ExtractionMethod.VERBATIM, content="x")
    fact = Fact(**shared, category=FactCategory.NAME, value="Lisbon", evidence="Lisbon now")
    denial = NegationFact(**shared, negates_pattern="live paris", evidence="not in Paris")
    assert verify(fact, EPISODES).ok
    assert not verify(denial, EPISODES).ok


def test_how_something_was_inferred_is_said() -> None:
    """The explanation names the model and the instructions behind an inference."""
    origin = Provenance(model="gpt", instructions_version="extraction-2")
    memory = known(("e1",), inferred=True).model_copy(update={"provenance": origin})
    explanation = verify(memory, EPISODES).explanation
    assert "inferred by gpt, instructions extraction-2" in explanation
