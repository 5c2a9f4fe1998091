"""Explicit negations in a turn: what its speaker says is not so.

Beside the statements that no longer hold (``engram/language/statements``), not in their place. A
denial covers any verb and object ("I don't take sugar"), by grammar; a statement ends one of the
known predicates, by wordings of which most deny nothing ("I moved out of Lisbon"). Of 336 labelled
texts in which one of the two finds something, both do in 85.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import islice

from engram.domain.slots import USER
from engram.language import negation_rules as contrasts
from engram.language.calendar import MONTH, WEEKDAY
from engram.language.found import FoundNegation
from engram.language.negation_grammar import (
    SHORTEST_GERUND,
    Span,
    Subject,
    WordedSentence,
    core,
    ended_cleanly,
    is_telling,
    object_at,
    sentences,
    skip_back,
    skip_on,
    subject_ending,
    user,
    vocabulary,
)
from engram.language.negation_rules import (
    Denial,
    complement,
    does_not,
    governed,
    is_state,
    negated_verb,
    pattern_of,
    shown_object,
    subject_of,
)
from engram.language.own_words import names_another, own_words
from engram.language.text import fold, plain, verb_lemma, without_quotations

# --- denials without a negated verb: endings, "no X", neither, nobody, contrasts

_USE_ENDED = frozenset("dropped ditched abandoned left uninstalled deleted replaced dumped".split())
_HAVE_ENDED = frozenset("sold cancelled canceled".split())
_FROM_ENDED = frozenset("switched migrated moved switching migrating".split())
_GERUNDS = frozenset("cancelling canceling ditching dropping selling leaving abandoning".split())
_ENDED_UP = frozenset("ended wound".split())
_OWNERS = frozenset("my our the his her their".split())
_AT_WORK = frozenset(
    "job career startup start-up company role position offer boss colleagues employer".split()
)
_CUTS = frozenset("for to in on at with after over by into onto out off last this as".split())
_HAVING = frozenset(
    "have has got own owns eat eats drink drinks use uses "
    "speak speaks play plays take takes keep keeps wear wears".split()
)


# "On Mondays" and "after work" are no such day or event: they limit what is over.
_NUMBERED = r"\d{1,2}(?:st|nd|rd|th)?"
_WHEN = re.compile(
    rf"(?:on|in|by|around)\s+(?:the\s+)?(?:(?:early|mid|late)[\s-])?(?:{_NUMBERED}\s+(?:of\s+)?{MONTH}|{MONTH}|"
    rf"\d{{1,2}}(?:st|nd|rd|th)|{WEEKDAY})(?!\w)"
    r"|after\s+(?:[\w'-]+\s+){1,3}?(?:was|were|had|got|died|left|came|went|told|said)\b"
)
_WHEN_REACH = 80


def stopped(sentence: WordedSentence, index: int, user_name: str | None) -> Iterator[Denial]:
    """Denials put as "I stopped V-ing O", "I quit V-ing", "we gave up V-ing O"."""
    word = sentence.low(index)
    at = index + 1
    if word in {"gave", "given"}:
        if sentence.low(index + 1) != "up":
            return
        at = index + 2
    elif word not in {"stopped", "quit", "ceased"}:
        return
    subject = subject_of(sentence, index, user_name)
    if subject is None:
        return
    cue = Span(index, at)
    at = skip_on(sentence, at)
    verb = sentence.low(at)
    if verb.endswith("ing") and len(verb) >= SHORTEST_GERUND:
        lemma = verb_lemma(verb)
        if lemma in vocabulary("stop_not"):
            return
        said = f"{does_not(subject)} {lemma}"
        span = _until_when(sentence, object_at(sentence, at + 1))
        if span.begin >= span.end:
            yield Denial(subject, lemma, None, said, at + 1, cue)
            return
        if any(_is_point(sentence, index) for index in range(span.begin, span.end)):
            # "I stopped reading at page 10" ended for that day.
            return
        yield from governed(sentence, subject, lemma, at + 1, cue, said, until=span.end)
    elif word != "stopped":
        yield from _gave_up_thing(sentence, subject, at, cue)


def _until_when(sentence: WordedSentence, span: Span) -> Span:
    """The object without the day or the event from which on it is over: "meat on 3 March"."""
    for index in range(span.begin, span.end):
        start = sentence.words[index].start
        if _WHEN.match(fold(sentence.text[start : start + _WHEN_REACH])):
            return Span(span.begin, index)
    return span


def _is_point(sentence: WordedSentence, index: int) -> bool:
    return sentence.low(index) == "at" and not sentence.capital(index + 1)


def _gave_up_thing(
    sentence: WordedSentence, subject: Subject, at: int, cue: Span
) -> Iterator[Denial]:
    span = _cut(sentence, object_at(sentence, at))
    if sentence.low(at) in vocabulary("prepositions") or not is_telling(sentence, span, led=False):
        return
    lemma = _done_with(sentence, span)
    if lemma is None:
        if not _is_own_thing(sentence, span):
            # "I quit Deloitte": an employer, a school, a habit of that name; who knows.
            return
        lemma = "have"
    yield Denial(subject, lemma, span, f"{does_not(subject)} {lemma}", span.end, cue)


def _done_with(sentence: WordedSentence, span: Span) -> str | None:
    """What one does with a tool, a drink or food; None where it is none of them."""
    head = sentence.low(core(sentence, span).begin)
    uses = (("tools", "use"), ("drinks", "drink"), ("foods", "eat"))
    return next((verb for kind, verb in uses if head in vocabulary(kind)), None)


def _is_own_thing(sentence: WordedSentence, span: Span) -> bool:
    owned = sentence.low(span.begin) in {"my", "our"}
    return owned and sentence.low(span.end - 1) not in vocabulary("yielded")


def ended(sentence: WordedSentence, index: int, user_name: str | None) -> Iterator[Denial]:
    """Denials put as "We dropped X", "I left X", "I got rid of X", "I sold X", "I cancelled X"."""
    word = sentence.low(index)
    begin = index
    if word in _ENDED_UP and sentence.low(index + 1) == "up":
        index += 2
        word = sentence.low(index)
        if word not in _GERUNDS | _FROM_ENDED and word != "getting":
            return
    elif word not in _USE_ENDED | _HAVE_ENDED | _FROM_ENDED and word != "got":
        return
    found = _what_ended(sentence, index, word)
    if found is None:
        return
    lemma, span = found
    subject = subject_of(sentence, begin, user_name)
    if subject is None or (word in {"sold", "selling"} and subject.name != USER):
        # What others sold may be their trade.
        return
    said = f"{does_not(subject)} {lemma}"
    yield Denial(subject, lemma, span, said, span.end, Span(begin, index + 1))


def _what_ended(sentence: WordedSentence, index: int, word: str) -> tuple[str, Span] | None:
    at = index + 1
    if word in {"got", "getting"}:
        if (sentence.low(at), sentence.low(at + 1)) != ("rid", "of"):
            return None
        return _told(sentence, "have", _cut(sentence, object_at(sentence, at + 2)))
    if word in _FROM_ENDED:
        return _moved_from(sentence, at, word)
    span = _cut(sentence, object_at(sentence, at))
    lemma = "use"
    if word in {"sold", "selling"}:
        lemma = "have"
        fits = sentence.low(at) in _OWNERS and sentence.low(span.end) != "out"
    elif word.startswith("cancel"):
        lemma = "have"
        fits = _is_service(sentence, span)
    elif word in {"left", "leaving", "deleted"}:
        fits = _is_tool(sentence, span, known=True) and not _is_job(sentence)
    else:
        fits = word in {"ditched", "ditching"} or _is_tool(sentence, span)
    return _told(sentence, lemma, span) if fits else None


def _moved_from(sentence: WordedSentence, at: int, word: str) -> tuple[str, Span] | None:
    away = sentence.low(at) == "away"
    at += away
    preposition = sentence.low(at)
    # "We moved from Paris" is about a home, "we moved off Heroku" is not.
    if preposition not in {"from", "off"}:
        return None
    span = _cut(sentence, object_at(sentence, at + 1))
    if word == "moved" and preposition == "from" and not (away and _is_tool(sentence, span)):
        return None
    return _told(sentence, "use", span) if _is_tool(sentence, span) or word[0] == "s" else None


def _told(sentence: WordedSentence, lemma: str, span: Span) -> tuple[str, Span] | None:
    return (lemma, span) if is_telling(sentence, span, led=False) else None


def _cut(sentence: WordedSentence, span: Span) -> Span:
    end = span.begin
    while end < span.end and sentence.low(end) not in _CUTS:
        end += 1
    return Span(span.begin, end)


def _is_tool(sentence: WordedSentence, span: Span, *, known: bool = False) -> bool:
    inner = core(sentence, span)
    if sentence.low(inner.begin) in vocabulary("tools"):
        return True
    return not known and inner.begin < inner.end and sentence.capital(inner.begin)


def _is_job(sentence: WordedSentence) -> bool:
    """Whether "I left Google" names an employer: "... and joined a start-up"."""
    return not _AT_WORK.isdisjoint(word.low for word in sentence.words)


def _is_service(sentence: WordedSentence, span: Span) -> bool:
    """Whether it is something one subscribes to: a trip that was cancelled was no possession."""
    known = _is_tool(sentence, span, known=True)
    return known or sentence.low(span.end - 1) in vocabulary("subscriptions")


def no_thing(sentence: WordedSentence, index: int, user_name: str | None) -> Iterator[Denial]:
    """Denials put as "I have no X", "I eat no X", "no X for me", "no more X for me"."""
    if sentence.low(index) != "no" or sentence.low(index + 1) in {"longer", "one"}:
        return
    before = sentence.low(index - 1)
    more = sentence.low(index + 1) == "more"
    cue = Span(index, index + 1 + more)
    contracted = before in {"i've", "we've", "they've"}
    if (before in _HAVING or contracted) and not more:
        last = index - 1 if contracted else index - 2
        if before == "got" and sentence.low(last) in {"have", "has"}:
            last -= 1
        subject = subject_ending(sentence, last, user_name=user_name) if last >= 0 else None
        head = sentence.low(index + 1)
        if subject is not None and head not in vocabulary("empty_objects"):
            have = contracted or before in {"has", "got"}
            lemma = "have" if have else verb_lemma(before)
            said = f"{does_not(subject)} {lemma}"
            yield from governed(sentence, subject, lemma, index + 1, cue, said)
    elif sentence.is_boundary(index - 1) or before in vocabulary("lead_ins"):
        yield from _none_for(sentence, index, cue, user_name)


def _none_for(
    sentence: WordedSentence, index: int, cue: Span, user_name: str | None
) -> Iterator[Denial]:
    more = cue.end > index + 1
    span = _cut(sentence, object_at(sentence, cue.end))
    # "No more worries for me": what it was that one did with them, only the thing says.
    lemma = _done_with(sentence, span) if more else "have"
    if (
        lemma is None
        or sentence.low(span.end) != "for"
        or not is_telling(sentence, span, led=False)
    ):
        return
    whom = span.end + 1
    if sentence.low(cue.end) in vocabulary("empty_objects"):
        return
    if sentence.low(whom) in {"me", "us"}:
        after = sentence.low(whom + 1)
        if sentence.is_boundary(whom + 1) or after in {"thanks", "please", "then"}:
            yield Denial(user(index), lemma, span, f"does not {lemma}", whom + 1, cue)
    elif sentence.low(whom) in {"my", "our"} and sentence.is_boundary(whom + 2):
        name = f"{sentence.low(whom)} {sentence.low(whom + 1)}"
        shown = f"The user's {sentence.verbatim(whom + 1, whom + 2)}"
        subject = Subject(name, shown, index)
        yield Denial(subject, lemma, span, f"does not {lemma}", whom + 2, cue)


def neither(sentence: WordedSentence, index: int, user_name: str | None) -> Iterator[Denial]:
    """Denials put as "I drink neither X nor Y", "I'm neither X nor Y"."""
    if sentence.low(index) != "neither":
        return
    verb_at = skip_back(sentence, index - 1)
    word = sentence.low(verb_at)
    first = object_at(sentence, index + 1)
    if sentence.low(first.end) != "nor" or verb_at < 0:
        return
    second = object_at(sentence, first.end + 1)
    cue = Span(index, index + 1)
    base, mark, ending = word.partition("'")
    be = word in {"am", "is", "are"} or (mark and ending in {"m", "s", "re"} and base)
    last = verb_at if mark else verb_at - 1
    subject = subject_ending(sentence, last, user_name=user_name) if last >= 0 else None
    if subject is None:
        return
    for span in (first, second):
        if be and is_state(sentence, span):
            yield Denial(subject, "be", span, "is not", second.end, cue)
        elif not be and is_telling(
            sentence, span, led=sentence.low(span.begin) in vocabulary("prepositions")
        ):
            lemma = verb_lemma(word)
            yield Denial(subject, lemma, span, f"{does_not(subject)} {lemma}", second.end, cue)


def nobody(sentence: WordedSentence, index: int, user_name: str | None) -> Iterator[Denial]:
    """Denials put as "None of us eats X", "nobody in my family smokes"."""
    word = sentence.low(index)
    at = index + 1
    if word == "no" and sentence.low(at) == "one":
        at += 1
    elif word not in {"nobody", "none", "neither", "no-one"}:
        return
    opening = sentence.is_boundary(index - 1) or sentence.low(index - 1) in vocabulary("lead_ins")
    if not opening or sentence.low(at) not in {"of", "in", "on", "at", "from"}:
        return
    whom = at + 1
    if sentence.low(whom) == "us":
        begin = sentence.verbatim(index, whom + 1)
        subject = Subject(begin.lower(), begin[0].upper() + begin[1:], index)
        verb_at, said = whom + 1, ""
    elif sentence.low(whom) in {"my", "our"}:
        name = f"{sentence.low(whom)} {sentence.low(whom + 1)}"
        shown = f"The user's {sentence.verbatim(whom + 1, whom + 2)}"
        subject = Subject(name, shown, index)
        verb_at, said = whom + 2, "does not "
    else:
        return
    verb_at = skip_on(sentence, verb_at)
    verb = sentence.low(verb_at)
    if not verb.isalpha() or verb in vocabulary("reporting"):
        return
    cue = Span(index, whom)
    if verb in {"is", "are"}:
        if said:
            yield from complement(sentence, subject, verb_at + 1, cue)
        return
    lemma = verb_lemma(verb)
    if lemma in vocabulary("empty_verbs") or lemma in {"can", "will", "be", "know"}:
        return
    yield from governed(
        sentence, subject, lemma, verb_at + 1, cue, f"{said}{lemma}" if said else verb
    )


# --- explicit negations: what a turn says is not so
#
# Sentences with a negating word are taken apart by rules: whom it is about,
# which verb, which object, where the object ends. Anything that is not the
# speaker's own plain statement yields nothing: questions, conditions, reported
# speech, double negation, manners of speaking. A false negation would hide a
# true memory, so every doubt is decided against finding one.

NegationRule = Callable[[WordedSentence, int, str | None], Iterator[Denial]]

_CUE = re.compile(
    r"n't\b|\b(?:not|never|no|none|nobody|no-one|neither|cannot|dont|doesnt|didnt|havent|hasnt|isnt|arent|wasnt|"
    r"stopped|quit|gave up|given up|ceased|dropped|ditched|abandoned|left|uninstalled|deleted|"
    r"replaced|"
    r"sold|cancell?ed|cancell?ing|switched|switching|migrated|moved|got rid|getting rid|"
    r"used to|ended up|cant|wont)\b"
)
# A turn that goes on to more things is a list.
_MOST_TAKEN_UP = 20
_TAKEN_UP = re.compile(
    r"\b(?:switched|changed|moved|migrated|converted|went)(?: back| over)? to "
    r"(?P<what>[\w+#'-]+(?: [\w+#'-]+){0,3})"
)
_JEST = re.compile(r"\b(?:just kidding|only joking|just joking|jk|not really)\b")
_NEGATION_RULES: dict[str, tuple[NegationRule, ...]] = {
    "not": (negated_verb, contrasts.contrast),
    "never": (negated_verb, contrasts.never_said),
    "no": (negated_verb, no_thing, nobody),
    "none": (nobody,),
    "nobody": (nobody,),
    "no-one": (nobody,),
    "neither": (neither, nobody),
    "used": (contrasts.used_to,),
    **dict.fromkeys(("stopped", "quit", "ceased", "gave", "given"), (stopped,)),
    **dict.fromkeys(
        "dropped ditched abandoned left uninstalled deleted replaced sold cancelled canceled "
        "switched migrated moved got ended wound".split(),
        (ended,),
    ),
}
_QUESTION_WORDS = frozenset(
    "what which who how where when why can could do does did is are any would will should "
    "have".split()
)
_NEW_CLAUSE_WORDS = frozenset("and but so because".split())
_TAIL = 4
_TOLD = frozenset("me us him her them".split())


def find_negations(text: str, *, user_name: str | None = None) -> tuple[FoundNegation, ...]:
    """What ``text`` denies, in order of appearance, each (pattern, subject) once.

    Args:
        text: A turn of the user, verbatim; any Unicode.
        user_name: The user's own name: a sentence about them by name is about the user.
    """
    clean = plain(text)
    # Most turns deny nothing: what is passed on in them need not be looked for.
    if not _CUE.search(clean.lower()):
        return ()
    clean = without_quotations(plain(own_words(text)), only_speech=True)
    if _JEST.search(clean.lower()):
        return ()
    found: dict[tuple[str, str], FoundNegation] = {}
    for sentence in sentences(clean, _CUE):
        for denial in _denials(sentence, user_name):
            negation = _negation(sentence, denial, text)
            found.setdefault((negation.negates_pattern, negation.subject), negation)
    again = _taken_up_again(clean.casefold())
    return tuple(one for one in found.values() if one.negates_pattern not in again)


def _taken_up_again(low: str) -> set[str]:
    """What the user goes on to after giving it up: "I don't use X any more, I switched to X"."""
    return {
        f"use {what}"
        for taken in islice(_TAKEN_UP.finditer(low), _MOST_TAKEN_UP)
        for words in [taken.group("what").split()]
        for what in (" ".join(words[:count]) for count in range(1, len(words) + 1))
        if low.find(what) < taken.start()
    }


def _denials(sentence: WordedSentence, user_name: str | None) -> Iterator[Denial]:
    contractions = vocabulary("contractions")
    for index, word in enumerate(sentence.words):
        if _in_title(sentence, index):
            continue
        rules = _NEGATION_RULES.get(word.low)
        if rules is None:
            if word.low not in contractions:
                continue
            rules = (negated_verb,)
        for rule in rules:
            for denial in rule(sentence, index, user_name):
                if _stands(sentence, denial):
                    yield denial


def _in_title(sentence: WordedSentence, index: int) -> bool:
    """Whether the word is part of a name in capitals: "Tomorrow Never Dies"."""
    around = (index - 1, index, index + 1)
    return (
        index > 0 and all(sentence.capital(at) for at in around) and sentence.low(index - 1) != "i"
    )


def _stands(sentence: WordedSentence, denial: Denial) -> bool:
    """Whether nothing around the denial takes it back."""
    if denial.span is not None and not ended_cleanly(sentence, denial.span):
        return False
    if _asked(sentence, denial) or _conditional(sentence, denial):
        return False
    if denial.lemma == "use" and names_another(sentence.text, sentence.words[0].start):
        # "kiln: we no longer use sqlite" is told of kiln.
        return False
    return not (_doubled(sentence, denial) or _attributed(sentence, denial))


def _asked(sentence: WordedSentence, denial: Denial) -> bool:
    if not sentence.question:
        return False
    # "I don't eat meat, what can you suggest?" states something before it asks.
    index = denial.end
    while index < len(sentence.words) and sentence.low(index) not in {",", "-", "so", "and"}:
        index += 1
    rest = [word.low for word in sentence.words[index:] if word.low not in {",", "-", "so", "and"}]
    asks = bool(rest) and rest[0] in _QUESTION_WORDS and len(rest) > 2  # noqa: PLR2004 - "do I?" is a tag
    opens = sentence.low(0) in _QUESTION_WORDS
    return opens or not asks or denial.subject.name != "user"


def _conditional(sentence: WordedSentence, denial: Denial) -> bool:
    before = range(denial.end)
    hypothetical, fiction = vocabulary("hypothetical"), vocabulary("fiction")
    if any(sentence.low(index) in hypothetical for index in before):
        return True
    if any(sentence.low(index) in fiction for index in range(denial.subject.begin)):
        return True
    return sentence.low(denial.end) in vocabulary("conditional_after")


def _doubled(sentence: WordedSentence, denial: Denial) -> bool:
    """Whether a second negation stands in the same clause."""
    begin = denial.subject.begin
    double, contractions = vocabulary("double"), vocabulary("contractions")
    while begin > max(0, denial.subject.begin - _TAIL):
        if sentence.is_boundary(begin - 1) or sentence.low(begin - 1) in _NEW_CLAUSE_WORDS:
            break
        begin -= 1
    for index in range(begin, denial.end):
        if denial.cue.begin <= index < denial.cue.end:
            continue
        word = sentence.low(index)
        if word in contractions or (word in double and not _is_pair(sentence, index, denial)):
            return True
    return False


def _is_pair(sentence: WordedSentence, index: int, denial: Denial) -> bool:
    neither = sentence.low(denial.cue.begin) == "neither"
    return sentence.low(index) == "nor" and neither


def _attributed(sentence: WordedSentence, denial: Denial) -> bool:
    """Whether ", he said" follows."""
    at = denial.end
    if not sentence.is_boundary(at) or at >= len(sentence.words):
        return False
    tail = [sentence.low(at + offset) for offset in range(1, _TAIL)]
    if {"i", "i'm"} & set(tail):
        return False
    said = next((n for n, word in enumerate(tail, at + 1) if word in vocabulary("reporting")), None)
    # "I stopped drinking coffee, the doctor told me to" gives a reason.
    return said is not None and not (
        sentence.low(said + 1) in _TOLD and sentence.low(said + 2) in {"to", "not"}
    )


def _negation(sentence: WordedSentence, denial: Denial, text: str) -> FoundNegation:
    begin = min(denial.subject.begin, denial.cue.begin)
    end = max(denial.end, denial.cue.end)
    shown = shown_object(sentence, denial.span)
    content = " ".join(part for part in (denial.subject.shown, denial.verb, shown) if part)
    return FoundNegation(
        negates_pattern=pattern_of(sentence, denial),
        subject=denial.subject.name,
        content=f"{content}.",
        evidence=text[sentence.words[begin].start : sentence.words[end - 1].end],
    )
