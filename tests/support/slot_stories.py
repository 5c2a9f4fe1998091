"""Stories about slots that change, and a plain account of what holds after them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

Move = Literal["state", "correct", "repeat", "end", "deny"]


@dataclass(frozen=True)
class Kind:
    """How one predicate is spoken of.

    Attributes:
        states: Wordings that say it holds; of a change, or of what is.
        corrects: Wordings that mend what was said before.
        ends: Wordings that say it is over.
        denies: Wordings that say it is not so, of what never was.
        functional: Whether it holds one value at a time.
        alike: Of the values of a predicate that holds several, those of one kind.
        instead: Of the wordings that state, those that put a value in place of what is alike.
    """

    predicate: str
    values: tuple[str, ...]
    states: tuple[str, ...]
    corrects: tuple[str, ...] = ()
    ends: tuple[str, ...] = ()
    denies: tuple[str, ...] = ()
    functional: bool = True
    alike: tuple[str, ...] = ()
    instead: tuple[str, ...] = ()

    def replaced_by(self, value: str, wording: str) -> tuple[str, ...]:
        """What that statement of that value ends, of what is known beside it."""
        if wording not in self.instead or value not in self.alike:
            return ()
        return tuple(other for other in self.alike if other != value)


KINDS: Final = (
    Kind(
        "lives in",
        ("Lisbon", "Oslo", "Quito", "Ghent"),
        ("I live in {}.", "I moved to {}.", "These days I live in {}.", "I'm based in {} now."),
        ("Actually, I live in {}.", "Sorry, I meant {}: I live in {}."),
        ("I no longer live in {}.", "I don't live in {} any more.", "I've moved out of {}."),
    ),
    Kind(
        "works at",
        ("Northwind", "Rise", "Castellan", "Acme Labs"),
        ("I work at {}.", "I work for {}.", "I just started at {}.", "I've joined {}."),
        ("Actually, I work at {}.", "Sorry, I meant {}. I work at {}."),
        ("I no longer work at {}.", "I don't work at {} any more."),
    ),
    Kind(
        "works as",
        ("baker", "nurse", "welder", "pilot"),
        ("I work as a {}.", "I'm a {}.", "I now work as a {}."),
        ("Actually, I work as a {}.", "Let me correct that: I work as a {}."),
        ("I no longer work as a {}.", "I don't work as a {} any more."),
    ),
    Kind(
        "is called",
        ("Nora", "Katherine", "Imogen"),
        ("My name is {}.", "I'm called {}.", "Call me {}."),
        ("Actually, my name is {}.",),
    ),
    Kind(
        "is married to",
        ("Jonas", "Callum", "Henrik"),
        ("I'm married to {}.", "I married {}."),
        ("Actually, I'm married to {}.",),
        ("I'm no longer married to {}.",),
    ),
    Kind(
        "is from",
        ("Ghana", "Slovenia", "Peru"),
        ("I'm from {}.", "I come from {}."),
        ("Actually, I'm from {}.", "Correction: I'm from {}."),
    ),
    Kind(
        "favourite band",
        ("Khruangbin", "Portishead", "Can"),
        ("My favourite band is {}.", "My favorite band is {}.", "My favourite band is now {}."),
        ("Actually, my favourite band is {}.",),
    ),
    Kind(
        "uses",
        ("Trello", "Linear", "Notion"),
        ("I use {}.", "I'm using {} now.", "I still use {}.", "We use {}."),
        ("Actually, I use {}.",),
        ("I no longer use {}.", "I don't use {} any more.", "I stopped using {}."),
        ("I don't use {}.",),
        functional=False,
        alike=("Trello", "Linear"),
        instead=("I'm using {} now.",),
    ),
    Kind(
        "likes",
        ("jazz", "chess", "rain"),
        ("I like {}.", "I love {}.", "I really like {}."),
        ("Actually, I like {}.",),
        ("I no longer like {}.", "I don't like {} any more."),
        ("I don't like {}.",),
        functional=False,
    ),
    Kind(
        "owns",
        ("cello", "drone", "Vespa"),
        ("I own a {}.",),
        (),
        ("I no longer own a {}.", "I sold my {}.", "I don't own a {} any more."),
        ("I don't own a {}.",),
        functional=False,
    ),
    Kind(
        "is allergic to",
        ("nuts", "cats", "penicillin"),
        ("I'm allergic to {}.", "I am allergic to {}."),
        ("Actually, I'm allergic to {}.",),
        ("I'm no longer allergic to {}.", "I'm not allergic to {} any more."),
        functional=False,
    ),
    Kind(
        "studies",
        ("geology", "law", "animation"),
        ("I study {}.", "I'm studying {}."),
        ("Actually, I study {}.",),
        ("I no longer study {}.", "I stopped studying {}."),
        functional=False,
    ),
)


@dataclass
class Held:
    """One value, from the turn that began it until something ended it."""

    value: str
    turns: list[int]
    ended: bool = False


@dataclass
class Account:
    """What a plain reading of a story comes to: by predicate, or by predicate and value."""

    timelines: dict[tuple[str, ...], list[Held]] = field(default_factory=dict)

    def current(self, key: tuple[str, ...]) -> Held | None:
        """What holds under a key."""
        told = self.timelines.get(key, [])
        return told[-1] if told and not told[-1].ended else None

    def hear(self, kind: Kind, value: str, *, holds: bool, turn: int) -> None:
        """Take a statement for what it says."""
        key = (kind.predicate,) if kind.functional else (kind.predicate, value.lower())
        held = self.current(key)
        if not holds:
            if held is not None and held.value == value.lower():
                held.ended = True
        elif held is not None and held.value == value.lower():
            held.turns.append(turn)
        else:
            if held is not None:
                held.ended = True
            self.timelines.setdefault(key, []).append(Held(value.lower(), [turn]))


@dataclass(frozen=True)
class Choice:
    """What happens next in a story, as far as the story so far allows it."""

    kind: int
    move: Move
    value: int
    wording: int
    same_turn: bool


def told(choices: Sequence[Choice]) -> tuple[list[str], Account]:
    """The turns of a story, and what a plain reading of them comes to."""
    turns, account = list[str](), Account()
    spoken: set[int] = set()
    for choice in choices:
        number = choice.kind % len(KINDS)
        kind = KINDS[number]
        # In one turn each slot is spoken of once: two values in one breath are no change.
        # What is mended is what was said in an earlier turn, not in the sentence before.
        alone = choice.move == "correct" or number in spoken
        if turns and choice.same_turn and not alone:
            spoken.add(number)
        else:
            turns.append("")
            spoken = {number}
        wording, value, holds = _said(kind, choice, account)
        words = wording.format(*[value] * wording.count("{}"))
        turns[-1] = f"{turns[-1]} {words}".strip()
        for other in kind.replaced_by(value, wording):
            account.hear(kind, other, holds=False, turn=len(turns) - 1)
        account.hear(kind, value, holds=holds, turn=len(turns) - 1)
    return turns, account


def _said(kind: Kind, choice: Choice, account: Account) -> tuple[str, str, bool]:
    value = kind.values[choice.value % len(kind.values)]
    key = (kind.predicate,) if kind.functional else (kind.predicate, value.lower())
    held = account.current(key)
    spelled = {v.lower(): v for v in kind.values}
    move = choice.move
    if move in {"end", "repeat"} and held is None:
        move = "state"
    elif move in {"end", "repeat"} and held is not None:
        value = spelled[held.value]
    wordings = {
        "state": kind.states,
        "repeat": kind.states,
        "correct": kind.corrects,
        "end": kind.ends,
        "deny": kind.denies if held is None else kind.ends,
    }[move] or kind.states
    holds = wordings is not kind.ends and wordings is not kind.denies
    return wordings[choice.wording % len(wordings)], value, holds
