"""Generated corrections: somebody says one thing, talks of others, and later says another."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

PLACES = "Lisbon Oslo Ghent Turin Lyon Graz Cork Leeds Kyoto Bergen Porto Nantes".split()
COMPANIES = "Ikea Siemens Nokia Philips Bosch Airbus Spotify Shell Nestle Lego Volvo Bayer".split()
JOBS = "nurse carpenter pilot baker lawyer plumber teacher chemist cook gardener".split()
COLOURS = "green blue yellow purple orange black white grey pink brown".split()
DISHES = "lasagna ramen paella goulash curry pizza risotto moussaka falafel sushi".split()
BOOKS = "Emma Dracula Ulysses Hamlet Walden Middlemarch Frankenstein Persuasion".split()
PEOPLE = "Anna Boris Clara Diego Elena Felix Greta Hugo Irene Jonas".split()

IDLE = (
    "I slept badly because of the storm.",
    "My neighbour borrowed the ladder again.",
    "The trains were late all week.",
    "We watched an old film about sailors.",
    "Dinner took three hours, as always.",
)


@dataclass(frozen=True, slots=True)
class Template:
    """One thing that can change: how it is first said, how it is corrected, how it is asked."""

    first: str
    then: tuple[str, ...]
    question: str
    values: tuple[str, ...]


TEMPLATES = (
    Template(
        "I live in {}.",
        ("I moved to {}.", "I live in {} now.", "Actually, I live in {}."),
        "Where does the user live?",
        tuple(PLACES),
    ),
    Template(
        "I work at {}.",
        ("I work at {} now.", "Actually, I work at {}."),
        "Where does the user work?",
        tuple(COMPANIES),
    ),
    Template(
        "I work as a {}.",
        ("I work as a {} now.",),
        "What does the user work as?",
        tuple(JOBS),
    ),
    Template(
        "My favourite colour is {}.",
        ("My favourite colour is {} now.", "Actually, my favourite colour is {}."),
        "What is the user's favourite colour?",
        tuple(COLOURS),
    ),
    Template(
        "My favourite dish is {}.",
        ("My favourite dish is {} now.",),
        "Which dish is the user's favourite?",
        tuple(DISHES),
    ),
    Template(
        "My favourite book is {}.",
        ("My favourite book is {} now.",),
        "What is the user's favourite book?",
        tuple(BOOKS),
    ),
    Template(
        "I am married to {}.",
        ("I am married to {} now.",),
        "Who is the user married to?",
        tuple(PEOPLE),
    ),
)


@dataclass(frozen=True, slots=True)
class Correction:
    """What is said first and later, both values, and the question."""

    first: str
    then: str
    old: str
    new: str
    question: str


def corrections(count: int) -> list[Correction]:
    """So many different ones, the templates in turn."""
    made = [_of(template) for template in TEMPLATES]
    mixed = [one for row in itertools.zip_longest(*made) for one in row if one is not None]
    return mixed[:count]


def _of(template: Template) -> list[Correction]:
    pairs = list(itertools.permutations(template.values, 2))
    # Neighbours in the list of pairs share their old value; a stride mixes them.
    stride = 7 if len(pairs) % 7 else 11
    return [
        Correction(
            template.first.format(old),
            template.then[number % len(template.then)].format(new),
            old,
            new,
            template.question,
        )
        for number in range(len(pairs))
        for old, new in (pairs[number * stride % len(pairs)],)
    ]
