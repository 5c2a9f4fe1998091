"""Names are taken for one bearer by decision, never by accident."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engram.digests.entities import (
    Entity,
    _FullNames,
    bearers_of,
    fits_short,
    project_core,
    resolve,
)
from engram.digests.mentions import MentionEvidence, clues_in, memory_clues
from engram.digests.names import names_in
from engram.domain.digests import EntityKind, Mention
from tests.support.digest_memories import known
from tests.support.entity_labels import are_one, find, score
from tests.support.sizes import examples


def told(texts: Sequence[str]) -> tuple[Entity, ...]:
    """Who is who, by these texts."""
    clues = MentionEvidence()
    for text in texts:
        clues = clues.plus(clues_in(text, text))
    return resolve(clues.mentions, clues.equations)


def test_labelled_pairs() -> None:
    """On the labelled pairs: precision at least .95, recall at least .9."""
    measured = score("entities.seen.jsonl")
    assert measured.precision >= 0.95, measured.wrong
    assert measured.recall >= 0.9, measured.missed


@pytest.mark.parametrize(
    ("texts", "first", "second", "same"),
    [
        (["Sam Okafor is my boss.", "Sam called."], "Sam Okafor", "Sam", True),
        (["Sam Okafor is my boss.", "Sam Pike is my barber.", "Sam called."], "Sam Okafor",
         "Sam", False),
        (["My brother Sam is here.", "My boss Sam is not."], "brother Sam", "boss Sam", False),
        (["My wife Anna cooks.", "My husband Ben and my wife Anna."], "Anna", "Ben", False),
        (["Ask Tom Reed at tom@x.example.", "Mail Ana Reed at tom@x.example."], "Tom Reed",
         "Ana Reed", False),
        (["Sam Okafor is my boss.", "I work at Okafor."], "Sam Okafor", "Okafor", False),
        (["I live in Florence.", "My aunt Florence sings."], "city of Florence",
         "aunt Florence", False),
        (["Mr Lee called.", "Mrs Lee called."], "Mr Lee", "Mrs Lee", False),
        (["Google bought it.", "Google Drive is full."], "Google", "Google Drive", False),
        (["We renamed Atlas to Beacon."], "Atlas", "Beacon", True),
        (["Joe Kim senior founded it.", "His son Joe Kim junior runs it."], "Joe Kim senior",
         "Joe Kim junior", False),
        (["Samuel Ortiz is here.", "Sam Ortiz called."], "Samuel Ortiz", "Sam Ortiz", True),
        (["Sergeant Miles Cooper came.", "Cooper took notes."], "Miles Cooper", "Cooper", True),
        (["Alice Cooper and Miles Cooper came.", "Cooper left."], "Miles Cooper", "Cooper", False),
        (["Isabella Conti, Isa to her friends, won."], "Isabella Conti", "Isa", True),
        (["Lucía Herrera writes.", "Lucia Herrera called."], "Lucía Herrera",
         "Lucia Herrera", True),
    ],
)  # fmt: skip
def test_who_is_one(texts: list[str], first: str, second: str, *, same: bool) -> None:
    """One bearer where only one is possible; two where anything speaks for two."""
    assert are_one(told(texts), first, second) is same


def test_a_second_bearer_splits_what_was_one() -> None:
    """A first name belongs to the only bearer until another one shows up."""
    before = told(["Sam Okafor is my boss.", "Sam called."])
    assert [entity.names for entity in before] == [("Sam Okafor", "Sam")]
    after = told(["Sam Okafor is my boss.", "Sam called.", "Sam Pike is my barber."])
    assert sorted(entity.names for entity in after) == [("Sam",), ("Sam Okafor",), ("Sam Pike",)]


def test_every_merge_says_why() -> None:
    """Names that were taken for one bearer carry the reason and its source."""
    (robert,) = told(["My uncle is Robert, everyone calls him Bob.", "Bob fixed it."])
    (merge,) = [m for m in robert.merges if m.reason == "is called so"]
    assert {merge.first, merge.second} == {"Robert", "Bob"}
    assert merge.source_ids == ("My uncle is Robert, everyone calls him Bob.",)
    assert robert.kind is EntityKind.PERSON


TEXTS = (
    "Sam Okafor is my boss.",
    "Sam Pike is my barber.",
    "Sam called.",
    "My brother Sam is here.",
    "Everyone calls Samantha Reyes Sam.",
    "Samantha Reyes, known as Sammy, is my friend.",
    "Sammy is on +44 7911 123456.",
    "Ms Reyes is on +44 7911 123456.",
    "Project Heron is late.",
    "Heron is our project.",
    "Another Sam Pike from Leeds wrote.",
    "I live in Reyes.",
)


@given(st.permutations(TEXTS), st.integers(1, len(TEXTS)))
@settings(max_examples=examples(60), deadline=None)
def test_the_order_in_which_it_is_told_does_not_matter(texts: list[str], count: int) -> None:
    """Resolution is a function of what is told, and partitions the names."""
    entities = told(texts[:count])
    assert told(sorted(texts[:count])) == entities
    borne = [key for entity in entities for key in entity.bearers]
    assert len(borne) == len(set(borne))


@given(st.lists(st.sampled_from(TEXTS), unique=True))
@settings(max_examples=examples(60), deadline=None)
def test_resolving_again_what_came_out_changes_nothing(texts: list[str]) -> None:
    """What an entity keeps is enough to find it again; kinds are never mixed."""
    entities = told(texts)
    again = resolve(
        (mention for entity in entities for mention in entity.mentions),
        (equation for entity in entities for equation in entity.equations),
    )
    assert [entity.names for entity in again] == [entity.names for entity in entities]
    for entity in entities:
        assert len({m.kind for m in entity.mentions} - {EntityKind.UNKNOWN}) <= 1


def test_a_description_finds_its_bearer() -> None:
    """An address, a role or a full name means one; a bare name may mean several."""
    entities = told(["Sam Pike writes from sam@x.example.", "My brother Sam is here."])
    assert [entity.name for entity in find(entities, "sam@x.example")] == ["Sam Pike"]
    assert len(find(entities, "brother Sam")) == 1
    assert find(entities, "Nobody") == ()


def test_short_forms_are_looked_for_where_a_full_name_has_something_in_common() -> None:
    """Whatever could be short for a name is held against it, and far from everything is."""
    words = ["", "Dr", "William", "W", "Hart", "senior"]
    names = {" ".join(" ".join(some).split()) for some in product(words, repeat=3)} - {""}
    names |= {"Will", "Will Hart", "WHS", "William Hart Shah", "project Heron", "Heron", "Oslo"}
    bearers = bearers_of(Mention(name=name, source_id="m") for name in sorted(names))
    full_names = _FullNames(bearers)
    held = 0
    for short in bearers:
        sharing = full_names.sharing(short)
        held += len(sharing)
        could_be = [
            b for b in bearers if fits_short(short, b) or project_core(b.name_key) == short.name_key
        ]
        assert {b.key for b in could_be} <= {b.key for b in sharing}
    assert held < len(bearers) ** 2


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Sure, write to Ann.", ["Ann"]),
        ("Don't call. We're away. She'll ask Bob.", ["Bob"]),
        ("My iPhone 17 and macOS.", []),
        ("I take size M, and so does Mary J. Blige.", ["Mary J. Blige"]),
        ("I work at St. Mary's Hospital in Leeds.", ["St. Mary's Hospital", "Leeds"]),
        ("Anna's hospital is St. Mary's.", ["Anna", "St. Mary"]),
        ("John O'Brien saw D'Angelo.", ["John O'Brien", "D'Angelo"]),
    ],
)
def test_contractions_interjections_and_single_letters_are_no_names(
    text: str, names: list[str]
) -> None:
    """Nor does a name begin inside a word; a possessive and what is so named are one."""
    assert [found.name for found in names_in(text)] == names


def test_a_letter_is_a_name_only_of_what_is_used() -> None:
    """Size M names nothing, and R is a language."""
    size = known("The user's size is M.", slot=("user", "size is", "M"), entities=("M.",))
    language = known("The user uses R.", slot=("user", "uses", "R"), entities=("R",))
    assert memory_clues(size).mentions == ()
    assert [mention.name for mention in memory_clues(language).mentions] == ["R"]


@pytest.mark.parametrize(
    ("content", "entities", "subject", "named"),
    [
        ("The user promised Sanjay a draft before Friday.", ("Sanjay", "Friday"), None, {"Sanjay"}),
        ("Hugo's class trip is June 16 to 20.", ("Hugo", "June"), None, {"Hugo"}),
        ("Aunt June lives in Oslo.", ("June",), "june", {"June"}),
        ("Ana moved to 9 Sept 8:30.", ("Ana", "Sept"), None, {"Ana"}),
        ("Ana moved to 9 November.", ("Ana", "9 November"), None, {"Ana"}),
        ("Jan lives in Oslo with 3 cats.", ("Jan",), "jan", {"Jan"}),
        ("She's called Renate.", ("She's", "Renate"), None, {"Renate"}),
        ("The offer runs until the 14th.", ("14th",), None, set()),
        ("Her birthday is on July 3.", ("Her",), "birthday", set()),
        ("Mrs is the user's teacher.", ("Mrs",), "mrs", set()),
        ("The new place is in Berchem.", ("Berchem",), "new place", {"Berchem"}),
        ("The Hague is on the sea.", (), "hague", {"Hague"}),
        ("Kranich signed for 80 seats.", ("Kranich",), "kranich", {"Kranich"}),
    ],
)
def test_days_pronouns_and_common_things_are_nobodys_names(
    content: str, entities: tuple[str, ...], subject: str | None, named: set[str]
) -> None:
    """What has a profile is a person, a place or a project, not a word that was taken for one."""
    slot = None if subject is None else (subject, "is", "x")
    memory = known(content, slot=slot, entities=entities)
    assert {mention.name.title() for mention in memory_clues(memory).mentions} == named
