"""What answers can be narrowed to: role, metadata, absent tags, staleness, a least score."""

from __future__ import annotations

from typing import Any

import pytest

from engram.domain.memories import STORED_TYPES, LifecycleState, Link, MemoryForm, MemoryType
from engram.domain.turns import ROLES
from engram.errors import InvalidQuery
from engram.operations.recall import ContextRequest
from engram.ports import AnyOf, Equals, Not
from engram.recall.request import RecallArguments, RecallRequest, Visibility, narrowed
from tests.support.recall_memories import SETTINGS, Memories, contents, day, episode, semantic

USER = episode("I drink tea in the morning.", 1, tags=("home",), metadata={"app": "diary", "n": 1})
AGENT = episode("You drink tea a lot.", 2, role="assistant", metadata={"app": "chat", "n": 1.0})
KNOWN = semantic("The user drinks tea.", 3, metadata={"app": "diary"}, tags=("drinks",))
STALE = semantic("The user drank tea with Ann.", 4, lifecycle=LifecycleState.STALE)
ALL = (USER, AGENT, KNOWN, STALE)


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({}, ALL),
        ({"roles": "user"}, (USER, KNOWN, STALE)),
        ({"roles": ["assistant"], "memory_types": "episodic"}, (AGENT,)),
        ({"without_tags": ["home"]}, (AGENT, KNOWN, STALE)),
        ({"without_tags": ["home", "drinks"]}, (AGENT, STALE)),
        ({"metadata": {"app": "diary"}}, (USER, KNOWN)),
        ({"metadata": {"app": "diary", "n": 1}}, (USER,)),
        ({"metadata": {"n": True}}, ()),
        ({"metadata": {"n": "1"}}, ()),
        ({"include_stale": False}, (USER, AGENT, KNOWN)),
    ],
    ids=str,
)
async def test_answers_are_narrowed_to_what_is_asked(
    memories: Memories, asked: dict[str, Any], expected: tuple[Any, ...]
) -> None:
    """Each filter leaves exactly what it names; a type without the field is not narrowed by it."""
    await memories.keep(*ALL)
    found = await memories.ask("Who drinks tea?", explain=True, **asked)
    assert {hit.memory.id for hit in found} == {one.id for one in expected}


async def test_what_links_lead_to_passes_the_same_filters(memories: Memories) -> None:
    """A memory that no search brought up is narrowed alike."""
    link = Link(target_id=STALE.id, first_seen=day(1), last_seen=day(1))
    other = semantic("Ann sails.", 5, tags=("sea",), metadata={"app": "log"})
    known = KNOWN.model_copy(
        update={"links": (link, link.model_copy(update={"target_id": other.id}))}
    )
    await memories.keep(known, other, STALE)

    async def led_to(**asked: Any) -> set[str]:
        hits = await memories.ask("drinks", follow_links=True, **asked)
        return {hit.memory.id for hit in hits} - {known.id}

    assert other.id in await led_to()
    assert other.id not in await led_to(without_tags=["sea"])
    assert await led_to(metadata={"app": "diary"}) == set()
    assert STALE.id not in await led_to(include_stale=False)


async def test_nothing_below_the_least_score_comes_back(memories: Memories) -> None:
    """Answers with a lower score are left out, the others stay as they were."""
    await memories.keep(*ALL, episode("My bicycle is red.", 6))
    hits = await memories.ask("Who drinks tea?")
    bound = hits[1].score
    kept = await memories.ask("Who drinks tea?", min_score=bound)
    assert contents(kept) == contents(hit for hit in hits if hit.score >= bound)
    assert len(kept) < len(hits)
    assert await memories.ask("Who drinks tea?", min_score=1.0) == []


async def test_a_filter_finds_the_few_among_many(memories: Memories) -> None:
    """Metadata is looked up by the store: what it names is found behind any number of others."""
    crowd = [episode(f"Tea number {n} is good tea.", n, metadata={"n": n}) for n in range(300)]
    await memories.keep(*crowd)
    found = await memories.ask("good tea", limit=3, metadata={"n": 287})
    assert contents(found) == ["Tea number 287 is good tea."]


@pytest.mark.parametrize(
    "wrong",
    [
        {"min_score": 1.5},
        {"roles": ["boss"]},
        {"roles": []},
        {"without_tags": []},
        {"metadata": {}},
        {"metadata": {"": 1}},
        {"metadata": {"a": [1]}},
        {"metadata": {"a": "x" * 200}},
        {"metadata": {f"k{n}": n for n in range(20)}},
        {"forms": ["poem"]},
        {"include_stale": "no"},
        {"timezone": "Tokyo"},
    ],
    ids=str,
)
def test_a_filter_that_no_memory_could_pass_is_refused(wrong: dict[str, Any]) -> None:
    """Out of range, unknown, empty or too much is a typed error, before anything is searched."""
    with pytest.raises(InvalidQuery):
        RecallRequest.of("tea", settings=SETTINGS, **wrong)


def test_what_is_allowed_stands_in_the_refusal() -> None:
    """Roles by their names, pairs by their number and length; the bounds themselves are taken."""
    most = {f"k{n}": n for n in range(16)}
    assert RecallRequest.of("tea", settings=SETTINGS, metadata=most).metadata == most
    longest = {"a" * 128: "x" * 128}
    assert RecallRequest.of("tea", settings=SETTINGS, metadata=longest).metadata == longest
    every_role = RecallRequest.of("tea", settings=SETTINGS, roles=list(ROLES)).roles
    assert every_role == tuple(ROLES)
    one: Any = {"one"}
    assert RecallRequest.of("tea", settings=SETTINGS, tags=one).tags == ("one",)
    for wrong, said in (
        ({"roles": ["boss"]}, f"A role is unknown. Allowed: {', '.join(ROLES)}; or leave it out."),
        (
            {"metadata": {**most, "one": 1}},
            "The metadata asked for is empty, or too much. Allowed: 1 to 16 keys.",
        ),
        (
            {"metadata": {"a": "x" * 129}},
            "Metadata is asked for by a key, text or number that is too long. "
            "Allowed: up to 128 characters, or 4,300 digits.",
        ),
        (
            {"metadata": {"a": -(10**4300)}},
            "Metadata is asked for by a key, text or number that is too long. "
            "Allowed: up to 128 characters, or 4,300 digits.",
        ),
        (
            {"metadata": {"a": {"b": 1}}},
            "The metadata asked for is not usable. Allowed: 1 to 16 keys, each with a text of up "
            "to 128 characters, a number, a boolean or null.",
        ),
        ({"explain": "yes"}, "explain is not usable. Allowed: true or false."),
    ):
        with pytest.raises(InvalidQuery) as refused:
            RecallRequest.of("tea", settings=SETTINGS, **wrong)
        assert str(refused.value) == said


def test_an_option_that_there_is_not_is_refused_with_those_there_are() -> None:
    """A misspelt one is named beside all that recall, or context, takes; context takes more."""
    options = RecallArguments.__optional_keys__
    for form, taken in (
        (RecallRequest, options),
        (ContextRequest, options | {"tokens", "already"}),
    ):
        with pytest.raises(InvalidQuery, match=r"limitt is no option\.") as refused:
            form.of("tea", settings=SETTINGS, limitt=3)
        assert set(str(refused.value.allowed).split(", ")) == taken


@pytest.mark.parametrize(
    ("option", "value", "allowed"),
    [
        *((name, "high", "0 to 1") for name in ("min_confidence", "min_selectivity", "min_score")),
        *((name, "noon", "timezone") for name in ("as_of", "valid_at")),
    ],
)
def test_a_value_of_another_type_is_refused_with_what_it_may_be(
    option: str, value: str, allowed: str
) -> None:
    """A share, or a moment, that is given as a word."""
    with pytest.raises(InvalidQuery) as refused:
        RecallRequest.of("tea", settings=SETTINGS, **{option: value})
    assert allowed in str(refused.value.allowed)


def test_the_room_of_a_block_is_a_whole_number() -> None:
    """Part of a token is refused with what is allowed."""
    with pytest.raises(InvalidQuery) as refused:
        ContextRequest.within("tea", 100.5, SETTINGS, {})  # type: ignore[arg-type]  # on purpose
    assert str(refused.value) == "tokens is not usable. Allowed: a whole number."


def test_a_question_that_is_no_text_or_too_long_is_refused() -> None:
    """What is wrong, what is allowed, and the numbers for a program; the bound itself is taken."""
    most = SETTINGS.max_turn_bytes
    RecallRequest.of("x" * most, settings=SETTINGS)
    for text, said in (
        (" \u200b", "The query is empty. Allowed: text with a visible character."),
        (
            "\ud800",
            "The query holds a lone surrogate, so it is not valid Unicode. "
            "Allowed: text that can be encoded as UTF-8.",
        ),
        (
            "x" * (most + 1),
            f"The query has {most + 1} bytes. Allowed: up to {most} bytes of UTF-8.",
        ),
    ):
        with pytest.raises(InvalidQuery) as refused:
            RecallRequest.of(text, settings=SETTINGS)
        assert str(refused.value) == said
    assert refused.value.details == {"size": most + 1, "limit": most}


def test_every_filter_can_be_left_out() -> None:
    """None of the further arguments has to be given."""
    assert RecallArguments.__required_keys__ == frozenset()


def test_a_listing_is_narrowed_by_what_each_type_has() -> None:
    """Conditions by field; a type without role or form is not narrowed by it."""
    asked: dict[str, Any] = {
        "session_id": "s",
        "tags": ("a",),
        "without_tags": ("b",),
        "roles": ("user",),
        "forms": ("summary",),
        "run_id": "r",
    }
    common = [Equals("session_id", "s"), AnyOf("tags", ("a",)), Not(AnyOf("tags", ("b",)))]
    run = Equals("run_id", "r")
    assert narrowed(MemoryType.EPISODIC, **asked) == [*common, AnyOf("role", ("user",)), run]
    assert narrowed(MemoryType.SEMANTIC, **asked) == [*common, AnyOf("form", ("summary",)), run]
    assert narrowed(MemoryType.FACTUAL, **asked) == [*common, run]
    assert narrowed(MemoryType.SEMANTIC) == []


def test_a_recall_counts_from_when_it_was_known() -> None:
    """Looking back, a later recall had not happened yet; at that very moment it had."""
    memory = semantic("The user drinks tea.", 0, last_accessed_at=day(3))
    for then, recalled in ((day(2), None), (day(3), day(3)), (day(4), day(3))):
        assert Visibility(now=day(9), as_of=then).recalled(memory) == recalled
    never = semantic("The user drinks tea.", 0)
    assert Visibility(now=day(9)).recalled(never) is None


def test_stale_memories_count_unless_they_are_left_out() -> None:
    """By default what was not used for long is an answer like any other."""
    assert Visibility(now=day(9)).counts(STALE)
    assert not Visibility(now=day(9), include_stale=False).counts(STALE)
    # Which ones were stale then is not known.
    assert Visibility(now=day(9), as_of=day(9), include_stale=False).counts(STALE)


def test_the_schema_of_a_question_names_what_may_be_chosen() -> None:
    """Roles, types and forms are names from a list, so that clients are made with them."""
    fields = RecallRequest.model_json_schema()["properties"]
    for field, names in (
        ("roles", ROLES),
        ("memory_types", STORED_TYPES),
        ("forms", [*MemoryForm]),
    ):
        chosen = fields[field]["anyOf"][0]["items"]
        assert chosen == {"type": "string", "enum": [str(name) for name in names]}
