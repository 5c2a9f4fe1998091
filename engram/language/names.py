"""Names by which the speaker introduces themselves; who else is mentioned is not decided here.

Three readers look for names, and stay three, for they are asked three things. This one must not
take "I'm Sorry" for a person, and looks only where people say who they are. Digests must tell the
people, places and projects of a sentence apart (``engram/digests/names.py``), and rather miss one
than invent one. The rules model lists whatever a statement names, products like "C++" and "3M"
included (``engram/agents/rules.py``). Over 2,748 labelled texts in which one of the last two
finds a name, both find the same in 1,563; one for both would change what is stored and linked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from engram.language.calendar import MONTH_NAMES
from engram.language.found import FoundSpan, Masked
from engram.language.vocabulary import words

_LETTERS = r"[^\W\d_](?:[^\W\d_]|['-](?=[^\W\d_]))*"
_NAME_PART = re.compile(rf"{_LETTERS}\.?")
_MOST_NAME_PARTS = 4
_MOST_NAME_CHARACTERS = 60
_MOST_TRIES = 100

# A clause begins at the start, after punctuation, or after a word that only leads in.
_LEAD = (
    r"(?:(?<=\A)|(?<=[.!?,;:\n(\"-] )|(?<=[.!?,;:\n(\"-])|(?<=\A )|"
    r"(?:\b(?:and|but|so|well|oh|ah|ok|okay|btw|by the way|actually|yes|yeah|hi|hello|hey|hiya|"
    r"heya|howdy|morning|evening|afternoon|there|all|everyone|everybody|guys|folks|again|also|anyway|"
    r"thanks|however|yo|team|greetings)\s))"
)
_MY_NAME = re.compile(
    r"(?<![\w'])my (?:new |current |married |legal )?"
    r"(?:full |first |given |last |family |nick|sur|real )?name(?: is|'s|:| =)\s+"
    r"(?:(?:actually|also|now|officially|legally) )*"
    r"|(?<![\w'])(?:i|i've|i have)(?: just| now| since| finally| legally| officially)*"
    r" changed my (?:full |first |given |last |family |sur)?name to\s+"
    r"|(?<![\w'])(?:i'm|im|i am) (?:called|named)\s+"
    r"|(?<![\w'])i go by (?:the name (?:of )?)?"
    r"|(?:\A|(?<=[.!?\n] )|(?<=\n))(?:full )?name: ?"
)
_DENIES_MY_NAME = re.compile(
    r"\b(?:if|say|says|said|saying|pretend|thinks?|thought|assume|suppose|imagine|wish|like|not|"
    r"called|until|know|guess|remember|forgets?|forgot|case|whether|because|when|where|act as)\s"
    r"(?:that\s)?\Z"
)
_I_AM = re.compile(_LEAD + r"(?:i'm|im|i am|this is|it's|its|it is)\s")
_CALL_ME = re.compile(
    r"(?<![\w'])(?:(?P<who>friends|everyone|everybody|people|they|you can|you may|just|please|"
    r"but|and|or|so)\s)?"
    r"calls? me\s"
)
_CALL_ME_DENIED = re.compile(
    r"(?:n't|not|never|used to|to|did|does|do|could|would|will|'ll|can|he|she|who|or|should|why|"
    r"[a-z]+\sand)\s\Z"
)
_NAME_HERE = re.compile(
    rf"(?:\A\s?|(?<=[.!?\n] )|(?<=\n)|\b(?:{{greeting}})(?: there| all| everyone| again)?[,!.]?\s)"
    rf"(?P<name>{_LETTERS}(?:\s{_LETTERS}){{{{0,2}}}}?),?\s(?P<what>here|speaking)"
    rf"(?=\s?(?:[.,!;:)\n-]|\Z|again\b|from\b|with\b|\())"
)
_AFTER_NAME = re.compile(
    r"\s?(?:[.,!;:?)\n\"-]|\Z|[^\w\s'])|\s(?:and|from|with|by|here|your|calling|but|again|"
    r"speaking|writing|aka|nice|pleased|i|i'm|i've|i'd|who|the|a|an|btw|lol|so|as|one|at|of|in|on|for|if|since|because|"
    r"then|please|thanks|what|how|can|could|do|is|are|now|these days|after|when)\b"
)
_AFTER_I_AM = re.compile(
    r"\s?(?:[.,!;?)\n]|\Z|\(| -|- )|\s(?:and|from|with|here|your|calling|by the way|"
    r"btw|but i|again|nice to|pleased to|aka|a \w+|an \w+|the \w+|i)\b"
)
_AFTER_THIS_IS = re.compile(
    r",?\s(?:from (?!above|below|space|afar|last|when|before|\d)|calling (?:from|about|for|"
    r"to|regarding|with|back|again)|speaking\b|here\b|again\b|writing\b|on the line)"
)
_ENDS_CLAUSE = re.compile(r"\s?(?:[.,!;\n]|\Z)|\s(?:and i|btw|by the way|lol)\b")
_STOPPED = "'s"
# Who is meant, others say.
_PRONOUNS = frozenset({"he", "she", "they"})
_MOST_INITIALS = 2
_NO_INITIALS = frozenset("AI BA EU GP HR IT MD NO OK PA PM PR QA RE TV UK US VP".split())
_SHORTEST_NAME = 3


@cache
def _no_names() -> frozenset[str]:
    return frozenset().union(
        *(words("names", key) for key in ("adjectives", "belonging", "calendar", "roles", "things"))
    )


@cache
def _name_here() -> re.Pattern[str]:
    greetings = "|".join(sorted(words("names", "greetings")))
    return re.compile(_NAME_HERE.pattern.format(greeting=greetings))


_NAME_GATE = re.compile(
    r"\bname\b|\bname's\b|\bi'm\b|\bim\b|\bi am\b|\bthis is\b|\bits\b|\bit's\b|\bit is\b|"
    r"\bcalls? me\b|\bi go by\b|\bhere\b|\bspeaking\b"
)


def find(turn: Masked) -> Iterator[FoundSpan]:
    """Names by which the speaker introduces themselves, as written, without title."""
    if not _NAME_GATE.search(turn.low):
        return
    taken: set[int] = set()
    for rule in (_my_name, _i_am, _call_me, _here):
        for found in rule(turn):
            if found.start not in taken:
                taken.add(found.start)
                yield found


def _my_name(turn: Masked) -> Iterator[FoundSpan]:
    for match in _limited(_MY_NAME, turn.low):
        before = turn.low[max(0, match.start() - 30) : match.start()]
        if _DENIES_MY_NAME.search(before):
            continue
        span = _capitalised(turn, match.end(), cased=True) or _lower_case(turn, match.end())
        if span and _AFTER_NAME.match(turn.low, span[1]):
            yield _found(turn, *span)


def _i_am(turn: Masked) -> Iterator[FoundSpan]:
    for match in _limited(_I_AM, turn.low):
        span = _capitalised(turn, match.end())
        if span is None:
            continue
        phrase = match.group().strip().rpartition(" ")[2]
        subject = "i" if match.group().lstrip().endswith(("i'm ", "im ", "i am ")) else phrase
        greeted = _greeted(turn.low, match.start())
        if subject == "i":
            fits = _AFTER_I_AM.match(turn.low, span[1]) is not None
        else:
            fits = _AFTER_THIS_IS.match(turn.low, span[1]) is not None or (
                greeted and re.match(r"\s?(?:[.,!\n]|\Z)", turn.low[span[1] :]) is not None
            )
        if fits:
            yield _found(turn, *span)


def _greeted(low: str, at: int) -> bool:
    before = low[max(0, at - 40) : at + 12]
    head = re.split(r"[.!?\n]\s", before[: len(before) - 12] if at else "")
    near = head[-1] if head else ""
    opening = (near + low[at : at + 12]).split()
    previous = (
        low[max(0, at - 30) : at].replace(",", " ").replace("!", " ").replace(".", " ").split()
    )
    greetings = words("names", "greetings")
    return any(word.strip(",.!") in greetings for word in opening[:3]) or any(
        word in greetings for word in previous[-3:]
    )


def _call_me(turn: Masked) -> Iterator[FoundSpan]:
    for match in _limited(_CALL_ME, turn.low):
        before = turn.low[max(0, match.start() - 20) : match.start()]
        if match["who"] is None and _CALL_ME_DENIED.search(before):
            continue
        if "n't " in before[-6:] or "used to" in before:
            continue
        span = _capitalised(turn, match.end())
        if span and _AFTER_NAME.match(turn.low, span[1]):
            yield _found(turn, *span)


def _here(turn: Masked) -> Iterator[FoundSpan]:
    if " here" not in turn.low and " speaking" not in turn.low:
        return
    for match in _limited(_name_here(), turn.low):
        span = _capitalised(turn, match.start("name"))
        if span and span[1] == match.end("name"):
            yield _found(turn, *span)


def _limited(pattern: re.Pattern[str], low: str) -> Iterator[re.Match[str]]:
    for count, match in enumerate(pattern.finditer(low)):
        if count >= _MOST_TRIES:
            return
        yield match


def _capitalised(turn: Masked, start: int, *, cased: bool = False) -> tuple[int, int] | None:
    """The run of name words at ``start``; with ``cased``, scripts without capitals count."""
    particles, titles = words("names", "particles"), words("names", "titles")
    at, end, names, begin = start, -1, 0, -1
    while names < _MOST_NAME_PARTS:
        token = _NAME_PART.match(turn.text, at, at + _MOST_NAME_CHARACTERS)
        if token is None:
            break
        word = token.group()
        bare = word.rstrip(".")
        folded = bare.lower()
        if folded in titles and names == 0:
            at = token.end() + 1
            continue
        if names and folded == bare and folded in particles:
            at = token.end() + 1
            continue
        if not _is_name(bare, first=names == 0, uncased=cased):
            break
        initial = len(bare) == 1 and word.endswith(".")
        end = token.end() if initial else token.start() + len(bare)
        begin = token.start() if begin < 0 else begin
        names += 1
        if turn.text[end : end + 1] != " ":
            break
        at = end + 1
    if end < 0 or turn.text[end : end + 1].isalnum():
        return None
    return begin, end


def _is_name(word: str, *, first: bool, uncased: bool) -> bool:
    folded = word.lower()
    parts = (folded, *folded.split("-"))
    if folded.endswith(_STOPPED) or any(part in _no_names() for part in parts):
        return False
    if not word[0].isupper():
        return uncased and not word[0].islower() and not word.isascii()
    if len(word) == 1:
        return not first and word != "I"
    # Written all in capitals it is an abbreviation: "I'm INTJ".
    return not (word.isupper() and word.isascii()) and _ends_like_name(word, folded)


def can_name_a_person(text: str) -> bool:
    """Whether what begins with a capital letter, if it does, can be what somebody is called.

    Written all in capitals it is no name, nor where it begins with a word that passes for one:
    "MY BOSS HATES me", "my husband is Christian". A month may be one, without a day or a year.
    """
    first, _, rest = text.partition(" ")
    first = first.rstrip(".,")
    if not first[:1].isupper() or first.lower() in words("names", "titles") | _PRONOUNS:
        return True
    if first.lower() in words("names", "calendar"):
        return first.lower() in MONTH_NAMES and not rest[:1].isdigit()
    if tells_where_one_belongs(first):
        return True
    # "Tom", "T." and "TJ".
    initials = len(first) <= _MOST_INITIALS and first.isupper() and first not in _NO_INITIALS
    return initials or _is_name(first, first=True, uncased=False)


def tells_where_one_belongs(word: str) -> bool:
    """Whether it is a nationality, a faith, a star sign or the like: "Finn", also a name."""
    return word.lower() in words("names", "belonging")


def _ends_like_name(word: str, folded: str) -> bool:
    for ending in ("ing", "ly"):
        if folded.endswith(ending):
            return folded in words("names", f"{ending}_names")
    before, mark, after = word.partition("'")
    return not mark or after[:1].isupper() or before in {"D", "O"}


def _lower_case(turn: Masked, start: int) -> tuple[int, int] | None:
    """One lower-case word that ends its clause, as in "my name is ada"."""
    token = _NAME_PART.match(turn.low, start, start + _MOST_NAME_CHARACTERS)
    if token is None or not turn.text[start].islower():
        return None
    word = token.group().rstrip(".")
    if (
        len(word) < _SHORTEST_NAME
        or word in _no_names()
        or word.endswith(("ing", "ly", "ed", "'s"))
    ):
        return None
    end = start + len(word)
    return (start, end) if _ENDS_CLAUSE.match(turn.low, end) else None


def _found(turn: Masked, start: int, end: int) -> FoundSpan:
    written = turn.text[start:end]
    return FoundSpan(start, end, written.title() if written.islower() else written)
