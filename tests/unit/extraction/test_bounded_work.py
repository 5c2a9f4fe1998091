"""No turn costs more than its length: every reader of text, every pattern.

``ENGRAM_PUMP_SEED`` repeats a run; each failure names it.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable

import pytest

from engram.language.text import collapsed
from tests.support.pumped_texts import (
    ENTRY_POINTS,
    Pumped,
    Read,
    drawn,
    in_sentences,
    literals,
    pumped,
    read_in_sentences,
    read_whole,
    seconds,
)

SEED = int(os.environ.get("ENGRAM_PUMP_SEED", random.SystemRandom().randrange(2**32)))
KB = 1024
WHOLE = 32 * KB
# For a whole turn; a quarter of a turn gets three quarters of it, since some readers read no more.
BAR = 0.3
BAR_OF_A_QUARTER = 0.75 * BAR
# Below this a time is noise.
FLOOR = 0.02
TIMES = 5
# So that several processes share the patterns.
PARTS = 4
SIGNS = ("…", "a-", "x,", "A", "Aa", "a", "1", "'", "I")

FOUND = {
    "spaces in a sentence": pumped("I live in Oslo", " ", suffix="x", size=WHOLE),
    "names after a long word": pumped("", "a", " Bob.", size=WHOLE),
    "names after a hyphenated word": pumped("", "a-", " Bob.", size=WHOLE),
    "dots after a denial": pumped("not ", ".", suffix="a", size=WHOLE),
    "one word without an end": pumped("lucky ", "a", size=WHOLE),
    "capitalised words without an end": pumped("Actually, ", "Bob ", size=WHOLE),
    "hardly an address": pumped("pregnant ", "a@b", suffix=" Bob.", size=WHOLE),
    "contractions without an end": pumped("I don't eat meat", "'s ", suffix=" Bob.", size=WHOLE),
    "an order of full stops": pumped("sorry, I meant ", "Bob. ", suffix="\n", size=WHOLE),
    "one short statement": pumped("my name is ", "I live in Oslo. ", suffix="'", size=WHOLE),
    "digits without a mail": pumped("misspelt ", "12", suffix=".", size=WHOLE),
    "quotations that only open": pumped("a@", ":“role:", suffix="!", size=WHOLE),
    "guillemets that only open": pumped("I said ", "«", size=WHOLE),
    "fences that never close": pumped("", "```a\n", size=WHOLE),
    "fences of many lengths": pumped("", *(f"{'~' * n}a\n" for n in range(3, 100)), size=WHOLE),
    "combining marks": pumped("a", "\u0316\u0301", size=WHOLE),
    "a tilde for a promise": pumped("I promised to send ", "~", suffix=" pounds", size=WHOLE),
    "a condition on each clause": pumped("search ", ":i a'a ", "<😀", suffix=" ago", size=WHOLE),
    "numbers of nothing": pumped("I promised to send ", "1 ", suffix="a@b.co", size=WHOLE),
    "addresses behind a name": pumped("I'm Bob", "a@b.co<", suffix=" x", size=WHOLE),
    "questions of one word": pumped("I used to ", "? and ", suffix=" I'll do it", size=WHOLE),
    "words in columns": pumped("", "total          ", suffix="x", size=WHOLE),
    "addresses of machines": pumped("http://", "1.2.3.4 ", suffix=" Bob.", size=WHOLE),
}


def over(name: str, texts: list[Pumped], bar: float) -> list[str]:
    """The texts that take longer, with their times."""
    read = ENTRY_POINTS[name]
    # Compiling patterns is no part of reading.
    for text in ("I live in Oslo. I don't eat meat. My sister Anna said so yesterday.", "x"):
        read(text)
    took = [(seconds(read, one.text, bar=bar), one) for one in texts]
    slow = sorted((t for t in took if t[0] > bar), key=lambda t: -t[0])
    return [f"{t:.2f} s: {one} (seed {SEED})" for t, one in slow[:10]]


@pytest.mark.parametrize("name", ENTRY_POINTS)
def test_what_once_froze_a_reader_is_read_at_once(name: str) -> None:
    """The largest turn of each kind that took seconds to hours takes less than the bar."""
    assert not over(name, list(FOUND.values()), BAR)


@pytest.mark.parametrize("name", ENTRY_POINTS)
def test_no_reader_needs_more_than_a_text_is_long(name: str) -> None:
    """Twenty texts of prefix, pump and suffix are each read within the bar."""
    chance = random.Random(f"{SEED} {name}")  # noqa: S311 - a seed makes a run repeatable
    assert not over(name, [drawn(chance, 8 * KB) for _ in range(20)], BAR_OF_A_QUARTER)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", ENTRY_POINTS)
def test_no_reader_needs_more_than_the_largest_turn_is_long(name: str) -> None:
    """Two thousand texts of the largest size are each read within the bar."""
    chance = random.Random(f"{SEED} {name}")  # noqa: S311 - a seed makes a run repeatable
    assert not over(name, [drawn(chance, WHOLE) for _ in range(2000)], BAR)


def growth(one: Read, *, whole: bool, chance: random.Random, tries: int) -> list[str]:
    """Pumps with which four times the text takes more than five times as long."""
    own = [word for word in literals() if word in one.pattern.pattern] or ["a"]
    found: list[str] = []

    def read(text: str) -> object:
        if whole:
            return sum(1 for _ in one.pattern.finditer(text))
        in_sentences(one.pattern, text)
        return None

    for _ in range(tries):
        pump = chance.choice((chance.choice(own), drawn(chance, 100).pumps[0]))
        pump += chance.choice(("", " ", "a"))
        prefix = chance.choice((" ", f"{chance.choice(own)} "))
        # As rules read it: with white space made short.
        small, large = (
            collapsed(pumped(prefix, pump, size=size).text).text for size in (8 * KB, WHOLE)
        )
        # What truly grows too fast does so each time; one measurement in some thousands is off.
        if all(over_times(read, small, large) for _ in range(3)):
            found.append(f"{one.name}: {prefix!r} + {pump!r} (seed {SEED})")
    return found


def over_times(read: Callable[[str], object], small: str, large: str) -> bool:
    """Whether the large text takes more than the bar's times as long as the small one."""
    # A pattern that is searched for here, and only tried at the beginning elsewhere, takes long.
    most = TIMES * max(FLOOR, seconds(read, small, bar=BAR))
    return seconds(read, large, bar=most) > most


@pytest.mark.parametrize("part", range(PARTS))
def test_words_of_a_pattern_repeated_take_it_in_proportion(part: int) -> None:
    """Each word of each pattern that is searched for in a turn, and signs, in 1 KB and in 4."""
    known = sorted(literals())
    for one in read_whole()[part::PARTS]:
        own = [word for word in known if word in one.pattern.pattern]
        pumps = (f"{word}{end}" for word in (*own[:60], *SIGNS) for end in (" ", "", "a"))
        assert [pump for pump in pumps if grows_with_the_square(one, pump)] == [], one.name


def grows_with_the_square(one: Read, pump: str) -> bool:
    """Whether four times the text takes far more than four times as long."""

    def processor_time(size: int) -> float:
        text = collapsed(pumped(" ", pump, size=size).text).text
        begun = time.process_time()
        for _ in one.pattern.finditer(text):
            pass
        return time.process_time() - begun

    # What takes no longer is no trouble in the largest turn either.
    if (small := processor_time(KB)) < 0.0015 or processor_time(4 * KB) < 7 * small:
        return False
    # The least of some: what else the machine does takes its share of each, and not the same one.
    small, large = (min(processor_time(size) for _ in range(5)) for size in (KB, 4 * KB))
    return large >= 7 * small


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("whole", [True, False], ids=["in a turn", "in a sentence"])
def test_every_pattern_grows_with_the_text(whole: bool, part: int) -> None:
    """Any pumps, for every pattern that is searched for in a turn, or in a sentence."""
    chance = random.Random(SEED + part)  # noqa: S311 - a seed makes a run repeatable
    patterns = read_whole() if whole else read_in_sentences()
    assert not [
        found
        for one in patterns[part::PARTS]
        for found in growth(one, whole=whole, chance=chance, tries=10 if whole else 5)
    ]
