"""Denials without a negated verb: endings, "no X", neither, nobody, contrasts."""

from __future__ import annotations

from collections.abc import Iterator

from engram.domain.word_forms import verb_lemma
from engram.extraction.negation_objects import Span, core, is_telling, object_at, vocabulary
from engram.extraction.negation_rules import (
    Denial,
    complement,
    does_not,
    governed,
    is_state,
    subject_of,
)
from engram.extraction.negation_subjects import (
    USER,
    Subject,
    skip_back,
    skip_on,
    subject_ending,
    user,
)
from engram.extraction.negation_tokens import Sentence

_USE_ENDED = frozenset("dropped ditched abandoned left uninstalled deleted replaced dumped".split())
_HAVE_ENDED = frozenset("sold cancelled canceled".split())
_FROM_ENDED = frozenset("switched migrated moved switching migrating".split())
_GERUNDS = frozenset("cancelling canceling ditching dropping selling leaving abandoning".split())
_ENDED_UP = frozenset("ended wound".split())
_GERUND = 5
_OWNERS = frozenset("my our the his her their".split())
_CUTS = frozenset("for to in on at with after over by into onto out off last this as".split())
_HAVING = frozenset(
    "have has got own owns eat eats drink drinks use uses "
    "speak speaks play plays take takes keep keeps wear wears".split()
)


def stopped(sentence: Sentence, index: int, user_name: str | None) -> Iterator[Denial]:
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
    if verb.endswith("ing") and len(verb) >= _GERUND:
        lemma = verb_lemma(verb)
        if lemma in vocabulary("stop_not"):
            return
        said = f"{does_not(subject)} {lemma}"
        span = object_at(sentence, at + 1)
        if span.begin >= span.end:
            yield Denial(subject, lemma, None, said, at + 1, cue)
            return
        if any(_is_point(sentence, index) for index in range(span.begin, span.end)):
            # "I stopped reading at page 10" ended for that day.
            return
        yield from governed(sentence, subject, lemma, at + 1, cue, said)
    elif word != "stopped":
        yield from _gave_up_thing(sentence, subject, at, cue)


def _is_point(sentence: Sentence, index: int) -> bool:
    return sentence.low(index) == "at" and not sentence.capital(index + 1)


def _gave_up_thing(sentence: Sentence, subject: Subject, at: int, cue: Span) -> Iterator[Denial]:
    span = _cut(sentence, object_at(sentence, at))
    if sentence.low(at) in vocabulary("prepositions") or not is_telling(sentence, span, led=False):
        return
    head = sentence.low(core(sentence, span).begin)
    lemma = "have"
    if head in vocabulary("tools"):
        lemma = "use"
    elif head in vocabulary("drinks"):
        lemma = "drink"
    elif head in vocabulary("foods"):
        lemma = "eat"
    elif not _is_own_thing(sentence, span):
        # "I quit Deloitte": an employer, a school, a habit of that name; who knows.
        return
    yield Denial(subject, lemma, span, f"{does_not(subject)} {lemma}", span.end, cue)


def _is_own_thing(sentence: Sentence, span: Span) -> bool:
    owned = sentence.low(span.begin) in {"my", "our"}
    return owned and sentence.low(span.end - 1) not in vocabulary("yielded")


def ended(sentence: Sentence, index: int, user_name: str | None) -> Iterator[Denial]:
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


def _what_ended(sentence: Sentence, index: int, word: str) -> tuple[str, Span] | None:
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
        fits = _is_tool(sentence, span, known=True)
    else:
        fits = word in {"ditched", "ditching"} or _is_tool(sentence, span)
    return _told(sentence, lemma, span) if fits else None


def _moved_from(sentence: Sentence, at: int, word: str) -> tuple[str, Span] | None:
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


def _told(sentence: Sentence, lemma: str, span: Span) -> tuple[str, Span] | None:
    return (lemma, span) if is_telling(sentence, span, led=False) else None


def _cut(sentence: Sentence, span: Span) -> Span:
    end = span.begin
    while end < span.end and sentence.low(end) not in _CUTS:
        end += 1
    return Span(span.begin, end)


def _is_tool(sentence: Sentence, span: Span, *, known: bool = False) -> bool:
    inner = core(sentence, span)
    if sentence.low(inner.begin) in vocabulary("tools"):
        return True
    return not known and inner.begin < inner.end and sentence.capital(inner.begin)


def _is_service(sentence: Sentence, span: Span) -> bool:
    return _is_tool(sentence, span) or sentence.low(span.end - 1) in vocabulary("subscriptions")


def no_thing(sentence: Sentence, index: int, user_name: str | None) -> Iterator[Denial]:
    """Denials put as "I have no X", "I eat no X", "no X for me"."""
    if sentence.low(index) != "no" or sentence.low(index + 1) in {"longer", "one", "more"}:
        return
    before = sentence.low(index - 1)
    cue = Span(index, index + 1)
    contracted = before in {"i've", "we've", "they've"}
    if before in _HAVING or contracted:
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


def _none_for(sentence: Sentence, index: int, cue: Span, user_name: str | None) -> Iterator[Denial]:
    span = _cut(sentence, object_at(sentence, index + 1))
    if sentence.low(span.end) != "for" or not is_telling(sentence, span, led=False):
        return
    whom = span.end + 1
    if sentence.low(index + 1) in vocabulary("empty_objects"):
        return
    if sentence.low(whom) in {"me", "us"}:
        after = sentence.low(whom + 1)
        if sentence.is_boundary(whom + 1) or after in {"thanks", "please", "then"}:
            yield Denial(user(index), "have", span, "does not have", whom + 1, cue)
    elif sentence.low(whom) in {"my", "our"} and sentence.is_boundary(whom + 2):
        name = f"{sentence.low(whom)} {sentence.low(whom + 1)}"
        shown = f"The user's {sentence.verbatim(whom + 1, whom + 2)}"
        yield Denial(Subject(name, shown, index), "have", span, "does not have", whom + 2, cue)


def neither(sentence: Sentence, index: int, user_name: str | None) -> Iterator[Denial]:
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


def nobody(sentence: Sentence, index: int, user_name: str | None) -> Iterator[Denial]:
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
