"""Whatever is asked, nothing comes back that should not."""

from random import Random
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engram.domain.confidence import ConfidenceWeights, ExtractionMethod
from engram.domain.identity import normalise
from engram.domain.memories import (
    ANSWERING_FORMS,
    AnyMemory,
    DerivedMemory,
    LifecycleState,
    Link,
    MemoryForm,
    MemoryStatus,
    MemoryType,
    NegationFact,
    SemanticMemory,
)
from engram.recall.request import Visibility
from tests.support.recall_memories import (
    ADA,
    EVERYBODY,
    NOW,
    Memories,
    covers_by_words,
    day,
    episode,
    negation,
    semantic,
)
from tests.support.sizes import examples

SCOPES = st.sampled_from(EVERYBODY)
DAYS = st.sampled_from([0.0, 1.0, 2.0, 3.0])
MOMENTS = st.none() | DAYS.map(day)
FLAGS = st.booleans()
THINGS = st.sampled_from(["mongodb", "postgresql", "tea", "the piano", "a bicycle"])
SESSIONS = st.sampled_from(["s1", "s2"])
TAGS = st.sampled_from([(), ("a",), ("a", "b"), ("c",)])


@st.composite
def any_memory(draw: st.DrawFn) -> AnyMemory:
    """Any type, whoever's, known, replaced, expired and flagged in any way."""
    thing, number = draw(THINGS), draw(st.integers(0, 3))
    fields: dict[str, Any] = {
        "scope": draw(SCOPES),
        "status": draw(st.sampled_from([MemoryStatus.ACTIVE, *MemoryStatus])),
        "superseded_known_at": draw(MOMENTS),
        "expires_at": draw(st.none() | MOMENTS),
        "is_test": draw(FLAGS),
        "session_id": draw(SESSIONS),
        "tags": draw(TAGS),
    }
    at = draw(DAYS)
    kind = draw(st.sampled_from(["episode", "semantic", "negation"]))
    if kind == "episode":
        return episode(f"We use {thing} {number}", at, **fields)
    fields["method"] = draw(st.sampled_from(ExtractionMethod))
    fields["generation"] = draw(st.integers(0, 5))
    fields["valid_to"] = draw(MOMENTS)
    if kind == "negation":
        return negation(f"They do not use {thing} {number}", f"use {thing}", at, **fields)
    selectivity = draw(st.sampled_from([0.0, 0.5, 1.0]))
    fields["form"] = draw(st.sampled_from([MemoryForm.STATEMENT, *MemoryForm]))
    fields["lifecycle"] = draw(st.none() | st.sampled_from(LifecycleState))
    return semantic(f"They use {thing} {number}", at, selectivity=selectivity, **fields)


def linked(memories: list[AnyMemory], chance: Random) -> list[AnyMemory]:
    """The same with links from each conclusion to any others, whoever's they are."""
    ids = [one.id for one in memories]
    return [
        one.model_copy(
            update={
                "links": tuple(
                    Link(
                        target_id=target,
                        confidence=chance.choice([0.1, 0.5, 1.0]),
                        first_seen=day(1),
                        last_seen=day(1),
                    )
                    for target in chance.sample(ids, min(2, len(ids)))
                    if target != one.id
                )
            }
        )
        if isinstance(one, DerivedMemory)
        else one
        for one in memories
    ]


QUESTIONS = st.fixed_dictionaries(
    {
        "query": THINGS.map(lambda thing: f"Do we use {thing}?"),
        "limit": st.integers(1, 20),
        "as_of": MOMENTS,
        "valid_at": MOMENTS,
        "min_confidence": st.sampled_from([None, 0.5, 0.65, 0.8]),
        "min_selectivity": st.sampled_from([None, 0.4]),
        "include_archived": FLAGS,
        "include_test": FLAGS,
        "session_id": st.none() | SESSIONS,
        "tags": st.sampled_from([None, ["a"], ["b", "c"]]),
        "memory_types": st.sampled_from([None, ["semantic"], ["episodic", "negation"]]),
        "include_sources": FLAGS,
        "follow_links": FLAGS,
        "explain": FLAGS,
        "forms": st.sampled_from([None, ["profile", "box"]]),
        "timezone": st.sampled_from([None, "Asia/Tokyo"]),
    }
)


@settings(
    max_examples=examples(40),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    st.lists(any_memory(), min_size=5, max_size=40),
    st.lists(QUESTIONS, min_size=5, max_size=8),
    st.randoms(use_true_random=False),
)
async def test_no_answer_is_one_that_should_not_be(
    memories: Memories, drawn: list[AnyMemory], questions: list[dict[str, Any]], chance: Random
) -> None:
    """No other user, namespace or test flag; nothing later, replaced, unsure, denied or twice."""
    stored = linked(list({one.id: one for one in drawn}.values()), chance)
    for scope in EVERYBODY:
        await memories.repository.erase(scope)
    await memories.keep(*stored)
    denials = [one for one in stored if isinstance(one, NegationFact) and one.scope == ADA]
    for question in questions:
        hits = await memories.ask(**question)
        assert len(hits) <= question["limit"]
        for hit in hits:
            assert_allowed(hit.memory, question)
            against = in_force_against(hit.memory, denials, question)
            assert set(hit.negated_by) == against
            assert not against or hit.memory.type is MemoryType.EPISODIC
            if hit.explanation is not None:
                total = sum(part.contribution for part in hit.explanation.parts)
                assert abs(total - hit.score) < 1e-9
        said = [normalise(hit.memory.content) for hit in hits]
        assert len(said) == len(set(said))
        assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


# What changes often: more turns in nearly the same words than answers are wanted.
CHANGES = st.lists(st.tuples(THINGS, st.integers(0, 12)), min_size=5, max_size=20, unique=True).map(
    lambda said: [episode(f"We use {what} version v{at}x now", at) for what, at in said]
)


@settings(
    max_examples=examples(20),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    st.lists(any_memory(), max_size=20),
    CHANGES,
    st.lists(QUESTIONS, min_size=1, max_size=3),
    st.randoms(use_true_random=False),
)
async def test_the_first_answers_are_the_same_however_few_are_asked_for(
    memories: Memories,
    drawn: list[AnyMemory],
    changes: list[AnyMemory],
    questions: list[dict[str, Any]],
    chance: Random,
) -> None:
    """Of any memories and any question, up to the limit that recall has by itself."""
    stored = linked(list({one.id: one for one in (*drawn, *changes)}.values()), chance)
    for scope in EVERYBODY:
        await memories.repository.erase(scope)
    await memories.keep(*stored)
    for question in questions:
        ten = await memories.ask(**{**question, "limit": 10})
        for limit in range(1, 10):
            assert await memories.ask(**{**question, "limit": limit}) == ten[:limit]


def assert_allowed(memory: AnyMemory, question: dict[str, Any]) -> None:
    """Each bound of the question, said once more and separately."""
    assert memory.scope == ADA
    assert question["include_test"] or not memory.is_test
    as_of, valid_at = question["as_of"], question["valid_at"]
    if as_of is not None:
        assert memory.known_at <= as_of
        replaced = memory.superseded_known_at
        assert replaced is None or replaced > as_of or valid_at is not None
    else:
        allowed = {MemoryStatus.ACTIVE}
        allowed |= {MemoryStatus.ARCHIVED} if question["include_archived"] else set()
        allowed |= {MemoryStatus.SUPERSEDED} if valid_at is not None else set()
        assert memory.status in allowed
    assert memory.expires_at is None or memory.expires_at > (as_of or NOW)
    assert question["session_id"] in {None, memory.session_id}
    assert question["tags"] is None or set(question["tags"]) & set(memory.tags)
    assert question["memory_types"] is None or memory.type in question["memory_types"]
    if isinstance(memory, DerivedMemory) and question["min_confidence"] is not None:
        confidence = memory.confidence.score(as_of or NOW, ConfidenceWeights())
        assert confidence >= question["min_confidence"]
    if isinstance(memory, SemanticMemory) and question["min_selectivity"] is not None:
        assert memory.selectivity >= question["min_selectivity"]
    if isinstance(memory, SemanticMemory):
        assert memory.form in (question["forms"] or ANSWERING_FORMS)


def in_force_against(
    memory: AnyMemory, denials: list[NegationFact], question: dict[str, Any]
) -> set[str]:
    """The negations that deny this memory, found by looking at every one.

    What is not so any more says nothing of a time before it was told, nor of what held then. One
    that faded, or was put aside, still denies.
    """
    then = question["valid_at"]
    until = memory.valid_to if isinstance(memory, DerivedMemory) else None
    if memory.type is MemoryType.NEGATION or (then and until and until > then):
        return set()
    view = Visibility(
        now=NOW,
        as_of=question["as_of"],
        include_test=question["include_test"],
        include_archived=True,
        include_expired=True,
    )
    return {
        denial.id
        for denial in denials
        if view.counts(denial)
        and denial.known_at > memory.known_at
        and (then is None or denial.known_at <= then)
        and covers_by_words(denial, memory)
    }
