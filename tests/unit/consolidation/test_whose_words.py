"""Whose words an ending has, and what a timeline is without what was refuted; no store is asked."""

from __future__ import annotations

from engram.consolidation.places import places
from engram.domain.memories import Episode
from engram.domain.plan import ConsolidationPlan
from tests.support.reconciliation import NOW, SCOPE, ReconciledKnowledge, on, said, stated

SWITCHED = said(3).model_copy(update={"content": "I switched to Neovim."})


def _of_vim(days: int, content: str = "I use Vim.", name: str = "") -> Episode:
    return said(days, name).model_copy(update={"content": content})


def _sources_of_the_end(known: ReconciledKnowledge) -> set[str]:
    [found] = [m for m in known.known.values() if "no longer" in m.content]
    return {*found.source_episode_ids}


def test_an_ending_that_does_not_name_what_it_ends_has_the_words_of_the_first_telling() -> None:
    """The turn that told it first is a source as well, and no later or other one."""
    first, second, other = _of_vim(1), _of_vim(2), _of_vim(1, "I use Emacs.", "b")
    known = ReconciledKnowledge()
    known.hear(first, stated(first, "uses", "Vim"))
    known.hear(other, stated(other, "uses", "Emacs"))
    known.hear(second, stated(second, "uses", "Vim"))
    known.hear(SWITCHED, stated(SWITCHED, "uses", "Vim", holds=False))
    assert _sources_of_the_end(known) == {SWITCHED.id, first.id}


def test_so_it_is_where_both_are_read_at_once() -> None:
    """What is stated beside it counts as what is known, as far as it was told before."""
    first, later = _of_vim(1), _of_vim(4)
    known = ReconciledKnowledge(episodes={e.id: e for e in (first, SWITCHED, later)})
    end = stated(SWITCHED, "uses", "Vim", holds=False)
    known.take([stated(later, "uses", "Vim"), end, stated(first, "uses", "Vim")])
    assert _sources_of_the_end(known) == {SWITCHED.id, first.id}


def test_an_ending_of_what_is_told_later_has_only_its_own_words() -> None:
    """Nothing before it put that into words."""
    later = _of_vim(4)
    known = ReconciledKnowledge(episodes={e.id: e for e in (SWITCHED, later)})
    known.take([stated(later, "uses", "Vim"), stated(SWITCHED, "uses", "Vim", holds=False)])
    assert _sources_of_the_end(known) == {SWITCHED.id}


def test_an_ending_that_names_what_it_ends_rests_on_itself() -> None:
    """Its turn has the words, so that another that is forgotten takes nothing along."""
    first = _of_vim(1)
    plain = said(3).model_copy(update={"content": "I don't use Vim any more."})
    known = ReconciledKnowledge()
    known.hear(first, stated(first, "uses", "Vim"))
    known.hear(plain, stated(plain, "uses", "Vim", holds=False))
    assert _sources_of_the_end(known) == {plain.id}


def test_whose_words_an_ending_has_is_kept_where_it_was_found_before() -> None:
    """Who read it knew of another turn; and what holds rests on who says so."""
    first, other = _of_vim(1), said(2)
    known = ReconciledKnowledge()
    known.hear(other)
    known.hear(first, stated(first, "uses", "Vim"))
    end = stated(SWITCHED, "uses", "Vim", holds=False, worded_by=(other.id,))
    known.hear(SWITCHED, end, stated(SWITCHED, "uses", "neovim"))
    assert _sources_of_the_end(known) == {SWITCHED.id, other.id}
    [neovim] = known.of("neovim")
    assert neovim.source_episode_ids == (SWITCHED.id,)


def test_what_is_said_to_be_over_and_has_no_slot_rests_on_its_turn() -> None:
    """It ends nothing that another turn could have put into words."""
    known = ReconciledKnowledge()
    known.hear(SWITCHED, stated(SWITCHED, None, "Vim", holds=False))
    assert _sources_of_the_end(known) == {SWITCHED.id}


# --- a timeline that is read again


def _cities(*names: str) -> ReconciledKnowledge:
    known = ReconciledKnowledge()
    for number, name in enumerate(names, start=1):
        known.hear(turn := said(number), stated(turn, "lives in", name))
    return known


def _refuted(known: ReconciledKnowledge, *names: str) -> ConsolidationPlan:
    """Take those for wrong, and read the timeline again; what was done."""
    for memory in tuple(known.known.values()):
        if memory.slot is not None and memory.slot.object in names:
            known.known[memory.id] = memory.model_copy(update={"refuted_at": on(9)})
    done = places(SCOPE, known.known.values(), NOW)
    known.apply(done)
    return done


def _ends(known: ReconciledKnowledge) -> dict[str, int | None]:
    """On which day each stopped to hold."""
    return {
        m.slot.object: (m.valid_to - on(0)).days if m.valid_to else None
        for m in known.known.values()
        if m.slot is not None and m.refuted_at is None
    }


def test_a_refuted_middle_leaves_no_gap() -> None:
    """What stood before it holds until what came after it."""
    known = _cities("porto", "oslo", "bern")
    _refuted(known, "oslo")
    assert _ends(known) == {"porto": 3, "bern": None}


def test_a_refuted_end_gives_its_place_back() -> None:
    """What it had replaced holds again; read once more, nothing changes."""
    known = _cities("porto", "oslo")
    assert _refuted(known, "oslo").actions
    assert _ends(known) == {"porto": None}
    assert places(SCOPE, known.known.values(), NOW).actions == ()


def test_what_says_the_same_as_what_was_refuted_stands_behind_it() -> None:
    """It has no place of its own; what the refuted one replaced has."""
    known = _cities("porto", "oslo")
    [oslo] = known.of("oslo")
    echo = oslo.model_copy(
        update={"id": "echo", "generation": 1, "superseded_by": oslo.id, "supersedes": ()}
    )
    known.known[echo.id] = echo
    _refuted(known, "oslo")
    known.known[echo.id] = echo
    known.apply(places(SCOPE, known.known.values(), NOW))
    assert known.known[echo.id] == echo
    assert _ends(known)["porto"] is None


def test_what_holds_again_after_a_middle_that_was_taken_for_wrong_is_a_part_of_its_own() -> None:
    """Porto, Oslo, Porto: one memory where Oslo was refuted is two where Oslo is back."""
    known = _cities("porto", "oslo")
    _refuted(known, "oslo")
    known.hear(turn := said(3), stated(turn, "lives in", "porto"))
    assert len(known.of("porto")) == 1
    [oslo] = known.of("oslo")
    known.known[oslo.id] = oslo.model_copy(update={"refuted_at": None})
    known.apply(places(SCOPE, known.known.values(), NOW))
    first, second = known.of("porto")
    assert (first.valid_to, second.valid_from, second.valid_to) == (on(2), on(3), None)
    assert (second.namespace, second.derived_at) == (SCOPE.namespace, NOW)
