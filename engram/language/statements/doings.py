"""What is liked, preferred, planned or promised, as a whole: "books about trains and ships"."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from engram.language.statements.cutting import (
    AND,
    GERUND,
    HARD_CUT,
    Thing,
    as_thing,
    cut_at,
    cut_word_but,
    each_of,
    has_determiner,
    is_clause,
    members,
    thing_preposition,
    until_cut,
    without_adverbs,
    without_dates,
)
from engram.language.statements.objects import MatchContext, activities, activity
from engram.language.text import verb_lemma
from engram.language.vocabulary import expression, vocabulary

_TASTES = "tastes"
_INFINITIVE = re.compile(r"\bto\Z", re.I)
_COMPARED = re.compile(r"\s+(?:to|over|rather\s+than|instead\s+of|than)\s+", re.I)
# "The smell of petrol" is the same everywhere.
_OF_A_KIND = re.compile(r"the\s+(?:smell|sound|taste|feel|feeling)\s+of\s", re.I)
# What is at hand is praised, not liked in general: "I love this series", "Love the colours".
_AT_HAND = re.compile(
    r"(?:my|our) (?:life|lives|luck)\W*\Z|"
    r"(?:all\s+)?(?:this|that|these|those|his|her|their|your|its|everywhere|everything)\b"
    r"|[^,;:.!?(–—-]{0,60}\b(?:you|your)\b",
    re.I,
)
_LISTED_OR = re.compile(r"[^,;:.!?]{1,60}(?:,\s+[^,;:.!?]{1,60}){1,8},?\s+or\s+\w", re.I)
_AND_OR = re.compile(rf"(?:{AND.pattern}|,?\s+or\s+)", re.I)
_LIKED_WORDS = 8
_BOTH = re.compile(r"both\s+", re.I)
# "Bands like Radiohead and Muse" are those; "fruit, especially mangoes" is any.
_LIKE = r"(?:like|such\s+as|including)"
_BY_THE_WAY = re.compile(
    rf",\s+{_LIKE}\s|,?\s+(?:especially|particularly)\s|\s+including\s+(?:at|in|on)\s", re.I
)
_FOR_EXAMPLE = re.compile(rf"\w\s+{_LIKE}\s+(?P<first>\w)", re.I)
# "Stories that tackle big questions", "books about trains": others are not meant.
_NARROWS = re.compile(
    r"\w\s+(?:about|(?:that|who|which)(?:'(?:s|ve|re|d|ll))?|whose|such\s+as)\s+(?=\w)", re.I
)
# "Going to the gym and sushi", "people who listen and dogs": that is over before the "and".
_ENDS_WITH_THE = re.compile(r"\b(?:the|an?|my|our)\s+[\w'-]+\Z", re.I)
_ENDS_WITH_A_VERB = re.compile(r"\b(?:that|who|which)\s+[\w'-]*[^\Ws]\Z", re.I)
_SEVERAL = re.compile(r"[\w'-]{1,30}s", re.I)
# Of what was just shown: "I prefer the first one".
_VERSION = re.compile(
    r"(?:the\s+)?(?:first|second|third|last|other|latter|former|previous|this|that)\s+"
    r"(?:one|version|option|draft|way)\b",
    re.I,
)
_THE = re.compile(r"(?:all\s+)?the\s+(?=[a-z])")
_BROKEN_OFF = re.compile(
    r"\b(?:an?|the|to|of|and|or|with|for|at|by|from|my|our)\Z|\A(?:and|or|is|are)\b", re.I
)
# "Love how it looks", "love watching them": of what, only what was said before tells.
_VAGUE = re.compile(
    r"the\s+(?:idea|way|fact|look|thought)\b"
    r"|the\s+(?:sound|smell|taste|feel)\b(?!\s+of\s+(?!the\b|th[ai]s\b|that\b|it\b|your\b))"
    r"|(?:idea|way|fact|look|thought)\b|how\b|making\s+sure\b|having\s+such\b"
    r"|[a-z]{1,30}ing\s+(?:it|them|him|her|this|that|these|those)\b",
    re.I,
)
# "Creating a safe, inviting place": what it is comes after the cut.
_ONLY_WHAT_LIKE = re.compile(r"\ban?\s+[a-z]+\Z")
_MORE_FOLLOWS = re.compile(
    r",\s*(?!(?:nobody|everybody|everyone|someone|it|it's|he|she|they|we|i|i'm|no|not|so|just|always|"
    r"never|my|our|the)\b)[a-z]"
)
# What belongs to what is liked, and is cut off what is merely named.
_KEPT = frozenset(
    {"with my", "with two", "really", "daily", "weekly", "at home", "at work", "at school"}
)
_KEPT_IN_DOING = _KEPT | {
    "alone", "together", "than", "as", "full time", "full-time", "part time", "part-time",
}  # fmt: skip
_KEPT_IN_CLAUSE = frozenset({"that", "who", "whom", "whose", "which", "where", "as", "than"})


def liked(spoken: MatchContext) -> list[Thing]:
    """What is liked, or liked to do, with what narrows it: "books about trains and ships"."""
    return _liked(spoken, _up_to_its_end)


def disliked(spoken: MatchContext) -> list[Thing]:
    """The same of what is not liked, with what limits it: "coffee in the evening"."""
    return _liked(spoken, _with_its_limits)


def _liked(spoken: MatchContext, whole: Callable[[str], str]) -> list[Thing]:
    if _INFINITIVE.search(spoken.said):
        done = activity(spoken.rest.strip())
        return [] if done is None else [replace(done, phrase=f"to {done.phrase}")]
    rest = _BOTH.sub("", spoken.rest.strip(), count=1)
    rest = rest if GERUND.match(rest) else cut_at(rest, _BY_THE_WAY)
    if _VAGUE.match(rest) or _AT_HAND.match(rest):
        return []
    found = each_of(_as_liked(rest), lambda part: _narrowed(whole(part)), whole)
    if not found or _BROKEN_OFF.search(found[0].name) or _lacks_its_noun(found[0], rest):
        return []
    found = [one for one in found if not _BROKEN_OFF.search(one.name)]
    if _THE.match(rest):
        # "The sea" is liked wherever it is; "the colours" are those of something at hand.
        known = vocabulary().liked_with_the
        by_itself = found[0].name.split()[-1].casefold() in known or _OF_A_KIND.match(rest)
        found = found if by_itself else []
    return found


def _as_liked(rest: str) -> list[str]:
    """The members of a list, where what follows an "and" may belong to what stands before it.

    "Helping people and animals" is one thing to do, "books about trains and ships" are one kind of
    books, and "action and sci-fi movies" are movies.
    """
    groups: list[tuple[int, int]] = []
    at = 0
    # "Slime, glitter, or toys": but "hiking or climbing" is said as one.
    listed = _LISTED_OR.match(rest) is not None
    for part in members(rest, _AND_OR if listed else AND, _LIKED_WORDS):
        start = rest.index(part, at)
        at = start + len(part)
        kept = start + len(HARD_CUT.split(part, maxsplit=1)[0])
        if groups and not is_clause(part) and _belongs(part, rest[slice(*groups[-1])]):
            groups[-1] = (groups[-1][0], kept)
        else:
            groups.append((start, kept))
        if kept < at:
            break
    said = [rest[start:end] for start, end in groups]
    last = until_cut(said[-1])
    if _shares_its_noun(said[:-1], last):
        return [rest[: groups[-1][0] + len(last)]]
    return said


def _belongs(part: str, before: str) -> bool:
    """Whether it stands beside the last words before it, not beside all of them."""
    example = _FOR_EXAMPLE.search(before)
    if example is not None:
        # After "films like Alien", "dogs" are none of them.
        return example["first"].islower() or part != part.lower()
    if _NARROWS.search(before):
        return not (_ENDS_WITH_A_VERB.search(before) and _SEVERAL.fullmatch(part))
    if GERUND.match(before) and " " in before:
        over = _ENDS_WITH_THE.search(before) is not None and not has_determiner(part)
        return not over and GERUND.match(part) is None
    return _is_cut_at_preposition(before) and not _is_cut_at_preposition(part)


def _is_cut_at_preposition(part: str) -> bool:
    return not GERUND.match(part) and thing_preposition().search(until_cut(part)) is not None


def _shares_its_noun(before: Sequence[str], last: str) -> bool:
    *kind, noun = last.casefold().split() or [""]
    shared = bool(before and kind) and noun in vocabulary().shared_nouns
    return shared and all(expression(_TASTES, "kind").fullmatch(one) for one in before)


def _narrowed(phrase: str) -> Thing | None:
    """A thing with what tells which of its kind are meant: "people who listen"."""
    return as_thing(without_adverbs(phrase), at_most=14)


def _up_to_its_end(part: str) -> str:
    """Without when and where a thing is liked, which is liked anywhere; what is done is not."""
    text = _with_its_limits(part)
    if GERUND.match(text) or _NARROWS.search(text):
        return text
    return cut_at(text, expression(_TASTES, "circumstance"))


def _with_its_limits(part: str) -> str:
    text = part if expression(_TASTES, "habitual").search(part) else without_dates(part)
    ends = cut_word_but(_KEPT_IN_DOING if GERUND.match(text) else _KEPT)
    told = _NARROWS.search(text)
    if told is not None and ends.search(text[: told.start() + 1]) is None:
        return text[: told.end()] + cut_at(text[told.end() :], cut_word_but(_KEPT_IN_CLAUSE))
    return cut_at(cut_at(text, ends), expression(_TASTES, "remark"))


def _lacks_its_noun(one: Thing, rest: str) -> bool:
    after = rest[rest.find(one.phrase) + len(one.phrase) :]
    return bool(_ONLY_WHAT_LIKE.search(one.phrase) and GERUND.match(one.name)) and bool(
        _MORE_FOLLOWS.match(after)
    )


def preferred(spoken: MatchContext) -> list[Thing]:
    """What is preferred, with what it is preferred to."""
    rest = spoken.rest.strip()
    if _VERSION.match(rest):
        return []
    infinitive = bool(_INFINITIVE.search(spoken.said))
    parts = _COMPARED.split(rest, maxsplit=1)
    found = activity(parts[0]) if infinitive else _preferred(parts[0])
    if found is None:
        return []
    phrase = f"to {found.phrase}" if infinitive else found.phrase
    compared = _COMPARED.search(rest)
    other = activity(parts[1]) if len(parts) > 1 else None
    if compared and other and parts[0].strip() == found.phrase:
        phrase = f"{phrase} {' '.join(compared.group().split())} {other.phrase}"
    return [replace(found, phrase=phrase)]


def _preferred(rest: str) -> Thing | None:
    """Whatever is set against something else: "pen and paper"."""
    text = HARD_CUT.split(rest, maxsplit=1)[0]
    for joined in AND.finditer(text):
        if is_clause(text[joined.end() :]):
            text = text[: joined.start()]
            break
    # When and where is what is preferred: "deliveries in the morning".
    return _narrowed(_with_its_limits(text))


# --- what is planned or promised

_YOU = re.compile(r"\byou\b", re.I)
_YOURS = re.compile(r"\byour\b", re.I)
# "Keep doing my", "was wondering": what was to be done, nobody can tell.
_NOT_WHOLE = re.compile(
    r"\A(?:was|were|is|are|am)\b"
    r"|\b(?:an?|the|of|and|or|my|our|their|your|to|believing in|the ones?)\Z"
    r"|\bto (?:see|know|check|find out)\Z",
    re.I,
)


def plan(spoken: MatchContext) -> list[Thing]:
    """What is going to be done; "going to bed" is no plan."""
    first = re.match(r"\s*([\w'-]+)", spoken.rest)
    word = first.group(1) if first else ""
    if not word.islower() or word in vocabulary().plan_blockers or not word.isalpha():
        return []
    if re.match(r"\s*(?:the|a|an|my|our|your|this|that|his|her|their)\b", spoken.rest):
        return []
    return [_in_base_form(one) for one in activities(spoken.rest.strip()) if _is_whole(one)]


def promise(spoken: MatchContext) -> list[Thing]:
    """What is promised, in the base form."""
    return [_in_base_form(one) for one in activities(spoken.rest.strip()) if _is_whole(one)]


def _is_whole(one: Thing) -> bool:
    """Whether it names something to do, and is not broken off before it does."""
    said = {word.strip(".,!") for word in one.name.casefold().split()}
    return _NOT_WHOLE.search(one.name) is None and not said <= vocabulary().hollow_words


def offer(spoken: MatchContext) -> list[Thing]:
    """What "I'll" can promise: to do something, not to see or to try."""
    found = promise(spoken)
    words = found[0].name.casefold().split() if found else []
    if not {" ".join(words[:1]), " ".join(words[:2])} & vocabulary().promise_verbs:
        return []
    return [one for one in found if _names_something(one.name.split()[1:])]


def offer_to_you(spoken: MatchContext) -> list[Thing]:
    """The same, said to somebody by name: "I'll feed your cat, Ines"."""
    named = replace(spoken, rest=_YOU.sub("them", _YOURS.sub("the", spoken.rest)))
    return promise(spoken) if offer(named) else []


def _names_something(words: list[str]) -> bool:
    """Whether there is more than "it now" or "you then"."""
    said = {word.casefold().strip(".,!") for word in words}
    empty = vocabulary().pronouns | {
        "trying",
        "going",
        "then",
        "later",
        "soon",
        "now",
        "back",
        "up",
        "a",
        "the",
    }
    return bool(said - empty) and not said & {"you", "your"}


def _in_base_form(thing: Thing) -> Thing:
    """From "translating the leaflet" to "translate the leaflet"."""
    verb, _, rest = thing.phrase.partition(" ")
    if not GERUND.fullmatch(verb):
        return thing
    phrase = f"{verb_lemma(verb)} {rest}".strip()
    return Thing(phrase, phrase)
