"""What must survive word for word is found by rule, kept once, and tied to its turn."""

from __future__ import annotations

import pytest

from engram.consolidation.keep import verbatim_in
from engram.consolidation.reconcile import reconcile
from engram.consolidation.verify import verify
from engram.domain.confidence import ExtractionMethod, Verification
from engram.domain.memories import Episode, LinkKind, MemoryForm, SemanticMemory
from engram.domain.plan import ConsolidationPlan, CreateArtifact
from engram.domain.turns import context_block
from tests.support.reconciliation import ReconciledKnowledge, said, stated

FENCED = "Here it is:\n```python\ndef f(x):\n    return  X\n```\nDone."


@pytest.mark.parametrize(
    ("text", "kind", "words"),
    [
        (FENCED, "code", "def f(x):\n    return  X"),
        ("I run `docker compose up -d` every day.", "command", "docker compose up -d"),
        (
            'She said "I would rather plant an orchard than sell this land." to me.',
            "quotation",
            "I would rather plant an orchard than sell this land.",
        ),
        (
            "Send it to 14 Juniper Lane, Ashford, TN25 4AB please.",
            "address",
            "14 Juniper Lane, Ashford, TN25 4AB",
        ),
        (
            "I live at 221 Oak Park Avenue, Springfield, IL 62704.",
            "address",
            "221 Oak Park Avenue, Springfield, IL 62704",
        ),
        ("Es ist Hauptstraße 5a, 10115 Berlin.", "address", "Hauptstraße 5a, 10115 Berlin"),
        ("To Via Roma 12, 20121 Milano!", "address", "Via Roma 12, 20121 Milano"),
    ],
)
def test_words_that_must_survive_are_found(text: str, kind: str, words: str) -> None:
    """Letter by letter, white space included."""
    assert [(one.kind, one.words) for one in verbatim_in(text)] == [(kind, words)]


@pytest.mark.parametrize(
    "text",
    [
        "I use `git` and `vim`.",
        'He said "no".',
        "I live on Juniper Lane in Ashford.",
        "My address is Torstraße 22, Berlin.",
        "The password hint is my dog's name.",
        "It cost 14 euros, Ashford was nice, and I called 555 1234.",
        "Don't run `this is not a command` please.",
        "an open fence\n```\nnever closed",
    ],
)
def test_what_may_be_reworded_is_left_alone(text: str) -> None:
    """Only a few, certain forms become artifacts."""
    assert verbatim_in(text) == []


def heard(knowledge: ReconciledKnowledge, turn: Episode) -> ConsolidationPlan:
    """The turn states that the user uses Docker; its words are kept."""
    knowledge.episodes[turn.id] = turn
    plan = reconcile(
        [stated(turn, "uses", "Docker")],
        knowledge.known.values(),
        knowledge.circumstances(),
        [turn],
    )
    knowledge.apply(plan)
    return plan


def artifacts(knowledge: ReconciledKnowledge) -> list[SemanticMemory]:
    """Those that are kept."""
    return [m for m in knowledge.known.values() if m.form is MemoryForm.ARTIFACT]


def test_an_artifact_is_verbatim_and_belongs_to_what_its_turn_states() -> None:
    """It verifies against its turn, and is linked with the statement."""
    knowledge = ReconciledKnowledge()
    turn = said(1).model_copy(update={"content": "I use Docker: `docker compose up -d`"})
    plan = heard(knowledge, turn)
    (kept,) = artifacts(knowledge)
    assert kept.content == "docker compose up -d"
    assert kept.confidence.method is ExtractionMethod.VERBATIM
    assert kept.confidence.verification is Verification.EVIDENCE_FOUND
    assert verify(kept, knowledge.episodes).ok
    (link,) = plan.links()
    assert (link.first_id, link.kind) == (kept.id, LinkKind.BELONGS_TO)
    assert knowledge.known[link.second_id].content == "The user uses Docker."


def test_read_again_it_makes_no_second_and_said_again_it_gains_a_source() -> None:
    """The words are the identity, letter by letter."""
    knowledge = ReconciledKnowledge()
    words = "I use Docker: `docker compose up -d`"
    turns = [said(day).model_copy(update={"content": words}) for day in (1, 2)]
    heard(knowledge, turns[0])
    again = heard(knowledge, turns[0])
    assert not again.new_memories()
    assert not again.links()
    assert not list(again.amendments())
    heard(knowledge, turns[1])
    other = said(3).model_copy(update={"content": words.replace("up -d", "up -D")})
    plan = heard(knowledge, other)
    assert [type(a) for a in plan.actions if isinstance(a, CreateArtifact)] == [CreateArtifact]
    first, second = sorted(artifacts(knowledge), key=lambda m: m.known_at)
    assert first.source_episode_ids == (turns[0].id, turns[1].id)
    assert second.source_episode_ids == (other.id,)


def test_recalled_memories_are_not_kept_as_somebodys_words() -> None:
    """What Engram put into the prompt is no artifact of the user."""
    knowledge = ReconciledKnowledge()
    block = context_block(["The user runs `docker compose up -d`."])
    heard(knowledge, said(1).model_copy(update={"content": f"{block} I use Docker."}))
    assert artifacts(knowledge) == []
