"""Long turns in a block for a prompt: what answers is kept, whatever the room."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from engram.domain.memories import MemoryForm
from engram.domain.turns import context_block
from engram.language.text import bare_stems
from engram.recall.context import CHARACTERS_PER_TOKEN, block_of
from engram.recall.shortened import shortened
from tests.support.recall_memories import Memories, episode, semantic

QUESTION = "What is the alarm code of the cellar?"
ANSWER = "The alarm code of the cellar is 4711."
LONG = f"{'Notes of the tour of the house. ' * 40}{ANSWER} {'Thanks to all. ' * 30}".strip()
FAMILY = "👩‍👩‍👧‍👦"
FLAG = "🇵🇹"


@pytest.mark.parametrize("tokens", [50, 100, 170, 200, 1000])
async def test_the_answer_within_a_long_turn_is_told(memories: Memories, tokens: int) -> None:
    """Cut on both sides, marked as cut, within the tokens and between whole fences."""
    await memories.keep(episode(LONG, 1))
    block = block_of(await memories.ask(QUESTION), tokens=tokens, query=QUESTION)
    assert "4711" in block
    assert len(block) <= tokens * CHARACTERS_PER_TOKEN
    line = block.splitlines()[1]
    assert block == context_block([line])
    told = line.removeprefix("- ").removesuffix(" (user, 2024-01-02; session s1)")
    assert (told == LONG) is (tokens == 1000)
    assert tokens == 1000 or (told.startswith("... ") and told.endswith(" ..."))
    assert told.removeprefix("... ").removesuffix(" ...") in LONG


async def test_others_come_before_more_of_the_best(memories: Memories) -> None:
    """A long turn takes what room the others leave, and none of theirs."""
    damp = episode("The cellar is damp.", 2)
    await memories.keep(episode(LONG, 1), damp)
    block = block_of(await memories.ask(QUESTION), tokens=300, query=QUESTION)
    assert damp.content in block
    assert ANSWER in block
    assert 1100 < len(block) <= 300 * CHARACTERS_PER_TOKEN


async def test_what_has_no_word_of_the_question_takes_no_more_room(memories: Memories) -> None:
    """A log that was pasted once does not fill every prompt."""
    await memories.keep(episode(LONG, 1))
    question = "When is my gym open?"
    hits = await memories.ask(question)
    assert len(hits) == 1
    assert len(block_of(hits, tokens=1000, query=question)) < 800


async def test_a_quotation_of_what_was_cut_off_keeps_its_line(memories: Memories) -> None:
    """Only a turn that stands there whole says what it is quoted for."""
    turn = episode(LONG, 1)
    words, form = "Notes of the tour of the house.", MemoryForm.ARTIFACT
    await memories.keep(turn, semantic(words, 1, source_episode_ids=(turn.id,), form=form))
    block = block_of(await memories.ask(QUESTION), tokens=200, query=QUESTION)
    assert (block.count("\n- "), block.count("quoted")) == (2, 1)


@given(st.text(min_size=1), st.integers(40, 200), st.text())
@example(ANSWER * 20, 60, QUESTION)
@example("cellar " * 500, 40, QUESTION)
@example("x" * 1000, 40, "")
def test_what_is_shortened_has_room_and_stands_in_the_text(
    text: str, most: int, query: str
) -> None:
    """Never longer than allowed, never nothing of a text that has something to see."""
    text = " ".join(text.split())
    told = shortened(text, most, bare_stems(query))
    assert len(told) <= most
    kept = told if told == text else told.removeprefix("... ").removesuffix(" ...")
    assert kept in text
    assert kept or not text


@pytest.mark.parametrize("sign", [FAMILY, FLAG, "e\u0301", "👍🏽", "ก็"])
def test_what_is_seen_as_one_sign_is_not_cut(sign: str) -> None:
    """Not a family, a flag, an accent, a skin tone or a vowel above, at either end."""
    for most in range(40, 60):
        told = shortened(sign * 100, most, frozenset())
        assert told.replace(sign, "") == " ..."
        told = shortened(f"{sign * 50} cellar {sign * 50}", most, bare_stems("cellar"))
        assert told.replace(sign, "").split() == ["...", "cellar", "..."]


def test_of_a_text_without_sentences_the_words_asked_for_are_kept() -> None:
    """A list without a full stop is cut around what the question names."""
    items = ", ".join(f"item {n} of the house" for n in range(60))
    text = f"{items}, alarm code 4711 of the cellar, {items}"
    assert "4711 of the cellar" in shortened(text, 120, bare_stems(QUESTION))
