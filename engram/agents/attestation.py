"""Whether a turn's own words bear out what a model concludes from them.

A model reads fluently, and misreads now and then: it takes what is denied, asked or supposed, or
told of somebody else, for what is so of the user, and it dates what nobody dated. The quotation
that it gives for that is cut to fit. Here the sentence around it is read again, by rule: what
speaks against the model is known in English only.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import cache
from typing import Final, NamedTuple

from engram.domain.identity import normalise
from engram.domain.memories import Episode, Slot
from engram.domain.slots import USER, WORKS_AT
from engram.language.dates import Start
from engram.language.loose_dates import HOLIDAY
from engram.language.negation import find_negations
from engram.language.negation_scope import denies
from engram.language.periods import starts_told
from engram.language.statements.clauses import LONGEST_SENTENCE
from engram.language.statements.predicates import RuleStatement
from engram.language.statements.reading import everything
from engram.language.statements.taken_back import LIVES_IN, bare
from engram.language.text import fold, is_past, plain, split_sentences
from engram.language.vocabulary import alternatives, expression, expression_text, vocabulary

_TABLE: Final = "attestation"
A_DAY: Final = timedelta(days=1)
"""A day that is named without its zone may be the one on which it was said."""
# As far back as people count without a digit, in a language whose words for that are not known.
_FAR: Final = timedelta(days=3660)
# What is so of a person, and said of others in the same words.
_OF_ANYBODY: Final = frozenset(
    {
        *(LIVES_IN, WORKS_AT, "works as", "is called", "is from", "was born in", "was born on"),
        *("studies at", "is enrolled at", "plays for", "is a citizen of"),
    }
)


class Quoted(NamedTuple):
    """Words of a turn, and the turn.

    Attributes:
        words: As they stand in it.
        turn: In which they were said.
    """

    words: str
    turn: Episode

    @property
    def sentence(self) -> str:
        """The sentence in which they stand, or several of them, with the mark that ends it."""
        content = self.turn.content
        begin = content.find(self.words)
        if begin < 0:
            return self.words
        end = begin + len(self.words)
        around = [
            one
            for one in split_sentences(plain(content))
            if one.start < end and begin < one.end + len(one.mark)
        ]
        if not around:
            return self.words
        return content[around[0].start : around[-1].end + len(around[-1].mark)].strip()


def undenied(quoted: Quoted, slot: Slot) -> str:
    """The quoted words without those that deny what the slot says.

    "I don't use MongoDB any more" has none left for somebody who uses it, however little of it is
    quoted; "I never liked tea, but now I like tea" has.
    """
    content, speaker = quoted.turn.content, quoted.turn.speaker
    own = slot
    if speaker is not None and slot.subject == normalise(speaker):
        own = slot.model_copy(update={"subject": USER})
    left = content
    for denial in find_negations(content, user_name=speaker):
        if denies(denial, own):
            left = left.replace(denial.evidence, " " * len(denial.evidence))
    begin = content.find(quoted.words)
    if left == content or begin < 0 or quoted.words in left:
        return quoted.words
    return left[begin : begin + len(quoted.words)]


def is_asserted_anew(quoted: Quoted, slot: Slot) -> bool:
    """Whether the sentence says after all what it denies: "I never liked tea, but now I do"."""
    said = fold(plain(quoted.sentence))
    if expression(_TABLE, "does_now").search(said):
        return True
    likes = expression(_TABLE, "likes").fullmatch(slot.predicate)
    return likes is not None and expression(_TABLE, "likes_it").search(said) is not None


def is_told(quoted: Quoted, slot: Slot, thing: str) -> bool:
    """Whether the sentence around the words may say it of the user: not of others, no question.

    Args:
        quoted: The words.
        slot: What is concluded from them, of the user.
        thing: Its object, as the turn spells it.
    """
    up_to = _up_to(thing, quoted)
    before = expression(_TABLE, "turned_round").sub("", fold(plain(up_to)))
    if expression(_TABLE, "asked_or_supposed").search(before):
        return _presupposed().search(before) is not None
    somebody = _somebody_else().search(before) if slot.predicate in _OF_ANYBODY else None
    if somebody is None:
        return True
    after = fold(plain(quoted.sentence[len(up_to) :]))
    if expression(_TABLE, "and_the_speaker").search(after):
        return True
    verb = somebody["verb"]
    return not (verb.endswith("s") or is_past(verb))


def _up_to(thing: str, quoted: Quoted) -> str:
    """The sentence up to the thing in the quoted words, or up to their end."""
    sentence = quoted.sentence
    begin = sentence.find(quoted.words)
    end = begin + len(quoted.words)
    at = fold(sentence).find(fold(thing), begin, end) if thing else -1
    return sentence[: at if at >= 0 else end]


@cache
def _somebody_else() -> re.Pattern[str]:
    """Up to its end the text is about somebody else: "my sister lives in"."""
    return re.compile(_with_relations("of_others"))


@cache
def _presupposed() -> re.Pattern[str]:
    """Up to its end the text names what the user has: "should I tell my wife"."""
    return re.compile(_with_relations("presupposed"))


def _with_relations(name: str) -> str:
    relations = alternatives(vocabulary().relations)
    return expression_text(_TABLE, name).replace("RELATION", f"(?:{relations})")


def placed(
    moment: datetime,
    thing: str,
    quoted: Sequence[Quoted],
    sources: Sequence[Episode],
    heard: Sequence[Episode],
) -> datetime | None:
    """When it happened, as far as anything that was said says so.

    Args:
        moment: When it happened by the model.
        thing: The object of what happened; empty where there is none.
        quoted: From which words it concluded that.
        sources: The turns of those.
        heard: The turns with which those were understood.

    Returns:
        The moment; the one that the words plainly tell, where they tell another; None where
        nobody did.
    """
    said_at = max(episode.said_at for episode in sources)
    if any(starts_told(one.sentence, one.turn.said_at) for one in quoted):
        told = {start for one in quoted for start in _began(thing, one)}
        # What is to come, and which of several times is meant, models know best.
        known_best = moment > said_at + A_DAY or str(moment.year) in _joined(heard)
        plain_one = next(iter(told)) if len(told) == 1 and not known_best else None
        return plain_one.at if plain_one and not _fits(moment, plain_one) else moment
    away = abs(moment - said_at)
    if away <= A_DAY or _names_a_time().search(plain(_joined(heard))):
        return moment
    english = expression(_TABLE, "english", exact_case=True)
    in_english = english.search(plain(_joined(sources))) is not None
    return None if in_english or away > _FAR else moment


def _joined(turns: Sequence[Episode]) -> str:
    return " ".join(episode.content for episode in turns)


def _began(thing: str, quoted: Quoted) -> list[Start]:
    """When the thing began by its own clause, where that is plain enough for the rules.

    A time may be that of something else: "I told you yesterday that I joined Acme", "last week
    I celebrated ten years at Acme".
    """
    clauses = expression(_TABLE, "between_clauses").split(quoted.sentence)
    named = [one for one in clauses if thing and fold(thing) in fold(one)]
    if len(named) != 1 or expression(_TABLE, "dates_something_else").search(fold(named[0])):
        return []
    said_at = quoted.turn.said_at
    told, elsewhere = starts_told(named[0], said_at), starts_told(quoted.sentence, said_at)
    read = any(one.begins and one.holds for one in _read_of(thing, named[0]))
    return told if read and set(told) == set(elsewhere) else []


@cache
def _names_a_time() -> re.Pattern[str]:
    """What may say when something was, or with what else it was."""
    text = expression_text(_TABLE, "names_a_time").replace("FEAST", HOLIDAY)
    return re.compile(text, re.I)


def _fits(moment: datetime, told: Start) -> bool:
    """Whether a moment lies in what is told, or a day beside it."""
    within, around = told.within, (moment - A_DAY, moment, moment + A_DAY)
    return within is None or any(within.holds(one) for one in around)


def by_rule(predicate: str, thing: str, quoted: Sequence[Quoted]) -> str | None:
    """Where the user now lives or for whom they now work, by the rules: the predicate of that.

    Args:
        predicate: "Moved to", "joined" or the like; what else is so of a thing stays that.
        thing: Where they "moved to", or whom they "joined".
        quoted: In which words they said so.
    """
    if not expression(_TABLE, "moves_or_joins").fullmatch(predicate.strip()):
        return None
    for one in quoted:
        for read in _read_of(thing, one.sentence):
            if read.begins and read.holds and read.predicate in {LIVES_IN, WORKS_AT}:
                return read.predicate
    return None


def _read_of(thing: str, text: str) -> list[RuleStatement]:
    """What the rules read of a thing."""
    named = bare(thing)
    return [one for one in everything(text[:LONGEST_SENTENCE]) if bare(one.thing.name) == named]
