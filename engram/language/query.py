"""What a question asks for: about whom, what kind of thing, which time."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from unicodedata import category

from engram.domain.kept import kept
from engram.domain.values import Period
from engram.language.calendar import MONTH_NAME, WEEKDAY
from engram.language.periods import period_named
from engram.language.text import (
    BARE_WORDS,
    SMALL_WORDS,
    WORDS_AND_SIGNS,
    content_words,
    is_past,
    plain,
    split_sentences,
    stem,
    topic_stems,
)
from engram.language.vocabulary import words_of_change

# --- what a question asks for: of whom, for what kind of thing, of which time
#
# Rules of English, none of them needed: what they do not see changes no order.

_FIRST_PERSON_WORDS = frozenset({"i", "me", "my", "mine", "myself", "we", "us", "our", "ours"})
_SECOND_PERSON_WORDS = frozenset({"you", "your", "yours", "yourself"})
USER, ASSISTANT = "user", "assistant"
"""The roles of who asks and who answers, as :attr:`Analysis.subjects` names them."""
_ASKS_TIME = re.compile(
    r"\b(when|how long|since when|what (?:date|day|month|year|time)"
    r"|which (?:date|day|week|month|year))\b",
    re.IGNORECASE,
)
_ASKS_NUMBER = re.compile(
    r"\bhow (?:many|much|old|often|far|big|tall|high|heavy)\b"
    r"|\bwhat\b(?! (?:is|was|are) wrong\b).{0,60}?"
    r"\b(?:number|price|cost|rent|fee|budget|salary|code|version|weigh|weight|dose|size|amount)s?\b",
    re.IGNORECASE,
)
_ASKS_REASON = re.compile(
    r"\bwhy\b|\bhow come\b|\bwhat(?:'s| (?:is|was|were|are))? the (?:reason|cause)|\bwhat caused\b",
    re.IGNORECASE,
)
_ASKS_NAME = re.compile(
    r"\b(who|whom|whose|where|which|names?|named|called|titles?)\b", re.IGNORECASE
)
# What the assistant said is asked for, not what it is to say: "which hotel did you suggest?".
_ASKS_WHAT_WAS_ANSWERED = re.compile(
    r"\byou(?:'d|'ve)? (?:(?:just|also|had|have|already|previously|once) )*(?:said|told|mentioned"
    r"|recommended|suggested|gave|given|provided|listed|explained|described|advised|wrote|proposed"
    r"|offered|shared)\b"
    r"|\b(?:did|had|have) you (?:say|said|tell|told|mention|recommend|suggest|give|given|provide"
    r"|list|explain|describe|advise|write|written|propose|offer|share)"
    r"|\byour (?:answer|advice|suggestion|recommendation|reply|list|explanation)"
    r"|\bour (?:(?:previous|last|earlier|past|prior) )?(?:conversation|chat|discussion)",
    re.IGNORECASE,
)
# A suggestion is wanted: its answer is in what was said of oneself in passing, in other words.
_ASKS_ADVICE = re.compile(
    r"\b(?:recommend(?!s\b)\w*|suggest(?:ions?)?|propose|advice|advi[sc]e|tips?|ideas?)\b"
    r"|\b(?:could|can|might|shall|should|may) (?:i|we)\b"
    r"|\b(?:pick|plan|choose|find|give|help) (?:me|us|a|an|my|our)\b"
    r"|\b(?:do|would) you think\b|\b(?:suits?|pleases?) (?:me|us)\b"
    r"|^(?:please )?(?:pick|choose|plan|book|order|buy|draft|design|prepare|organi[sz]e|set up)\b",
    re.IGNORECASE,
)
# The same, unless it is about what was: "what is best for my slides?", "what do I serve?",
# "which bouquet should be on the table?", "where to spend June?".
_WEIGHS_WHAT_TO_DO = re.compile(
    r"\b(?:best|better|right|good|nice|worth|sensible|suitable|safe|fun|ok|okay)\b"
    r"|\bfor (?:me|us|my|our)\b|\bshould\b|^(?:what|where|how|when) to\b"
    r"|\b(?:what|which|how)(?! (?:many|much|often|long|old)\b)(?: [\w'-]+){0,3} do (?:i|we)\b"
    r"|\bdo (?:i|we) need\b|^what about\b",
    re.IGNORECASE,
)
_VERBS = frozenset({"is", "are", "am", "do", "does", "has", "have", "will", "can"})
# Only a thing, and what it is for: "which swimming cap?", "what film with the family?"
_NAMES_A_THING = re.compile(
    r"^(?:what|which)(?: [\w'-]+){1,2}(?: (?:for|with|on|in|at) [^,;:]{1,40})?\?\s*$", re.IGNORECASE
)
# What was is a fact, and so is who somebody is.
_ASKS_WHAT_WAS = re.compile(
    r"\b(?:did|was|were|had|been|have (?:i|we)|(?:i|we|you)(?: have|['\u2019]ve))\b|^who",
    re.IGNORECASE,
)

# What happened, or what somebody else does: "what advice does Anna give?", "when did I find a
# flat?". What is open stands before it: "what should I wear to the wedding I was invited to?".
_ASKS_OF_WHAT_IS_DONE = re.compile(
    r"\b(?:when|where|why|what|which|who(?:m|se)?|how)"
    r"(?: (?!(?:should|could|can|would|may|might|shall|will|to|do|is|are|if|i|we|that)\b)"
    r"[\w'-]+){0,4}?"
    r" (?:did|does|was|were|had|has(?! (?:an?|the|to|no)\b)|(?:am i|are we) planning)\b",
    re.IGNORECASE,
)
# What is over is asked for.
_ASKS_FORMER = re.compile(
    r"\b(?:used? to|before|formerly|former|previous(?:ly)?|old|earlier|ex|no longer|any ?more|"
    r"stop(?:ped)?|quit|g[ai]ve(?:n)? up|left|leave|drop(?:ped)?|did|was|were|not|don't)\b",
    re.IGNORECASE,
)

# What somebody else advised is a fact: "which book did Anna recommend?".
_ASKS_WHAT_WAS_ADVISED = re.compile(
    r"\b(?:did|has|have|had)(?: [\w'-]+){1,5}? (?:recommend|suggest|advi[sc]e)(?:ed|d)?\b"
    r"|(?<![\w'-])(?!(?:is|are|be|being|been|was|were|i|we|would|your|a|any|most|highly|the|get)\b)"
    r"[\w'-]+ (?:recommended|suggested|advised)\b(?! (?:for|way|by)\b)",
    re.IGNORECASE,
)


class AskedFor(StrEnum):
    """A kind of thing that can be asked for."""

    TIME = "time"
    NUMBER = "number"
    NAME = "name"
    REASON = "reason"


@dataclass(frozen=True, slots=True)
class Analysis:
    """A question, understood as far as it goes.

    Attributes:
        subjects: Words that may name whom or what it is about, in lower case, with
            "user" for whoever asks of himself.
        asked: The kinds of thing it asks for.
        period: The time it names; None if it names none.
        advice: Whether it wants a suggestion.
        former: Whether it may ask for what is over.
    """

    subjects: frozenset[str]
    asked: frozenset[AskedFor]
    period: Period | None
    advice: bool = False
    former: bool = False


_ASKS = {
    AskedFor.TIME: _ASKS_TIME,
    AskedFor.NUMBER: _ASKS_NUMBER,
    AskedFor.NAME: _ASKS_NAME,
    AskedFor.REASON: _ASKS_REASON,
}


def analyse(query: str, now: datetime) -> Analysis:
    """What ``query`` asks for, asked at ``now``."""
    words = set(BARE_WORDS.findall(query.casefold()))
    answered = _ASKS_WHAT_WAS_ANSWERED.search(query) is not None
    asked = frozenset(kind for kind, pattern in _ASKS.items() if pattern.search(query))
    advice = (
        not answered
        and (_ASKS_ADVICE.search(query) is not None or _weighs_what_to_do(query, asked))
        and _ASKS_WHAT_WAS_ADVISED.search(query) is None
        and _ASKS_OF_WHAT_IS_DONE.search(query) is None
    )
    to_assistant = words & _SECOND_PERSON_WORDS and not words & _FIRST_PERSON_WORDS
    if answered or (to_assistant and not advice):
        words.add(ASSISTANT)
    elif advice or words & _FIRST_PERSON_WORDS:
        # "Can you tell me where I parked?" is addressed to the assistant, and about oneself; so
        # is whatever asks for advice.
        words.add(USER)
    return Analysis(
        subjects=frozenset(words - SMALL_WORDS),
        asked=asked,
        period=period_named(query, now),
        former=_ASKS_FORMER.search(query) is not None,
        advice=advice,
    )


_ASKS_FOR_A_NAME = re.compile(r"\b(?:names?|named|called|initials|spelt|spell)\b", re.IGNORECASE)


def in_the_users_place(query: str, name: str, now: datetime) -> str | None:
    """``query`` with "the user" where the user's own name stands; None where that is not asked.

    Not where the name itself is asked for ("Who is Kate?"), nor where the user speaks of
    himself beside it, nor of somebody with another surname. Who is called May or Austin can ask
    what happened in May, or at the Austin office.

    Args:
        query: A question.
        name: What the user is called, in any case; who has a surname is called by the first too.
        now: When it is asked.
    """
    words = set(BARE_WORDS.findall(query.casefold()))
    first = name.partition(" ")[0]
    if first.casefold() not in words or words & _FIRST_PERSON_WORDS:
        return None
    if _ASKS_FOR_A_NAME.search(query):
        return None
    own = re.compile(
        rf"(?<![\w@.-])(?i:{re.escape(name)}|{re.escape(first)})(?![\w@-]|\.\w| [A-Z])"
    )
    asked = own.sub(
        lambda found: "the user" if _stands_for_somebody(query, found, now) else found[0], query
    )
    rest = set(BARE_WORDS.findall(asked.casefold())) - SMALL_WORDS - {USER, "s"}
    return asked if asked != query and rest else None


# What says of which of several it is asked, and what is left of a question behind it.
_OWN_WHICH = (
    r"(?:(?:current|new|latest|actual|real|full|first|last|own|work|private|personal|business|home|"
    r"office|main|best|contact|postal|street|user) ){0,3}"
)
_OWN_WHAT = (
    r"(?:(?P<email>e-?mails?(?: address(?:es)?)?|mail address)"
    r"|(?P<phone>(?:(?:tele)?phone |mobile |cell(?:phone)? |landline )?numbers?|landline)"
    r"|(?P<site>web ?sites?|sites?|home ?page|blog|portfolio)"
    r"|(?P<name>(?:sur)?name)|(?P<address>address))"
)
_OWN_END = (
    r"(?=\s*(?:\Z|[?.!,;:]|(?:and|or|again|now|today|currently|please|these days|at work|at home|"
    r"do you|if you|that you)\b))"
)
_ASKS_FOR_OWN = (
    # "What is my email?", "Do you still have the user's number?", "my address"
    re.compile(
        r"(?:\A\W*|\b(?:what|which|where|tell|give|know|remember|remind|recall|find|show|need|have|"
        r"spell)(?:'s|\s+(?:is|was|are|me|us|you|of|again|still|exactly|what|right|please|the)){0,5}"
        rf"\s+)(?:my|our|the user's) {_OWN_WHICH}{_OWN_WHAT}{_OWN_END}",
        re.IGNORECASE,
    ),
    # "Which email address does the user use?"
    re.compile(
        rf"\b(?:what|which) {_OWN_WHICH}{_OWN_WHAT} (?:do|does|am|is|are|can|should)\s"
        r"(?:i|we|you|the user)\b[^?]{0,30}\b(?:have|uses?|using|reached?|reachable|go(?:es)? by|"
        r"contact)\b",
        re.IGNORECASE,
    ),
    re.compile(
        r"\b(?:reach|contact|get hold of|get in touch with) (?:me|us|the user)\b[^?.!]{0,20}"
        r"\b(?:by|via|on|over|per) (?:(?P<email>e-?mail|mail)|(?P<phone>(?:tele)?phone|mobile))\b",
        re.IGNORECASE,
    ),
    re.compile(
        r"\A\W*(?P<name>who am i|who is the user|what am i called|what is the user called|"
        r"what(?:'s| is) the user named)\W*\Z",
        re.IGNORECASE,
    ),
)


_AND_OWN = re.compile(
    rf"(?:\s*,|\s+(?:and|or))\s+(?:(?:my|our|the user's) )?{_OWN_WHICH}{_OWN_WHAT}{_OWN_END}",
    re.IGNORECASE,
)


@kept(64)
def asks_for_own(query: str) -> frozenset[str]:
    """Which of their own addresses somebody asks for: "email", "phone", "site", "name", "address".

    Args:
        query: A question.

    Returns:
        None of them where it is somebody else's, or something else is asked.
    """
    asked: set[str] = set()
    said = plain(query)
    for asking in _ASKS_FOR_OWN:
        found = asking.search(said)
        while found is not None:
            asked.update(filter(None, [found.lastgroup]))
            found = _AND_OWN.match(said, found.end())
    return frozenset(asked)


_BEFORE_A_NAME = re.compile(
    r"(?:\A|\b(?:do|does|did|is|are|was|were|has|had|have|can|could|should|would|where|when|how|why"
    r"|of|for|with|about|to|by|from|and))\s*\Z"
)


# Of Austin, Chase or Rose: "in Austin", "the Chase login", "a Rose bush".
_BEFORE_A_THING = re.compile(r"\b(?:in|at|during|last|next|this|the|an?)\s+\Z", re.IGNORECASE)
# "Will the roof be fixed?", "when may guests come?"
_ASKS_BY_A_VERB = re.compile(r"(?:\A(?i:will|may)|\b(?:when|where|how|why) (?:will|may))\Z")


def _stands_for_somebody(query: str, found: re.Match[str], now: datetime) -> bool:
    """Whether a word is a name there, and neither a time nor a thing nor a verb.

    Without a capital, where the whole is written so: "does kate", and not "the rose".
    """
    before = query[: found.start()]
    owns = query.startswith(("'s", "\u2019s"), found.end())
    if not found[0][0].isupper():
        known = _BEFORE_A_NAME.search(before) if query == query.lower() else None
        if known is None or not (owns or known.group()):
            return False
    if owns:
        return True
    if _BEFORE_A_THING.search(before) or _ASKS_BY_A_VERB.search(query[: found.end()]):
        return False
    return period_named(query, now) == period_named(before + query[found.end() :], now)


def _weighs_what_to_do(query: str, asked: frozenset[AskedFor]) -> bool:
    """Whether it is open what somebody is to do or to take, without a word for advice."""
    if not asked.isdisjoint({AskedFor.TIME, AskedFor.NUMBER}) or _ASKS_WHAT_WAS.search(query):
        return False
    if _WEIGHS_WHAT_TO_DO.search(query):
        return True
    words = BARE_WORDS.findall(query.casefold())
    verb = any(word in _VERBS or is_past(word) for word in words)
    return not verb and _NAMES_A_THING.search(query) is not None


def says_nothing_more(text: str, analysis: Analysis) -> bool:
    """Whether a text, put in the first person, has no word of its own beyond the question's.

    Args:
        text: A turn that asks: "Where do I live?"
        analysis: Of the question that is asked now: "Where does the user live?"
    """
    words = set(BARE_WORDS.findall(text.casefold())) - SMALL_WORDS - _FIRST_PERSON_WORDS
    return words <= analysis.subjects


# --- whether two texts in nearly the same words are about one thing

_ASKS_WHETHER = re.compile(
    r"\s*(?:is|are|am|was|were|do|does|did|has|have|had|can|will)\b", re.IGNORECASE
)
# What stands behind one of these is a verb, where it has the same form in a question.
_WHO_DOES = frozenset({"i", "we", "you", "they"})


@dataclass(frozen=True, slots=True)
class _Spelt:
    """The words of a text as they stand.

    Attributes:
        order: All of them, in lower case; of what is written as one, such as a path, the pieces.
        numbers: What has a digit, whole and in pieces: "eng-7", and the "7" of it; and pictures.
        words: What is neither.
        names: Those of them that are written as a name.
        stems: Of the words.
        owners: Of what something is told: "Dune" in "the author of Dune" and "Dune's author".
    """

    order: tuple[str, ...]
    numbers: frozenset[str]
    words: frozenset[str]
    names: frozenset[str]
    stems: frozenset[str]
    owners: frozenset[str]


@kept(4096)
def _spelt(text: str) -> _Spelt:
    whole = [word.removesuffix("'s") for word in WORDS_AND_SIGNS.findall(plain(text))]
    low = [word.casefold() for word in whole if word[0].isalnum() or _is_picture(word)]
    order = tuple(piece for word in low for piece in _pieces(word))
    pieces = {piece for word in low for piece in (word, *BARE_WORDS.findall(word))}
    numbers = frozenset(
        piece for piece in pieces if any(map(str.isdigit, piece)) or _is_picture(piece)
    )
    # Of what begins a text, nobody can tell.
    high = [word.casefold() for word in whole[1:] if word[0].isupper() and word != "I"]
    names = frozenset(piece for word in high for piece in BARE_WORDS.findall(word))
    words = frozenset(pieces - numbers)
    owners = frozenset(one or two for one, two in _OWNER.findall(text.casefold())) - SMALL_WORDS
    return _Spelt(order, numbers, words, names - numbers, _stems(words), owners)


def _pieces(word: str) -> list[str]:
    """Those of "opt/tools/backup.sh"; "c++" is itself."""
    pieces = BARE_WORDS.findall(word)
    return pieces if len(pieces) > 1 else [word]


def _is_picture(word: str) -> bool:
    return category(word[0]) == "So"


_OWNER = re.compile(
    r"\b(?:of|for) (?:(?:the|an?|my|our) )?([\w-]{1,40})|(?<![\w-])([\w-]{1,40})['\u2019]s\b"
)


def asks_only_of(query: str, one: str, other: str, *, reworded: bool = False) -> bool:
    """Whether ``query`` names a thing that ``one`` is about, and ``other`` is not.

    "The taxi in Rome" is not the one in Milan, and ENG-7 is not ENG-17: numbers and the like
    are compared as they stand, names in any form. Another word, or a piece of a path, counts
    where the other text has one of its own in its place: "my dentist", "my doctor". A verb is no
    thing, and neither is the value in "Is the key still in Vault?". Whoever gives words as they
    stand in ``one`` alone asks for that.

    Args:
        query: A question.
        one: A text.
        other: A later one that says the like of the same thing, or of another.
        reworded: Whether it says so in words of its own, where a "limit" can be a "cap": then
            only numbers and names tell.
    """
    asked, here, there = _spelt(query), _spelt(one), _spelt(other)
    # "The author of Dune" is not told by "The author of Emma is Dune".
    of_another = asked.owners & here.owners - there.owners and there.owners - here.owners
    if of_another or asked.numbers & here.numbers - there.numbers:
        return True
    spelt = asked.words & here.words - there.words
    apart = asked.stems & here.stems - there.stems
    if not spelt and not apart:
        return False
    if _ASKS_WHETHER.match(query) and ("still" in asked.order or tells_of_a_change(other)):
        return False
    names = asked.names | here.names
    if names & spelt or not apart.isdisjoint(_stems(names)):
        return True
    if reworded:
        return False
    as_it_stands = _runs_in(asked.order, here.order) and not _runs_in(asked.order, there.order)
    things = {word for word in _content_pieces(query) & _content_pieces(one) if stem(word) in apart}
    things |= {letter for letter in spelt if len(letter) == 1}
    return as_it_stands or any(
        not is_past(word) and _replaced(word, here.order, there.order) for word in things
    )


def _runs_in(words: tuple[str, ...], text: tuple[str, ...]) -> bool:
    """Whether the words stand in the text, one behind the other."""
    long = len(words)
    return any(text[at : at + long] == words for at in range(len(text) - long + 1))


def _content_pieces(text: str) -> frozenset[str]:
    return frozenset(
        piece for word in content_words(text) for piece in (word, *BARE_WORDS.findall(word))
    )


def _stems(words: frozenset[str]) -> frozenset[str]:
    return frozenset(map(stem, words))


def _replaced(word: str, here: tuple[str, ...], there: tuple[str, ...]) -> bool:
    """Whether another word stands in its place, behind the same one; of a letter, another one."""
    known = set(here)
    places = {last for last, then in zip(("", *here), here, strict=False) if then == word}
    return any(
        last in places - _WHO_DOES and then not in known and (len(word) > 1 or len(then) == 1)
        for last, then in zip(("", *there), there, strict=False)
    )


# --- whether a text holds the kind of thing that is asked for, by its looks

_TIME_CUE = re.compile(
    r"\b(?:yesterday|today|tonight|tomorrow|ago|last|next|since|recently|just|days?|weeks?|weekend"
    rf"|months?|years?|{WEEKDAY}|{MONTH_NAME.replace('may|', '')}|(?:19|20)\d\d)\b",
    re.IGNORECASE,
)
_NUMBER_CUE = re.compile(
    r"\b(?:\d+|one|two|three|four|five|six|seven|eight|nine|ten|once|twice|several|couple|dozen)\b",
    re.IGNORECASE,
)
# A capital that does not begin a sentence, or words in quotation marks.
_NAME_CUE = re.compile(
    r"(?<=[^\W\d_A-Z,;] |[a-z,;] )[A-Z][a-z]+|[\"\u201c][^\"\u201c\u201d]+[\"\u201d]"
)
_REASON_CUE = re.compile(
    r"\b(?:because|cause|due to|caused|reasons?|so that|too \w+|in order to|so (?:i|we|it|they)"
    r"|since (?:i|it|they|he|she|the|my|our)|to (?:show|help|make|avoid|save|get))\b",
    re.IGNORECASE,
)
_PATTERNS = {
    AskedFor.TIME: _TIME_CUE,
    AskedFor.NUMBER: _NUMBER_CUE,
    AskedFor.NAME: _NAME_CUE,
    AskedFor.REASON: _REASON_CUE,
}


@kept(2048)
def holds_cue(text: str, asked: frozenset[AskedFor]) -> bool:
    """Whether ``text`` holds a thing of one of the kinds."""
    return any(_PATTERNS[kind].search(text) for kind in asked)


# --- whether a text tells of whoever says it

_OF_ONESELF = re.compile(r"\b(?:i|me|my|mine|myself|we|us|our|ours)\b", re.IGNORECASE)
_SENTENCE = re.compile(r"[^.!?\n]+[.!?\n]?")


def speaks_of_oneself(text: str) -> bool:
    """Whether ``text`` names whoever says it, in a question too."""
    return _OF_ONESELF.search(text) is not None


def tells_of_oneself(text: str) -> bool:
    """Whether a sentence of ``text`` that is no question names whoever says it."""
    return any(
        not sentence.endswith("?") and speaks_of_oneself(sentence)
        for sentence in _SENTENCE.findall(text)
    )


# --- what a turn of one sentence is about, and whether it tells that this changed


@kept(4096)
def matter_of(text: str) -> frozenset[str]:
    """The stems of a text's content words; none where it is more than one sentence."""
    pieces = split_sentences(text)
    next(pieces, None)
    return frozenset() if next(pieces, None) is not None else topic_stems(text)


@kept(4096)
def tells_of_a_change(text: str) -> bool:
    """Whether ``text`` holds a word that tells of a change: "now", "switched", "left"."""
    return not words_of_change().isdisjoint(BARE_WORDS.findall(text.casefold()))
