"""Rules that find a denial at a word, and denials by contrast."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from engram.domain.slots import USER
from engram.language.negation_grammar import (
    SHORTEST_GERUND,
    Span,
    Subject,
    WordedSentence,
    alternatives,
    core,
    is_telling,
    object_at,
    skip_back,
    skip_on,
    spoken,
    subject_ending,
    user,
    vocabulary,
)
from engram.language.text import is_past, verb_lemma

# --- the rules that find a denial at a word of a sentence

_BE = frozenset(
    "am is are was were 'm 's 're m s re isn't aren't wasn't weren't isnt arent wasnt ain't "
    "be".split()
)
_HAVE = frozenset("have has 've ve haven't hasn't havent hasnt".split())
_PAST_BE = frozenset("was were wasn't weren't wasnt".split())
_PLURAL = frozenset("do are were have don't aren't weren't haven't dont arent havent".split())
_PAST_DO = frozenset("did didn't didnt".split())
_TO_OBLIGE = frozenset("want need have plan mean dare get use".split())
_ARTICLES = frozenset("a an the my our his her their".split())
_FIRST_SEEN = frozenset("see try visit watch read finish".split())
_ADVERB_ENDS = frozenset("well right fast long far straight hard out late early".split())


@dataclass(frozen=True, slots=True)
class Denial:
    """A denial found: who, which verb, which object, and how it was put.

    Attributes:
        lemma: Base form of the verb.
        span: The object with its preposition and article; None for "I don't smoke".
        verb: How the sentence about it says the verb: "does not use".
        end: Index after the last word of it.
        cue: Indices of the negating words, from first to after the last.
    """

    subject: Subject
    lemma: str
    span: Span | None
    verb: str
    end: int
    cue: Span


@dataclass(frozen=True, slots=True)
class _Cue:
    """A negated auxiliary: what kind, whose, and where its verb stands."""

    kind: str
    subject: Subject
    verb_at: int
    words: Span
    past: bool = False
    never: bool = False


def negated_verb(sentence: WordedSentence, index: int, user_name: str | None) -> Iterator[Denial]:
    """Denials put as "I don't V O", "I never V O", "I no longer V O", "I'm not C"."""
    cue = _cue(sentence, index, user_name)
    if cue is None or sentence.low(cue.verb_at) in vocabulary("partial"):
        return
    at = cue.verb_at
    if sentence.is_boundary(at) or not sentence.low(at)[0].isalpha():
        return
    if cue.kind == "be":
        yield from complement(sentence, cue.subject, at, cue.words, past=cue.past)
        return
    lemma = _lemma(sentence, at, cue)
    if lemma is None or not _lasting(lemma, cue, sentence.low(at), sentence.low(at + 1)):
        return
    verb = _said(lemma, sentence.low(at), cue)
    yield from governed(sentence, cue.subject, lemma, at + 1, cue.words, verb)


def _cue(sentence: WordedSentence, index: int, user_name: str | None) -> _Cue | None:
    word = sentence.low(index)
    if word in vocabulary("contractions"):
        kind = _kind_of(word)
        return _with_subject(sentence, kind, word, index - 1, Span(index, index + 1), user_name)
    if word == "not":
        return _split_cue(sentence, index, index + 1, user_name, needs_auxiliary=True)
    if word == "never":
        found = _split_cue(sentence, index, index + 1, user_name, needs_auxiliary=False)
        return None if found is None else replace(found, never=True)
    if word == "no" and sentence.low(index + 1) == "longer":
        return _split_cue(sentence, index, index + 2, user_name, needs_auxiliary=False)
    return None


def _split_cue(
    sentence: WordedSentence,
    index: int,
    after: int,
    user_name: str | None,
    *,
    needs_auxiliary: bool,
) -> _Cue | None:
    before = skip_back(sentence, index - 1)
    word = sentence.low(before)
    words = Span(index, after)
    base, mark, ending = word.partition("'")
    if mark and ending in {"m", "re", "s", "ve"} and base:
        kind = "have" if ending == "ve" else "be"
        return _with_subject(sentence, kind, ending, before, words, user_name)
    if word in {"im", "ive"}:
        return None
    if word in vocabulary("auxiliaries"):
        return _with_subject(sentence, _kind_of(word), word, before - 1, words, user_name)
    if needs_auxiliary:
        return None
    return _with_subject(sentence, "finite", word, before, words, user_name)


def _kind_of(auxiliary: str) -> str:
    if auxiliary in _BE:
        return "be"
    if auxiliary in _HAVE or auxiliary in {"had", "hadn't"}:
        return "have"
    if auxiliary.startswith("ca"):
        return "can"
    if auxiliary.startswith("w"):
        return "will"
    return "do"


def _with_subject(
    sentence: WordedSentence,
    kind: str,
    auxiliary: str,
    last: int,
    words: Span,
    user_name: str | None,
) -> _Cue | None:
    if auxiliary in {"had", "hadn't"} or last < 0:
        return None
    subject = subject_ending(sentence, last, user_name=user_name, plural=auxiliary in _PLURAL)
    if subject is None:
        return None
    past = auxiliary in _PAST_DO or auxiliary in _PAST_BE
    return _Cue(kind, subject, skip_on(sentence, words.end), words, past)


def _lemma(sentence: WordedSentence, at: int, cue: _Cue) -> str | None:
    word = sentence.low(at)
    if cue.kind in {"do", "can", "will"}:
        return word
    if word in vocabulary("stop_words"):
        return None
    if cue.kind == "have":
        if word == "been":
            return "be" if sentence.low(at + 1) == "to" else None
        return "have" if word in {"got", "had"} else verb_lemma(word)
    if word in _BE or word in _HAVE:
        return "have" if word in _HAVE else None
    return verb_lemma(word)


def _lasting(lemma: str, cue: _Cue, verb: str, following: str) -> bool:
    if cue.kind == "can":
        return lemma in vocabulary("ability_verbs")
    if cue.kind == "will":
        return lemma in vocabulary("will_verbs")
    if following == "to" and lemma in _TO_OBLIGE:
        return False
    experience = cue.kind == "have" and cue.never and lemma in _FIRST_SEEN
    if (
        lemma in vocabulary("empty_verbs")
        and not experience
        and not (cue.kind == "have" and lemma == "be")
    ):
        return False
    if cue.kind == "do" and cue.past:
        return lemma in vocabulary("lasting_when_past")
    once = cue.kind == "have" and not cue.never and lemma != "be"
    return not (once and (lemma in vocabulary("empty_when_past") or verb == "had"))


def _said(lemma: str, surface: str, cue: _Cue) -> str:
    plural = cue.subject.plural
    if cue.kind == "have" and surface != "got":
        return f"{'have' if plural else 'has'} {'never' if cue.never else 'not'} {surface}"
    if cue.kind in {"can", "will"}:
        return f"{'cannot' if cue.kind == 'can' else 'will not'} {lemma}"
    if cue.past or (cue.kind == "finite" and is_past(surface)):
        return f"did not {lemma}"
    return f"{does_not(cue.subject)} {lemma}"


def does_not(subject: Subject) -> str:
    """The words "does not", or "do not" for several."""
    return "do not" if subject.plural else "does not"


def governed(
    sentence: WordedSentence,
    subject: Subject,
    lemma: str,
    begin: int,
    cue: Span,
    verb: str,
    *,
    until: int | None = None,
) -> Iterator[Denial]:
    """Denials of ``lemma`` with the objects that begin at ``begin``, and end before ``until``."""
    if sentence.low(begin) == "either":
        begin += 1
    span = object_at(sentence, begin)
    if until is not None:
        span = Span(span.begin, min(span.end, until))
    if span.begin >= span.end:
        paired = sentence.low(begin) == "and"
        if lemma in vocabulary("intransitive") and not paired:
            yield Denial(subject, lemma, None, verb, begin, cue)
        return
    if not _is_object(sentence, span, lemma, subject):
        return
    for item in alternatives(sentence, span):
        first = sentence.low(item.begin)
        led = first in vocabulary("prepositions")
        if item is not span and first in vocabulary("ability_verbs") and item.end - item.begin > 1:
            other = Span(item.begin + 1, item.end)
            said = verb.removesuffix(lemma) + first
            yield Denial(subject, first, other, said, item.end, cue)
        elif is_telling(sentence, item, led=led):
            yield Denial(subject, lemma, item, verb, item.end, cue)


def _is_object(sentence: WordedSentence, span: Span, lemma: str, subject: Subject) -> bool:
    first = sentence.low(span.begin)
    led = first in vocabulary("prepositions")
    if not is_telling(sentence, span, led=led):
        return False
    if span.end - span.begin == 1 and (first in _ADVERB_ENDS - {"out"} or _is_adverb(first)):
        return False
    person = subject.name == "user" or led
    return person or lemma not in vocabulary("machine_verbs")


def _is_adverb(word: str) -> bool:
    return word.endswith("ly") and word not in {"italy", "family", "jelly", "curly", "july"}


def complement(
    sentence: WordedSentence, subject: Subject, at: int, cue: Span, *, past: bool = False
) -> Iterator[Denial]:
    """Denials of what somebody is: "not a dentist", "not allergic to nuts", "not using Chrome"."""
    word = sentence.low(at)
    if word in vocabulary("passing_states") or word == "willing":
        return
    is_not = (
        ("were not" if past else "are not") if subject.plural else ("was not" if past else "is not")
    )
    if word.endswith("ing") and len(word) >= SHORTEST_GERUND and not sentence.capital(at):
        lemma = verb_lemma(word)
        if lemma not in vocabulary("empty_verbs") and sentence.low(at + 1) != "to":
            yield from governed(sentence, subject, lemma, at + 1, cue, f"{is_not} {word}")
        return
    span = object_at(sentence, at)
    if span.begin < span.end and is_state(sentence, span, past=past):
        for item in alternatives(sentence, span):
            if item is span or is_state(sentence, item, past=past):
                yield Denial(subject, "be", item, is_not, item.end, cue)


def is_state(sentence: WordedSentence, span: Span, *, past: bool = False) -> bool:
    """Whether the words say what somebody lastingly is."""
    first = sentence.low(span.begin)
    length = span.end - span.begin
    if past and first not in {"born", "raised"} and first not in _ARTICLES:
        return sentence.capital(span.begin)
    if first in _ARTICLES:
        inner = core(sentence, span)
        last = sentence.low(inner.end - 1)
        return inner.begin < inner.end and not {last, sentence.low(inner.begin)} & vocabulary(
            "state_nouns_not"
        )
    if first in vocabulary("states"):
        return length > 1 or first not in vocabulary("states_with_object")
    if first in {"in", "at", "on", "with"}:
        return length > 1 and sentence.capital(span.begin + 1)
    return sentence.capital(span.begin) and first not in {"ok", "okay", "i", "god"}


def shown_object(sentence: WordedSentence, span: Span | None) -> str:
    """The object as a sentence about the user says it."""
    if span is None:
        return ""
    swap = {"my": "their", "our": "their", "me": "the user", "us": "the user"}
    parts: list[str] = []
    for index in range(span.begin, span.end):
        written = sentence.verbatim(index, index + 1)
        glued = index > span.begin and sentence.words[index].start == sentence.words[index - 1].end
        parts.append(("" if glued or not parts else " ") + swap.get(sentence.low(index), written))
    return "".join(parts)


def pattern_of(sentence: WordedSentence, denial: Denial) -> str:
    """The words that a memory must hold to be denied: verb lemma and object."""
    if denial.span is None:
        return denial.lemma
    return f"{denial.lemma} {spoken(sentence, core(sentence, denial.span))}"


def subject_of(sentence: WordedSentence, index: int, user_name: str | None) -> Subject | None:
    """The subject of the finite verb at ``index``, over adverbs and "have"."""
    last = skip_back(sentence, index - 1)
    if sentence.low(last) in {"have", "has", "had"}:
        last -= 1
    if last < 0:
        return None
    return subject_ending(sentence, last, user_name=user_name)


# --- denials by contrast: "X, not Y", and "used to, but not any more"

_CONTRAST_LONGEST = 4


def contrast(sentence: WordedSentence, index: int, user_name: str | None) -> Iterator[Denial]:
    """Denials put as "I work in X, not Y", "it's X I run, not Y", "I'm an X, not a Y"."""
    comma = sentence.low(index - 1) == ","
    if sentence.low(index) != "not" or index < 3:  # noqa: PLR2004 - subject, verb and object before it
        return
    denied = object_at(sentence, index + 1)
    ends = sentence.is_boundary(denied.end) or sentence.low(denied.end) in {"and", "but", "anymore"}
    if not ends or not 0 < denied.end - denied.begin <= _CONTRAST_LONGEST:
        return
    stop = index - 1 if comma else index
    begin = stop - 1
    while not sentence.is_boundary(begin - 1) and sentence.low(begin) not in {"but", "because"}:
        begin -= 1
    while begin < stop and sentence.low(begin) in vocabulary("lead_ins"):
        begin += 1
    if stop - begin < 2 or _is_clause(sentence, denied):  # noqa: PLR2004 - subject and verb
        return
    if not comma and not (
        sentence.capital(denied.begin) or sentence.low(denied.begin) in _ARTICLES_OR_PLACES
    ):
        return
    cue = Span(index, index + 1)
    if _meant(sentence, begin, stop, denied):
        yield Denial(user(begin), "use", denied, "does not use", denied.end, cue)
    yield from _contrasted(sentence, begin, stop, denied, cue, user_name)


_ARTICLES_OR_PLACES = frozenset("a an the my our in at".split())
_DETERMINED = frozenset("a an the my our his her their in at on to for with from".split())
_NO_CONTRAST = frozenset(
    (
        "gonna going lying kidding joking because for that to when if since as just only even "
        "really so very too yet bad sure any always necessarily often many much least everyone "
        "all until unless including counting quite exactly "
    ).split()
)


def _is_clause(sentence: WordedSentence, span: Span) -> bool:
    first = sentence.low(span.begin)
    number = first[0].isdigit() or first in {"two", "three", "four", "five", "six", "ten", "twice"}
    return (
        first in _NO_CONTRAST
        or first.endswith("ly")
        or number
        or first in vocabulary("vague_objects")
    )


def _contrasted(
    sentence: WordedSentence, begin: int, stop: int, denied: Span, cue: Span, user_name: str | None
) -> Iterator[Denial]:
    first = sentence.low(begin)
    if first in {"it's", "its"} or (first == "it" and sentence.low(begin + 1) == "is"):
        lemma_at = _cleft_verb(sentence, begin, stop)
        if lemma_at is not None:
            lemma = verb_lemma(sentence.low(lemma_at))
            yield Denial(user(begin), lemma, denied, f"does not {lemma}", denied.end, cue)
        return
    last, verb_at, be = _subject_and_verb(sentence, begin, stop)
    if last is None or verb_at >= stop:
        return
    subject = subject_ending(sentence, last, user_name=user_name)
    if subject is None:
        return
    if be:
        affirmed = Span(verb_at, stop)
        if is_state(sentence, denied) and is_state(sentence, affirmed):
            yield Denial(subject, "be", denied, "is not", denied.end, cue)
        return
    lemma = verb_lemma(sentence.low(verb_at))
    empty = vocabulary("empty_verbs") | vocabulary("wished")
    if lemma in empty or sentence.low(verb_at) in vocabulary("reporting"):
        return
    # "My coffee black, not white" contrasts what it is like, not what it is.
    bare = not sentence.capital(denied.begin) and sentence.low(denied.begin) not in _DETERMINED
    if bare and sentence.low(verb_at + 1) in _DETERMINED:
        return
    if stop - verb_at > 1 and is_telling(sentence, denied, led=True):
        yield Denial(subject, lemma, denied, f"{does_not(subject)} {lemma}", denied.end, cue)


def _subject_and_verb(
    sentence: WordedSentence, begin: int, stop: int
) -> tuple[int | None, int, bool]:
    """Index of the subject's last word, of the verb or complement, and whether it is "be"."""
    if sentence.low(begin).partition("'")[0] in {"i", "we", "he", "she", "they"}:
        return _after_pronoun(sentence, begin)
    for index in range(begin + 1, min(begin + 4, stop)):
        if sentence.low(index) in {"is", "are"}:
            return index - 1, index + 1, True
        if sentence.low(index).endswith("'s") and sentence.low(begin) in {"my", "our"}:
            return index, index + 1, True
    # "My sister lives in Oslo", "Anna lives in Oslo": the verb shows its ending.
    at = begin + (2 if sentence.low(begin) in {"my", "our"} else 1)
    if at < stop and sentence.low(at).isalpha() and sentence.low(at).endswith("s"):
        return at - 1, at, False
    return None, 0, False


def _after_pronoun(sentence: WordedSentence, begin: int) -> tuple[int | None, int, bool]:
    ending = sentence.low(begin).partition("'")[2]
    at = skip_on(sentence, begin + 1)
    if ending:
        return (begin, at, True) if ending in {"m", "re", "s"} else (None, 0, False)
    if sentence.low(at) in {"am", "is", "are"}:
        return begin, skip_on(sentence, at + 1), True
    return (None, 0, False) if sentence.low(at) in {"was", "were"} else (begin, at, False)


def _meant(sentence: WordedSentence, begin: int, stop: int, denied: Span) -> bool:
    """Whether it is "it's X" or "I meant X" of two tools: those are used, whatever came before."""
    said = f"{sentence.low(begin)} {sentence.low(begin + 1)}"
    it_is = sentence.low(begin) in {"it's", "its"} or said in {"it is", "i meant", "we meant"}
    tools = vocabulary("tools")
    named = sentence.low(stop - 1) in tools
    return it_is and named and sentence.low(core(sentence, denied).begin) in tools


def never_said(sentence: WordedSentence, index: int, user_name: str | None) -> Iterator[Denial]:
    """Denials put as "I never said (that) I use O"; of anything else, it need not be denied."""
    if sentence.low(index) != "never" or sentence.low(index + 1) not in _TOLD:
        return
    subject = subject_of(sentence, index, user_name)
    at = index + 2
    at += sentence.low(at) == "you"
    at += sentence.low(at) == "that"
    if subject is None or subject.name != USER or sentence.low(at) not in {"i", "we"}:
        return
    lemma = verb_lemma(sentence.low(at + 1))
    if sentence.is_boundary(at + 1) or lemma != "use":
        return
    yield from governed(
        sentence, subject, lemma, at + 2, Span(index, index + 1), f"does not {lemma}"
    )


_TOLD = frozenset({"said", "told", "mentioned", "claimed"})


def _cleft_verb(sentence: WordedSentence, begin: int, stop: int) -> int | None:
    for index in range(stop - 2, begin, -1):
        if sentence.low(index) in {"i", "we"}:
            verb_at = skip_on(sentence, index + 1)
            short = stop - verb_at in {1, 2}
            good = verb_lemma(sentence.low(verb_at)) not in vocabulary("empty_verbs")
            return verb_at if short and good else None
    return None


def used_to(sentence: WordedSentence, index: int, user_name: str | None) -> Iterator[Denial]:
    """Denials put as "I used to V O, but not any more"."""
    if sentence.low(index) != "used" or sentence.low(index + 1) != "to":
        return
    verb_at = skip_on(sentence, index + 2)
    lemma = sentence.low(verb_at)
    span = object_at(sentence, verb_at + 1)
    if lemma in vocabulary("empty_verbs") or not _no_more(sentence, span.end):
        return
    subject = subject_of(sentence, index, user_name)
    if subject is None:
        return
    cue = Span(index, index + 2)
    said = f"{does_not(subject)} {lemma}"
    if lemma == "be":
        if is_state(sentence, span):
            yield Denial(subject, "be", span, "is not", span.end, cue)
        return
    if span.begin >= span.end:
        yield Denial(subject, lemma, None, said, span.end, cue)
    else:
        yield from governed(sentence, subject, lemma, verb_at + 1, cue, said)


def _no_more(sentence: WordedSentence, at: int) -> bool:
    while sentence.low(at) in {",", "-", "but", "and", "though"}:
        at += 1
    words = [sentence.low(at + offset) for offset in range(5)]
    if words[0] == "not":
        return words[1] in {"now", "anymore", "today", "these"} or words[1:3] in (
            ["any", "more"],
            ["any", "longer"],
        )
    if words[:2] == ["no", "longer"]:
        return True
    if words[0] in {"i", "we"}:
        rest = words[1:]
        if rest[0] in {"stopped", "quit", "don't", "dont"}:
            return True
        return rest[:2] in (["gave", "up"], ["no", "longer"], ["gave", "it"], ["do", "not"])
    return words[0] in {"stopped", "quit"}
