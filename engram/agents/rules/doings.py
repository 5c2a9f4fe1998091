"""Objects that are something to do: liked, planned, promised."""

from __future__ import annotations

import re
from dataclasses import replace

from engram.agents.rules import objects
from engram.agents.rules.objects import Thing
from engram.agents.rules.spoken import Spoken
from engram.agents.rules.vocabulary import vocabulary
from engram.domain.word_forms import verb_lemma

_INFINITIVE = re.compile(r"\bto\Z", re.I)
_COMPARED = re.compile(r"\s+(?:to|over|rather\s+than|instead\s+of|than)\s+", re.I)
_VAGUE = re.compile(r"(?:the\s+)?(?:idea|way|fact|sound|look|thought|smell)\b", re.I)
_GERUND = re.compile(r"[a-z]{2,}ing\Z")


def liked(spoken: Spoken) -> list[Thing]:
    """What is liked, or liked to do."""
    if _INFINITIVE.search(spoken.said):
        done = objects.activity(spoken.rest.strip())
        return [] if done is None else [replace(done, phrase=f"to {done.phrase}")]
    if _VAGUE.match(spoken.rest.strip()):
        return []
    return objects.several(spoken.rest.strip(), objects.thing)


def preferred(spoken: Spoken) -> list[Thing]:
    """What is preferred, with what it is preferred to."""
    rest = spoken.rest.strip()
    infinitive = bool(_INFINITIVE.search(spoken.said))
    parts = _COMPARED.split(rest, maxsplit=1)
    found = objects.activity(parts[0]) if infinitive else objects.thing(parts[0])
    if found is None:
        return []
    phrase = f"to {found.phrase}" if infinitive else found.phrase
    compared = _COMPARED.search(rest)
    other = objects.activity(parts[1]) if len(parts) > 1 else None
    if compared and other and parts[0].strip() == found.phrase:
        phrase = f"{phrase} {' '.join(compared.group().split())} {other.phrase}"
    return [replace(found, phrase=phrase)]


def plan(spoken: Spoken) -> list[Thing]:
    """What is going to be done; "going to bed" is no plan."""
    first = re.match(r"\s*([\w'-]+)", spoken.rest)
    word = first.group(1) if first else ""
    if not word.islower() or word in vocabulary().plan_blockers or not word.isalpha():
        return []
    if re.match(r"\s*(?:the|a|an|my|our|your|this|that|his|her|their)\b", spoken.rest):
        return []
    return objects.activities(spoken.rest.strip())


def promise(spoken: Spoken) -> list[Thing]:
    """What is promised, in the base form."""
    return [_in_base_form(one) for one in objects.activities(spoken.rest.strip())]


def offer(spoken: Spoken) -> list[Thing]:
    """What "I'll" can promise: to do something, not to see or to try."""
    found = promise(spoken)
    verb = found[0].name.split()[0].casefold() if found else ""
    if verb not in vocabulary().promise_verbs:
        return []
    return [one for one in found if _names_something(one.name.split()[1:])]


def _names_something(words: list[str]) -> bool:
    """Whether there is more than "it now" or "you then"."""
    said = {word.casefold().strip(".,!") for word in words}
    empty = vocabulary().pronouns | {"then", "later", "soon", "now", "back", "up", "a", "the"}
    return bool(said - empty) and not said & {"you", "your"}


def _in_base_form(thing: Thing) -> Thing:
    """From "translating the leaflet" to "translate the leaflet"."""
    verb, _, rest = thing.phrase.partition(" ")
    if not _GERUND.match(verb):
        return thing
    phrase = f"{verb_lemma(verb)} {rest}".strip()
    return Thing(phrase, phrase)
