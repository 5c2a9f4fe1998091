"""Promises that were kept or called off."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from typing import Final

from engram.domain.memories import Resolution
from engram.language.statements.clauses import Sentence, sentences
from engram.language.text import SPOKEN_WORDS, is_past, stem, verb_lemma
from engram.language.vocabulary import expression, expression_text, word_groups, word_lines

# --- which promises of a conversation were kept or called off later in it

_SHORTEST_CONTENT_WORD: Final = 3
_SHORTEST_ROOT: Final = 4
# Characters in which a sentence has to say how something is.
_LONGEST_STATE: Final = 100
# "Can play chess": what somebody was to be taught stands right after.
_NEXT_WORD: Final = 20
_ABBREVIATION: Final = re.compile(r"[A-Z]{2}")
# Of the words of a promise that somebody who speaks of its end says again.
_LEAST_SHARED: Final = 0.5
# "The case was settled": says of nobody that they were what was promised.
_WHERE: Final = frozenset({"at"})
_FOR_IT: Final = re.compile(r" (?:it|them|that|this)\b", re.I)
_NO_DEED: Final = frozenset({"be"})
# "Rashid's got the drill"
_HAS: Final = re.compile(r"(?<=[a-z])'s (?=(?:got|had|been|taken|borrowed)\b)")
_NOT: Final = re.compile(r"n't\b|\b(?:not|never|no|nobody|hardly)\b", re.I)
_THERE_AGAIN: Final = re.compile(r"\b(?:again|there)\b", re.I)
_FOR_SOMEBODY: Final = re.compile(r"\b(?:him|her|them|his|their)\b", re.I)
# "Send him 20 euros" is not "send her 50".
_TELLS_WHICH: Final = re.compile(r"\b\w*\d\w*|\b(?:him|her|them|you|his|their)\b", re.I)
_ONLY_IT: Final = re.compile(r"(?:it|them|that|those|this)\b", re.I)
_WHOM: Final = re.compile(
    r"\b(?:promised|told|swore to|assured|warned) (?:my|our|the) (?P<who>[\w-]+)", re.I
)
_TOLD: Final = re.compile(
    r"\b(?i:promised|told|tell|swore to|assured|owe|offered|gave) "
    r"(?:(?:Mr|Mrs|Ms|Dr|Aunt|Uncle|Professor)\.? )?(?P<who>[A-Z][\w-]+)"
)
_THEM: Final = re.compile(
    r"\b(?:him|them|"
    r"her(?= (?:an?|the|my|our|some|to|for|with|at|on|in|back|up|out|home|over)\b|\Z))\b"
)
_THEIRS: Final = re.compile(r"\b(?:his|their|her)\b")
_DONE_TO: Final = re.compile(r"(?<=s )\w+\s*(?:\Z|[,;.!])")
_PARTS: Final = re.compile(r"[,;:]\s|\s-\s|\s(?:and|but)\s")
# Who does what was promised in place of the speaker, by whether the promise names them.
_STRANGER: Final = "stranger"
_NAMED: Final = "named"


@dataclass(frozen=True, slots=True)
class Ended:
    """The end of a promise.

    Attributes:
        promise: Number of the promise among those that were given.
        resolution: Kept, or come to nothing.
        sentence: Which says so.
    """

    promise: int
    resolution: Resolution
    sentence: Sentence


def ends(text: str, promises: Sequence[str], said_as: Sequence[str] = ()) -> Iterator[Ended]:
    """What a turn says about the end of promises that were made before it.

    Args:
        text: The turn.
        promises: What was promised: "send Mira the slides".
        said_as: The words in which each was made, which may name for whom: "I told Ann I'd help
            her move".
    """
    later = expression("commitments", "another_time")
    put_off = any(later.fullmatch(one.text) for one in sentences(text))
    said = said_as or promises
    meant = [_spelled_out(promise, words) for promise, words in zip(promises, said, strict=True)]
    for end in _ends(text, meant, said):
        if not (put_off and end.resolution is Resolution.EXPIRED):
            yield end


def _spelled_out(promise: str, said_as: str) -> str:
    """The promise with whom it was made to by name: "lend Ann my drill" for "lend her my drill"."""
    told = _TOLD.search(said_as)
    if told is None or told.group("who") in promise:
        return promise
    who = told.group("who")
    named = _THEM.sub(who, promise, count=1)
    return named if named != promise else _THEIRS.sub(f"{who}'s", promise, count=1)


def _ends(text: str, promises: Sequence[str], said_as: Sequence[str]) -> Iterator[Ended]:
    for sentence in sentences(text):
        said = _stems(sentence.text)
        meant = _meant(sentence.text, promises)
        if meant:
            yield from (Ended(number, how, sentence) for number, how in meant)
            continue
        for number, promise in enumerate(promises):
            rode = _went_without(sentence.text, promise)
            did = None if rode else _did(sentence.text, promise)
            doing = did is not None or bool(_stems(_verb(promise)) & said)
            done_for = doing and _is_done_for(said_as[number], promise, sentence.text)
            how = None
            # Asked first, since finding out how takes longer: most sentences are about others.
            if _is_about(promise, said, did=did is not None) or done_for:
                how = _of_not_doing(sentence.text, promise) or _how(sentence.text, promise, did=did)
            if how is not None:
                yield Ended(number, how, sentence)
            elif did is None and (
                _is_done_otherwise(sentence.text, promise, said_as[number])
                or _does_without_me(sentence.text, promise, said_as[number])
            ):
                yield Ended(number, Resolution.EXPIRED, sentence)


def _is_done_for(said_as: str, promise: str, text: str) -> bool:
    """Whether it names whom it was promised to, and tells nothing of their doing: "drive her"."""
    whom = _named(said_as) if _FOR_SOMEBODY.search(promise) else frozenset[str]()
    first, *others = SPOKEN_WORDS.findall(text)
    return bool(whom & _stems(" ".join(others))) and not _stems(first) & whom


def _of_not_doing(text: str, promise: str) -> Resolution | None:
    """What becomes of a promise not to do something: "Ate there again", "Haven't smoked since"."""
    if _had_what_was_given_up(text, promise):
        return Resolution.EXPIRED
    avoided = expression("commitments", "avoided").match(promise)
    if avoided is None:
        return None
    verb = verb_lemma(avoided.group("verb").lower())
    words = [word.lower() for word in SPOKEN_WORDS.findall(text)]
    if not any(is_past(word) and verb_lemma(word) == verb for word in words):
        return None
    # "I won't eat there again": whoever ate at home did not.
    if not _stems(avoided.string[avoided.end() :]) and not _THERE_AGAIN.search(text):
        return None
    if not _NOT.search(text):
        return Resolution.EXPIRED
    kept_off = expression("commitments", "for_good").match(promise) is None
    return Resolution.FULFILLED if kept_off else None


def _had_what_was_given_up(text: str, promise: str) -> bool:
    """Whether who was to do without it had it: "Ate a whole bag of crisps"."""
    without = expression("commitments", "without_what").match(promise)
    if without is None or _NOT.search(text):
        return False
    # What others had is their affair.
    first = SPOKEN_WORDS.findall(text)[:1]
    had = expression("commitments", "consumed").search(text)
    own = had is not None and (first[0].lower() in {"i", "we"} or not text[: had.start()].strip())
    return own and bool(_stems(without.group("what")) & _stems(text))


def names_what(text: str, promise: str) -> bool:
    """Whether a sentence of another conversation speaks of this promise, and no other like it.

    It has the things that were promised, not only whom it was promised to, unless the promise has
    no other and the sentence its verb: "call Gran"; what is promised for every week is never over.
    """
    if expression("commitments", "repeated").search(promise):
        return False
    words = _stems(promise.partition(" ")[2])
    shared = words & _stems(text)
    things = _things(promise) or (_named(promise) if _did(text, promise) else frozenset())
    return bool(things & shared) and len(shared) >= _LEAST_SHARED * len(words)


def _things(promise: str) -> frozenset[str]:
    return _stems(" ".join(word for word in promise.split()[1:] if not word[:1].isupper()))


class PromisesByThing:
    """Which of many promises a turn of another conversation can name, found by their things.

    Whoever has promised a hundred things says most of the time nothing about any of them.

    Args:
        promises: What was promised.
    """

    def __init__(self, promises: Sequence[str]) -> None:
        self._by_thing: dict[str, list[int]] = {}
        for number, promise in enumerate(promises):
            for thing in _things(promise) or _named(promise):
                self._by_thing.setdefault(thing, []).append(number)

    def named_in(self, text: str) -> list[int]:
        """The numbers of those of which a thing stands in the text, in order."""
        if not self._by_thing:
            return []
        said = _stems(text) & self._by_thing.keys()
        return sorted({number for thing in said for number in self._by_thing[thing]})


def gave_in(text: str) -> Sentence | None:
    """Where somebody could not do without, and names nothing: "I caved and had one"."""
    caved = expression("commitments", "caved_in")
    if expression("commitments", "may_give_in").search(text) is None:
        return None
    return next((one for one in sentences(text) if caved.match(one.text)), None)


def is_again(promise: str, earlier: str) -> bool:
    """Whether it is the same in other words: "ring Grandma tomorrow" after "call Grandma"."""
    if _verb(promise) not in _doings(_verb(earlier)):
        return False
    what, before = promise.partition(" ")[2], earlier.partition(" ")[2]
    things = _stems(what)
    if not things:
        # "I'll drop them in on Wednesday": what was to be dropped off.
        return bool(_stems(before)) and bool(_ONLY_IT.match(what))
    return things == _stems(before) and _which(what) == _which(before)


def is_promised_back(debt: str, promises: Iterable[str]) -> bool:
    """Whether "Stefan the money" is what one promised: to "pay Stefan back"."""
    again = expression("statements", "that_debt").match(debt)
    whom = _stems(again.group("whom")) if again else frozenset()
    return bool(whom) and any(whom <= _stems(one) for one in promises)


def _which(what: str) -> frozenset[str]:
    return frozenset(word.lower() for word in _TELLS_WHICH.findall(what))


def kept(text: str) -> Iterator[tuple[str, Sentence]]:
    """What was done "as promised", by the speaker's own word: "bring the folding chairs"."""
    for sentence in sentences(text):
        found = expression("commitments", "kept").match(sentence.text)
        verb = found.group("verb").lower() if found else ""
        if found and is_past(verb):
            yield f"{verb_lemma(verb)} {found.group('it').strip()}", sentence


def _meant(text: str, promises: Sequence[str]) -> list[tuple[int, Resolution]]:
    """The end of promises that are not named: "Sent it", "All done", "Tom will do it instead"."""
    only = len(promises) == 1
    if only and _is_taken_over(text, promises[0], unnamed=True):
        # "Harriet's leading it"
        return [(0, Resolution.EXPIRED)]
    if only and expression("commitments", "dropped_that").search(text):
        return [(0, Resolution.EXPIRED)]
    avoided = _of_doing_without(promises)
    if len(avoided) == 1 and (
        gave_in(text) or (only and expression("commitments", "caved").match(text))
    ):
        return [(avoided[0], Resolution.EXPIRED)]
    if _is_put_off(text) or any(
        expression("commitments", said).search(text) for said in ("open", "dropped")
    ):
        return []
    if expression("commitments", "done_all" if len(promises) > 1 else "done_that").search(text):
        return [(number, Resolution.FULFILLED) for number in range(len(promises))]
    found = expression("commitments", "that").match(text)
    return _meant_by(found.group("verb").lower(), promises) if found else []


def _of_doing_without(promises: Sequence[str]) -> list[int]:
    """The numbers of those to do without something: of these one gives in."""
    without = expression("commitments", "gives_up")
    return [number for number, promise in enumerate(promises) if without.match(promise)]


def _meant_by(verb: str, promises: Sequence[str]) -> list[tuple[int, Resolution]]:
    """Which promise a verb alone is about: "Sent it"."""
    if expression("commitments", "finished").fullmatch(verb):
        return [(0, Resolution.FULFILLED)] if len(promises) == 1 else []
    if not is_past(verb):
        return []
    doing = [n for n, one in enumerate(promises) if verb_lemma(verb) in _doings(_verb(one))]
    return [(doing[0], Resolution.FULFILLED)] if len(doing) == 1 else []


def _is_put_off(text: str) -> bool:
    """Whether it is to be done at another time: whatever else is said, it is still promised."""
    return expression("commitments", "put_off").search(text) is not None


def _how(text: str, promise: str, *, did: str | None) -> Resolution | None:
    """What becomes of it: done, called off, or nothing yet.

    Args:
        text: The sentence.
        promise: What was promised.
        did: The word in it that says it was done, if one does.
    """
    if _is_put_off(text) or _is_of_another(text, promise, did):
        return None
    off = expression("commitments", "dropped").search(text)
    by_them = _is_done_by(_NAMED, text, promise, did)
    # Who promised to cancel, and cancelled, has kept the promise.
    called_off = off and (by_them or not (did and _is_done_in(off.group(), did)))
    called_off = called_off or _is_given_up(text, promise)
    called_off = called_off or _stayed_away(text, promise)
    if called_off or _is_done_by(_STRANGER, text, promise, did) or _is_taken_over(text, promise):
        return Resolution.EXPIRED
    if by_them:
        # "Amina covered mine": whom it was promised to did something like it.
        did = None
    # "Sent the slides, I'll present them tomorrow": what is still to come is something else.
    if expression("commitments", "open").search(_part_with(did, text) if did else text):
        return None
    if did or expression("commitments", "done").search(text) or _came_about(text, promise):
        return None if _goes_on(text, promise) else Resolution.FULFILLED
    if expression("commitments", "dropped_else").search(text) or _is_lost(text, promise):
        return Resolution.EXPIRED
    return None


def _is_of_another(text: str, promise: str, did: str | None) -> bool:
    """Whether something else is told of than what was to be made or given.

    Who is to write a review of a book has not when the book is out; who sent Lena a photo sent
    her no recipe.
    """
    if did is None:
        what, of, _ = promise.partition(" of ")
        made = bool(of) and expression("commitments", "making").fullmatch(_verb(promise))
        return bool(made) and not _stems(what) & _stems(text)
    things = _things(promise)
    after = text[text.lower().find(did) + len(did) :]
    given = expression("commitments", "another_one").match(after)
    if things & _stems(expression_text("commitments", "anything")):
        return False
    return bool(things) and given is not None and not things & _stems(text)


def _stayed_away(text: str, promise: str) -> bool:
    """Whether who was to come was not there: "Missed practice today"."""
    going = expression("commitments", "going").fullmatch(_verb(promise))
    return bool(going) and bool(expression("commitments", "stayed_away").search(text))


def _is_done_otherwise(text: str, promise: str, said_as: str) -> bool:
    """Whether the one it was for needs it no more: "Gran got a lift from Sheila"."""
    # "Flight's cancelled, Sana's not going": in whichever part of the sentence.
    other = expression("commitments", "another_way")
    otherwise = other.match(text)
    if otherwise is None:
        text = next((part for part in _PARTS.split(text) if other.match(part)), text)
        otherwise = other.match(text)
    if otherwise is None and not _went_without(text, promise):
        return False
    if _is_put_off(text) or expression("commitments", "open").search(text):
        return False
    # "Cover for her": who that is stands in the words of the promise.
    unnamed = _FOR_SOMEBODY.search(promise) or not _stems(promise.partition(" ")[2])
    whom = _named(said_as) if unnamed else _named(promise)
    # "The kids got the bus".
    said = 1 if otherwise else 2
    subject = " ".join(SPOKEN_WORDS.findall(text)[:said])
    return bool(_stems(subject) & (whom if otherwise else whom | _stems(promise)))


def _does_without_me(text: str, promise: str, said_as: str) -> bool:
    """Whether whom it was promised to got on alone: "Leila submitted without waiting for me"."""
    if expression("commitments", "without_me").search(text) is None:
        return False
    if _is_put_off(text) or expression("commitments", "open").search(text):
        return False
    told = _WHOM.search(said_as)
    whom = _named(promise) | _named(said_as) | (_stems(told.group("who")) if told else frozenset())
    return bool(whom & _stems(" ".join(SPOKEN_WORDS.findall(text)[:2])))


def _went_without(text: str, promise: str) -> bool:
    """Whether who was to be driven got there in another way: "Ewan took a cab"."""
    driven = expression("commitments", "driving").match(promise)
    return bool(driven) and bool(expression("commitments", "rode").match(text))


def _is_lost(text: str, promise: str) -> bool:
    """Whether what it was about is no more: "Yara's cactus died"."""
    found = expression("commitments", "lost").finditer(text)
    return any(_stems(one.group("what")) & _things(promise) for one in found)


def _part_with(word: str, text: str) -> str:
    parts = _PARTS.split(text)
    return next((one for one in parts if word in SPOKEN_WORDS.findall(one.lower())), text)


def _goes_on(text: str, promise: str) -> bool:
    """Whether it is to be done again and again, and is told to be done but once."""
    again = expression("commitments", "again_and_again")
    return bool(again.search(promise)) and not expression("commitments", "throughout").search(text)


def _is_done_by(who: str, text: str, promise: str, did: str | None) -> bool:
    """Whether a sentence begins with somebody else, named in the promise or not, who did it."""
    before = expression("commitments", "others").match(text) if did else None
    if before is None or not text[before.end() :].lower().startswith(did or ""):
        return False
    if is_past(SPOKEN_WORDS.findall(before.group())[0].lower()):
        # "Spent Saturday painting the shed": nobody of that name.
        return False
    if before.group().split()[1:2] == promise.split()[-1:]:
        # "Write to my aunt", and it is she who wrote.
        return who == _NAMED
    shared = _stems(before.group()) & _stems(promise)
    if not shared and _DONE_TO.match(text, before.end()):
        # "Pancakes made, batter on the ceiling".
        return False
    if not shared:
        # "Photos sent to Chloe": what was promised comes first, and nobody else.
        return who == _STRANGER
    return who == _NAMED and shared <= _named(promise)


def _is_done_in(words: str, did: str) -> bool:
    return did in words.lower().split() and _NOT.search(words) is None


def _is_given_up(text: str, promise: str) -> bool:
    """Whether it was being done, and is no more: "I've quit coaching the girls' team"."""
    if expression("commitments", "avoided").match(promise):
        return False
    return any(_doing_as_in(text, promise, "stopped_doing", "refused"))


def _doing_as_in(
    text: str, promise: str, *wordings: str, anyhow: bool = False
) -> Iterator[re.Match[str]]:
    """Where a text has one of these wordings, with a verb for what was promised in it.

    Args:
        text: The sentence.
        promise: What was promised.
        wordings: Of those with a verb.
        anyhow: Whether any verb for doing will do, where the thing follows: "doing the solo".
    """
    doings = _doings(_verb(promise))
    for wording in wordings:
        for found in expression("commitments", wording).finditer(text):
            verb = verb_lemma(found.group("verb").lower())
            for_all = anyhow and expression("commitments", "any_doing").fullmatch(verb)
            named = for_all and _things(promise) & _stems(text[found.end() :])
            if named or verb in doings:
                yield found


def _is_taken_over(text: str, promise: str, *, unnamed: bool = False) -> bool:
    """Whether somebody else does it, or was asked to: "Pia is singing the solo".

    Args:
        text: The sentence.
        promise: What was promised.
        unnamed: Whether only a word for it counts: "Pia is singing it".
    """
    if expression("commitments", "together").search(text):
        return False
    done = _doing_as_in(text, promise, "by_another")
    asked = (
        found
        for found in _doing_as_in(text, promise, "taken_over", "asked_to", anyhow=not unnamed)
        if not is_past(found.group("verb").lower())
    )
    told: Iterator[re.Match[str]] = chain(done, asked)
    if unnamed:
        told = (found for found in told if _FOR_IT.match(text, found.end()))
    return any(not _stems(found.group("who")) & _stems(promise) for found in told)


def _came_about(text: str, promise: str) -> bool:
    """Whether it is told by how things are now: "The recycling is out", "Had a call with Gran"."""
    wanted, verb = _stems(promise), _verb(promise)
    shown = _outcomes(verb).union(*(_outcomes(done) for done in _had_done(promise)))
    if expression("commitments", "unchanging").fullmatch(verb):
        # "The CV is proofread"
        shown |= {verb}
    for said in ("state", "turned_out", "gone") if shown else ():
        for now in expression("commitments", said).finditer(text[:_LONGEST_STATE]):
            before = text[: now.start()]
            # "They don't take sofas back": it is said not to be so.
            if _NOT.search(before) or now.group("how").lower() not in shown:
                continue
            if now.group("how").lower() in _WHERE and not _stems(text[now.end() :]) & wanted:
                # "Mum's at work" is not "at the airport".
                continue
            if _stems(before) & wanted:
                return True
    for deed in expression("commitments", "light").finditer(text):
        nouns = deed.group("nouns").lower().split()
        if any(_is_deed(noun, verb) for noun in nouns):
            return True
    if (
        _is_as_new(text, promise)
        or _is_named_done(text, verb)
        or _has_learnt(text, promise)
        or _was_there(text, verb)
    ):
        return True
    return _has_got_it(text, promise)


def _is_as_new(text: str, promise: str) -> bool:
    """Whether what was to be mended or tidied is told to be well now: "The boat's sound again"."""
    if expression("commitments", "mending").fullmatch(_verb(promise)) is None:
        return False
    now = expression("commitments", "as_new").search(text)
    return now is not None and bool(_stems(text[: now.start()]) & _things(promise))


def _has_got_it(said: str, promise: str) -> bool:
    """Whether somebody else has what was to be given, sent or made: "Ada got her quilt".

    What is theirs or named before is meant; "Mia got a cake" tells of another.
    """
    verb, text = _verb(promise), _HAS.sub(" has ", said)
    given = expression("commitments", "giving").fullmatch(verb)
    made = expression("commitments", "making").fullmatch(verb) and _things(promise) & _stems(text)
    others = expression("commitments", "others").match(text) if given or made else None
    if others is None:
        return False
    had = expression("commitments", "received" if given else "got_theirs").match(text, others.end())
    return had is not None and expression("commitments", "any_one").match(text, had.end()) is None


def _was_there(text: str, verb: str) -> bool:
    """Whether who was to come or to see was there: "I was at Marta's recital"."""
    going = expression("commitments", "going").fullmatch(verb)
    return bool(going) and bool(expression("commitments", "was_there").search(text))


def _is_deed(noun: str, verb: str) -> bool:
    """Whether having it, or making it, is doing what was promised."""
    if any(_same_root(noun, doing) for doing in _doings(verb)):
        return True
    return noun in _deeds(verb)


def _is_named_done(text: str, verb: str) -> bool:
    """Whether the doing is spoken of by a noun, as over: "the shift swap went through"."""
    return any(
        _same_root(noun, doing)
        for over in expression("commitments", "went_through").finditer(text[:_LONGEST_STATE])
        for noun in over.group("nouns").lower().replace("-", " ").split()
        for doing in _doings(verb)
    )


def _has_learnt(text: str, promise: str) -> bool:
    """Whether who was to be taught can do it now: "Ben can solder now"."""
    if expression("commitments", "teaching").fullmatch(_verb(promise)) is None:
        return False
    if _verb(promise) == "learn" and expression("commitments", "i_can").search(text) is None:
        return False
    wanted = _stems(promise)
    return any(
        stem(found.group("verb").lower()) in wanted
        or _stems(text[found.end() : found.end() + _NEXT_WORD]) & wanted
        for found in expression("commitments", "learnt").finditer(text)
    )


def _outcomes(verb: str) -> frozenset[str]:
    """How things are that show that it was done: after "hand" they are "in"."""
    return _said_for(verb, "outcomes")


def _deeds(verb: str) -> frozenset[str]:
    """What one has or makes in doing it, by another word: after "call" a "chat"."""
    return _said_for(verb, "deeds")


@cache
def _said_for(verb: str, table: str) -> frozenset[str]:
    lines = (line.partition(":") for line in word_lines("commitments", table))
    said = [words.split() for words, _, verbs in lines if verb in verbs.split()]
    return frozenset(word for words in said for word in words)


def _same_root(noun: str, verb: str) -> bool:
    """Whether they begin alike: "introduction" and "introduce", "call" and "call"."""
    root = max(_SHORTEST_ROOT, min(len(noun), len(verb)) - 2)
    return noun == verb or (len(verb) >= root and noun[:root] == verb[:root])


def _did(text: str, promise: str) -> str | None:
    """Its own verb in the past, or one as good: "Sent off Paolo's reference"."""
    verb = _verb(promise)
    words = [word.lower() for word in SPOKEN_WORDS.findall(text)]
    said = [word for word in words[:2] if word not in {"i", "we"}]
    doings = (_doings(verb) | _had_done(promise)) - _NO_DEED
    first = str(said[0]) if said else ""
    if verb != "be" and expression("commitments", "did_it").search(text):
        return "did"
    if first in doings and expression("commitments", "unchanging").fullmatch(first):
        return first
    spent = expression("commitments", "spent").search(text)
    if spent and verb_lemma(spent.group("verb").lower()) in doings | _helped_with(promise):
        return spent.group("verb").lower()
    own = {f"{verb}d", f"{verb}ed", f"{verb}{verb[-1:]}ed"}
    return next(
        (w for w in words if w != verb and is_past(w) and (verb_lemma(w) in doings or w in own)),
        None,
    )


def _verb(promise: str) -> str:
    return verb_lemma(promise.split(maxsplit=1)[0].lower())


def _named(promise: str) -> frozenset[str]:
    return _stems(" ".join(word for word in promise.split() if word[:1].isupper()))


def _had_done(promise: str) -> frozenset[str]:
    """What somebody else is to do: who promised to get the car washed promised that it is."""
    first, *rest = promise.lower().split()
    made = (word for word in rest if is_past(word)) if first in {"get", "have"} else ()
    return frozenset(verb_lemma(word) for word in made)


def _helped_with(promise: str) -> frozenset[str]:
    """What else is done by who helps: to "help her paint the shed" is to paint."""
    first, *rest = promise.lower().split()
    return frozenset(rest[:2]) if first == "help" else frozenset()


def _doings(verb: str) -> frozenset[str]:
    """The verb, and those that say much the same."""
    groups = word_groups("commitments", "doings")
    return frozenset({verb}).union(*(group for group in groups if verb in group))


def _is_about(promise: str, said: frozenset[str], *, did: bool) -> bool:
    verb, *rest = promise.split()
    words = _stems(" ".join(rest))
    if not words:
        return did or _stems(verb) <= said
    shared = words & said
    if shared and (did or _stems(verb) & said):
        return True
    things = _things(promise)
    # Whom it was promised to is spoken of for many reasons.
    needed = max(1, round(_LEAST_SHARED * len(words)))
    return len(shared) >= needed and bool(shared & things or not things)


def _stems(text: str) -> frozenset[str]:
    empty = expression("commitments", "empty")
    return frozenset(
        _one_name(stem(word.lower().removesuffix("'s")))
        for word in SPOKEN_WORDS.findall(text)
        if (len(word) >= _SHORTEST_CONTENT_WORD or _ABBREVIATION.fullmatch(word))
        and not empty.fullmatch(word)
    )


def _one_name(word: str) -> str:
    """The same for all words for a thing: "table" is what is booked at a restaurant."""
    return _names_of_things().get(word, word)


@cache
def _names_of_things() -> Mapping[str, str]:
    groups = (line.split() for line in word_lines("commitments", "same_things"))
    return {stem(word): stem(words[0]) for words in groups for word in words}
