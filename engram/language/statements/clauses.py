"""Sentences of a turn, and the clauses in which its speaker states something."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import islice

from engram.domain.kept import kept
from engram.language.text import (
    QUOTED,
    SIGNS_APART,
    SPOKEN_WORDS,
    Collapsed,
    SetApart,
    collapsed,
    is_past,
    plain,
    set_apart,
    split_sentences,
    without_quotations,
)
from engram.language.vocabulary import alternatives, expression, expression_text, vocabulary

# --- from a turn to the sentences that state something, each with its place in the turn

# Each turn is read for statements, people, notes and promises, one after the other.
_TURNS_KEPT = 8
# Fenced code, with what tells whether it has its lines for itself.
_FENCED = re.compile(r"(?P<begins>^[ \t]*)?```.*?(?:```|\Z)(?P<ends>[ \t]*$)?", re.DOTALL | re.M)
# Lines of a log, a stack or a shell.
_PASTED = re.compile(
    r"^[ \t]*(?:\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d|(?:\d\d:\d\d:\d\d\S*\s+)?"
    r"(?:ERROR|WARN|WARNING|INFO|DEBUG|TRACE|FATAL|CRITICAL)\b|\$\s|Traceback \(most|File \"|"
    r"at [\w.$]+\()[^\n]*",
    re.M,
)
# "My sister Eve (eve@acme.example) lives in Rome": the sentence is whole without it.
_ASIDE = re.compile(r"(?<!\S)\([^\s()]+(?:://|@)[^\s()]+\)")
# "I have two, no, three cats": not that many.
_NUMBER = r"(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|\d{1,3})"
_MISCOUNTED = re.compile(
    rf"(?<![\w.,:/-]){_NUMBER}(?:, ?| ?\.\.\. ?| [-–—]+ )"
    r"(?:(?:no|nope|wait|sorry|er+m?|um+|uh|actually|make that|i mean|i meant|or rather)"
    r"[, .–—-]{1,4}){1,3}"
    rf"(?={_NUMBER} [a-z])",
    re.I,
)
# From here on a turn passes for something else than what its speaker says.
_FRAME = re.compile(
    r"</?(?:turn|memor|system|user|assistant|message|context|instruction)|<\||\[/?(?:INST|SYSTEM)\]"
    r"|^[ \t]*(?:#+[ \t]*)?(?:system|user|assistant|human|ai|tool|developer)(?:[ \t]+message)?"
    r"[ \t]*:|\brole\"?[ \t]*[:=]|^[ \t]*#{2,}[ \t]*(?:context|system|memor)"
    r"|\[\{\"|\{\"|^[ \t]*\|.*\|[ \t]*$",
    re.I | re.M,
)
# "I live in Boise and my pipes froze, what now?": the statement before a question.
_ASKING = re.compile(
    r"[,;:]\s*(?:so\s+|and\s+|but\s+)?(?:what|how|can|could|do|does|did|any|where|who|which|why|when|is|are|"
    r"should|would|will|have|has|got|shall|may|might)(?:n't)?\b",
    re.I,
)
# "Did I mention I speak Quechua?" asks nothing.
_MENTIONED = re.compile(
    r"(?:\w+,?\s+)?(?:did\s+you\s+know|(?:did|have)\s+i\s+(?:ever\s+|already\s+|not\s+)?(?:mention(?:ed)?|tell\s+you|told\s+you|say|said))"
    r"\s+(?:that\s+)?(?=(?:i|i'm|i've|my|we|we're|we've|our)\b)",
    re.I,
)
_DECLARES = re.compile(r"(?:[\w ]{1,30}:\s*)?(?:i|i'm|i've|my|we|we're|we've|our)\b", re.I)


# Of a turn, so many sentences are read, and so much of each: a turn of the largest size holds
# no more of them where somebody talks. What is longer is a list or a paste, and a pattern that
# looks back and forth within a sentence never has more than this before it.
_MOST_SENTENCES = 400
LONGEST_SENTENCE = 500
# Code and links of a statement have no more letters: what has is a paste.
_LONGEST_APART = 300


@dataclass(frozen=True, slots=True)
class Sentence:
    """A part of a turn.

    Attributes:
        text: With plain apostrophes, blanks for quotations and signs for code and links.
        start: Where it begins in the turn as :func:`masked` has it; as long as what stands there.
    """

    text: str
    start: int


@kept(_TURNS_KEPT)
def sentences(text: str) -> tuple[Sentence, ...]:
    """Sentences that state something: no questions, quotations, conditions or role play."""
    return tuple(_sentences(text))


def _sentences(text: str) -> Iterator[Sentence]:
    own = masked(text)
    if _fiction().search(own):
        return
    for piece in islice(split_sentences(own), _MOST_SENTENCES):
        said = own[piece.start : piece.end]
        sentence = said.strip()
        # Whole: what makes it a wish or an order may stand at its end.
        if "?" in piece.mark:
            sentence = _before_the_question(sentence)
        courtesy = expression("statements", "courtesy").match(sentence)
        sentence = sentence[courtesy.end() :] if courtesy else sentence
        if SIGNS_APART.sub("", sentence).strip() and states(sentence):
            start = piece.start + len(said) - len(said.lstrip())
            start += courtesy.end() if courtesy else 0
            yield Sentence(_within_reason(sentence), start)


def _within_reason(sentence: str) -> str:
    """As much of it as is read, up to the end of a word."""
    if len(sentence) <= LONGEST_SENTENCE:
        return sentence
    return sentence[:LONGEST_SENTENCE].rpartition(" ")[0].rstrip() or sentence[:LONGEST_SENTENCE]


def masked(text: str) -> str:
    """The turn's own words: no quotations, code, links or frames, and blanks are few."""
    return _masked(text)[0].text


def verbatim(text: str, sentence: Sentence) -> str:
    """The words of the turn that the sentence was read from, as they stand there."""
    own, _ = _masked(text)
    end = own.original(sentence.start + len(sentence.text))
    return text[own.original(sentence.start) : end].strip()


def with_words(said: str, text: str) -> str | None:
    """What was made of a turn's words, with the code and the links that it names.

    Args:
        said: With the signs that stand for them in :func:`masked`.
        text: The turn.

    Returns:
        None where one of them is too much for a sentence.
    """
    if SIGNS_APART.search(said) is None:
        return said
    _, apart = _masked(text)
    whole = apart.put_back(said)
    of_one_line = whole.count("\n") == said.count("\n")
    return whole if of_one_line and len(whole) <= len(said) + _LONGEST_APART else None


@kept(_TURNS_KEPT)
def _masked(text: str) -> tuple[Collapsed, SetApart]:
    own = plain(text, dashes=False)
    frame = _FRAME.search(own)
    if frame:
        own = own[: frame.start()]
    apart = set_apart(_ASIDE.sub(_blank, _PASTED.sub(_blank, _FENCED.sub(_without_block, own))))
    return collapsed(without_quotations(_MISCOUNTED.sub(_blank, apart.text))), apart


# "Just kidding, I live in Ostia": the joke came before.
_JOKED = re.compile(
    r"\W{0,3}(?:(?:i'm|i was|no|ok|okay|haha),? )?(?:just|only) (?:kidding|joking)[ ,.:;!–—-]{1,4}"
    r"(?=(?:i|i'm|i've|my|we|we're|our)\b)"
)


def states(sentence: str) -> bool:
    """Whether it says how things are, not how they might be or what to do with memories."""
    lowered = sentence.casefold()
    joked = _JOKED.match(lowered)
    lowered = lowered[joked.end() :] if joked else lowered
    return not (
        _hypothetical_opening().match(lowered)
        or _hypothetical_word().search(lowered)
        or _command().search(lowered)
    )


def _before_the_question(sentence: str) -> str:
    if _MENTIONED.match(sentence):
        return sentence
    asking = _ASKING.search(sentence)
    declares = _DECLARES.match(sentence) or expression("statements", "own_word").match(sentence)
    if asking is None or not declares:
        return ""
    return sentence[: asking.start()]


def _without_block(code: re.Match[str]) -> str:
    """Blank, unless it stands within a sentence."""
    block = code["begins"] is not None and code["ends"] is not None
    return _blank(code) if block else code.group()


def _blank(found: re.Match[str]) -> str:
    """As many spaces."""
    return " " * len(found.group())


# "From now on write short answers" asks for no text.
_ORDERED = (
    r"(?!(?:(?<=from now on )|(?<=from now on, )|(?<=from now on please )|"
    r"(?<=from now on, please ))(?:write|translate|summari[sz]e)\b)"
)


@cache
def _hypothetical_opening() -> re.Pattern[str]:
    opened = alternatives(vocabulary().openings)
    return re.compile(
        rf"\W*(?:(?:{opened})\b[\s,]*)*+{_ORDERED}"
        rf"(?:{alternatives(vocabulary().hypothetical_openings)})\b"
    )


@cache
def _hypothetical_word() -> re.Pattern[str]:
    return re.compile(rf"\b(?:{alternatives(vocabulary().hypothetical_words)})\b")


@cache
def _fiction() -> re.Pattern[str]:
    return re.compile(rf"\b(?:{alternatives(vocabulary().fictions)})\b", re.I)


@cache
def _command() -> re.Pattern[str]:
    return re.compile(rf"\b(?:{alternatives(vocabulary().commands)})\b")


# --- from a sentence to the clauses in which its speaker states something about themselves

# A sentence with more is a list or a paste.
_MOST_BREAKS = 60
# Code or a link that says nothing: "My site: https://a.example I live in Rome". Where words stand
# before it, as in "The tool `ls` I use", it is a part of what is said.
_APART_BEFORE_SPEAKER = rf"{SIGNS_APART.pattern}\s+(?=(?:I(?:'m|'ve)?|My|We(?:'re|'ve)?)\s)"
_CLAUSE_BREAK = re.compile(
    rf"\s*(?:[,;:()]|\s[-–—]+\s|—|\s/\s)\s*(?:{_APART_BEFORE_SPEAKER})?|\A{_APART_BEFORE_SPEAKER}"
    r"|\s+(?=(?:and|but|so|because|since|though|although|while|or|yet)\s)",
    re.I,
)
_FIRST_PERSON = re.compile(
    r"(?:i|ive|im|we|my|our|(?:(?:you\s+can|please|just|feel\s+free\s+to)\s+){0,2}call\s+me|(?:the\s+)?name's|(?:they|everyone|everybody|(?:most\s+)?people|friends|folks)"
    r"\s+(?:just\s+|all\s+)?(?:calls?|knows?)\s+me|home(?:\s+for\s+(?:me|us|now))?(?:\s+(?:is|has|isn't)|'s))\b",
    re.I,
)
_GOES_ON = re.compile(
    r"(?:now\s+|currently\s+)?(?:(?:living|based|working|studying)\s+(?:in|at|as|for)|driving\s+(?:an?|my)|using|studying|learning|back\s+(?:in|on|at))\b",
    re.I,
)
# "Me and my girlfriend live in Leith": the pair of them, and not the girlfriend alone.
_TOGETHER = re.compile(
    r"(?:me\s+(?:and|&|n)\s+(?:my\s+)?[\w'-]+|my\s+[\w'-]+\s+(?:and|&|n)\s+me)\s+(?=[a-z])", re.I
)
_NOW = re.compile(
    r"\b(?:now|these\s+days|nowadays|currently|atm|instead|again|this\s+time|at\s+the\s+moment)\b"
    r"|\Aback\b",
    re.I,
)
# "I'm 28 and living in Medellín"; but "and living in Rome would be hell".
_AND_GOES_ON = re.compile(
    rf"and\s+(?:{_GOES_ON.pattern}|(?:also\s+)?(?:allergic\s+to|married\s+to|fluent\s+in)\b)(?!.*\b(?:would|could|might|is|was|isn't|sounds|seems)\b)",
    re.I,
)
_HAD = re.compile(r"(?:had|did|passed|failed|saw|met|lost|won)\b", re.I)
_ARENT = re.compile(r"\A(?P<who>we(?= are)|i(?= ai)) (?:are|ai)n't\b", re.I)
_I_AM = re.compile(r"\W{0,9}(?:i'm|i\s+am|im|we're|we\s+are)\b", re.I)
# "I'm an ex-teacher, now a librarian"
_NOW_A = re.compile(r"(?:now|currently)\s+an?\s", re.I)
# "Since we broke up I'm living in Hove": what follows the first few words.
_SUBORDINATE = re.compile(
    r"(?:ever\s+since|since|after|now\s+that|because|as)\s+(?:i|we|my\s+\w+|our\s+\w+|the\s+\w+)\s+"
    r"(?:(?!(?:that|if|whether|why|how|say\w*|said|think\w*|thought|tell\w*|told|claim\w*|wish\w*|hop\w+)\b)"
    r"[\w'-]+\s+){1,6}?(?=(?:i'm|i've|we're|we've)\s)",
    re.I,
)
_ORIGIN = re.compile(
    r"\b(?:born|raised|grew up|(?:i'm|i am) (?:\w+ )?from)\b[^,;]{1,60}[,;]\s*\Z", re.I
)
# "... says my horoscope": the words before are somebody else's.
_SAID_AFTER = re.compile(
    r"[,;]\s*(?:says?|said|according\s+to|claims?|jokes?|joked)\s+(?!i\b)", re.I
)


# "Retired nurse here, living in Torquay": each part is said of the speaker.
_AS_WHAT = re.compile(r"\b(?:[a-z][a-z-]{0,30} ){0,2}(?P<work>[a-z][a-z-]{0,30}) here,\s", re.I)
_POSSESSIVE = re.compile(r"(?:the|my|our|your|his|her|their|an?)\b", re.I)
# So it is in "Quick intro: Petra, 34, dentist, living in Ghent".
_INTRODUCTION = re.compile(
    r"\W{0,9}(?:(?:a )?(?:quick|short|brief) )?(?:intro|introduction|about me|bio)\s*:", re.I
)


@dataclass(frozen=True, slots=True)
class Clause:
    """The rest of a sentence from where its speaker speaks of themselves.

    Attributes:
        text: Begins with the speaker; with what was left out put in front.
        at: Where it begins in the turn.
    """

    text: str
    at: int


def clauses(sentence: Sentence) -> Iterator[Clause]:
    """The rests of a sentence that begin with the speaker ("I ...", "my ...").

    A clause is not cut at its end: "I speak Finnish and Estonian" needs both.
    """
    text = sentence.text
    if _SAID_AFTER.search(text):
        return
    # "Had the jabs, no longer allergic": whoever had them.
    spoken = _HAD.match(text) is not None
    introducing = (
        _INTRODUCTION.match(text) is not None
        or (" here, " in text and _is_at_work(text))
        or (
            text[:1] in "Ii"
            and expression("statements", "introduction", exact_case=True).match(text) is not None
        )
    )
    listing = False
    starts = [0, *(found.end() for found in islice(_CLAUSE_BREAK.finditer(text), _MOST_BREAKS))]
    for number, start in enumerate(starts):
        rest = text[start:]
        together = _TOGETHER.match(rest)
        clausal = _SUBORDINATE.match(rest) if rest[:1] in "EeSsAaNnBb" else None
        opening = clausal or (
            None if together or _adverbial().match(rest) else _opening().match(rest)
        )
        clause = _not(rest[opening.end() :] if opening else rest)
        at = sentence.start + len(text) - len(rest) + (opening.end() if opening else 0)
        clause = f"We {rest[together.end() :]}" if together else clause
        before = text[starts[number - 1] if number else 0 : start]
        clause = _with_subject(
            clause,
            first=number == 0 or before.rstrip().endswith(":") or introducing or listing,
            after=(rest, spoken, before),
        )
        # "Living in Split, working as a guide, married to Tea": so goes a list of what one is.
        listing = clause.startswith("I'm ") and not text[start : start + 2].lower().startswith("i")
        if clause and not is_reported(before):
            spoken = clause[:2].lower() in {"i ", "i'", "we", "im", "iv"}
            yield Clause(clause, at)


def _not(clause: str) -> str:
    """With the negation as it is read: "we aren't" is "we're not"."""
    return _ARENT.sub(_said_not, clause, count=1) if "n't " in clause else clause


def _said_not(said: re.Match[str]) -> str:
    return "we're not" if said["who"].lower() == "we" else "I'm not"


def _is_at_work(text: str) -> bool:
    here = _AS_WHAT.match(text)
    works = here is not None and here.group("work").casefold() in vocabulary().occupations
    return works and _POSSESSIVE.match(text) is None


# A place to work has another preposition than one to live: "Where do I work? Ardent".
_ASKED_FOR = {
    "live": "I live in",
    "work": "I work at",
    "work for": "I work for",
    "come from": "I come from",
    "from": "I'm from",
    "based": "I'm based in",
    "living": "I'm living in",
    "working": "I'm working at",
}
_LONGEST_ASKED = 80
_WHERE = re.compile(r"\A(?:in|at|for|from)\s+", re.I)
_TURNED_ROUND = ("cleft", "pseudo_cleft", "topped")


def turned_round(sentence: Sentence, turn: str) -> Iterator[Clause]:
    """What a sentence says with its object first, in plain order: "It's geology I study".

    Args:
        sentence: The sentence.
        turn: What it stands in: "Where do I live? Ghent" is answered by it.
    """
    at, said = opened(sentence)
    trusted = _told_by_authority().match(said) if " it" in said else None
    said = said[trusted.end() :] if trusted else said
    for way in _TURNED_ROUND:
        found = expression("statements", way).match(said)
        if found:
            yield Clause(f"{found['i']} {found['it']}{said[found.end() :]}", at)
            return
    there = expression("statements", "there").match(said) if "where " in said else None
    if there:
        words = _ASKED_FOR[there["verb"].lower()]
        yield Clause(f"{words} {there['it']}{said[there.end() :]}", at)
        return
    before = turn[max(0, sentence.start - _LONGEST_ASKED) : sentence.start]
    if before.rstrip().endswith("?"):
        answer = _WHERE.sub("", said)
        yield from (Clause(f"{words} {answer}", at) for words in _asked(before, said))
        topic = expression("statements", "topic_asked").search(before)
        of_it = expression("statements", "of_the_topic").match(said) if topic else None
        if topic and of_it:
            yield Clause(f"I {of_it['does']} {topic['it']}{of_it['more']}", at)


def _asked(before: str, answer: str) -> Iterator[str]:
    """What the answer to the speaker's own question begins with, were it a sentence."""
    if _FIRST_PERSON.match(answer) or expression("statements", "no_answer").match(answer):
        return
    for way in ("asked_where", "asked_what"):
        found = expression("statements", way).search(before)
        if found:
            verb = found.group("verb") or found.group("am")
            am = f"I'm {verb}" if found.group("am") else f"I {verb}"
            study = way == "asked_where" and verb == "study"
            yield "I study at" if study else _ASKED_FOR.get(verb.lower(), am)
    mine = expression("statements", "asked_mine").search(before)
    if mine:
        yield f"My {mine.group('mine')} is"


def opened(sentence: Sentence) -> tuple[int, str]:
    """Where a sentence begins without its opening ("Well, ..."), and what it says from there."""
    found = _opening().match(sentence.text)
    start = found.end() if found else 0
    return sentence.start + start, sentence.text[start:]


# "Learning Greek is off the table", "working at Tesco was hell", "love is blind": nobody says
# that they do.
_AS_SUBJECT = re.compile(
    r"(?:love|hate|hope)\s+(?:is|was|has|can|will|isn't|doesn't|makes|means|brings|conquers)\b|"
    r"(?:now |currently )?[a-z]{2,12}ing\b"
    r"(?:\s+(?!(?:that|which|who|where|and|but|because|since|so|as|while|when|if|i|we|my|it|there)\b)"
    r"[\w'&-]{1,30}){1,6}?\s+(?:is|was|isn't|wasn't|would|sounds|seems|feels|felt|means|meant)\b",
    re.I,
)


# Nobody is from there.
_FROM_NOW_ON = re.compile(r"from\s+now\s+on\b", re.I)


def _with_subject(clause: str, *, first: bool, after: tuple[str, bool, str]) -> str:
    rest, spoken, before_it = after
    carried_on = _carried_on(clause, rest, before_it) if spoken else None
    if carried_on:
        return " ".join(carried_on)
    before = _trusted().match(clause) or expression("statements", "own_word").match(clause)
    if before is None and clause[:5].lower() == "that " and rest != clause:
        # "It turns out that I": as an opening, it says nothing; here it does.
        clause, before = rest, expression("statements", "own_word").match(rest)
    if before is None and not _FIRST_PERSON.match(clause):
        before = _adverbial().match(clause)
    if before:
        return clause[before.end() :]
    if _FIRST_PERSON.match(clause):
        return clause
    if first and before_it and _is_work(clause):
        # "I'm Aoife, 34, a vet from Galway"
        return f"I'm {clause}"
    # "Currently living in Kyoto", "Ditched Chrome": left out where a sentence begins.
    said_of_self = not (
        expression("statements", "reaction").match(clause)
        or expression("statements", "forbids").match(clause)
    )
    said_of_self = said_of_self and _AS_SUBJECT.match(clause) is None
    for words, subject in _left_out() if first and said_of_self else ():
        # "Still at Acme": as an opening, "still" says nothing; here it does.
        whole = () if _FROM_NOW_ON.match(rest) else (rest,)
        said = next((said for said in (clause, *whole) if words.match(said)), None)
        if said is not None:
            return f"{subject} {said[:1].lower()}{said[1:]}"
    return ""


def _is_work(clause: str) -> bool:
    said = _A_WORD.match(clause)
    return said is not None and not vocabulary().occupations.isdisjoint(
        {said["one"], f"{said['one']} {said['two']}", said["two"] or ""}
    )


_A_WORD = re.compile(r"an?\s+(?P<one>[a-z][a-z-]*)(?:\s+(?P<two>[a-z][a-z-]*))?")


def _carried_on(clause: str, rest: str, before: str) -> tuple[str, str] | None:
    """The subject of the clause before, where this one goes on about it, and its words."""
    # "I quit and started at a bakery": the second verb has the same subject.
    joined = rest.lower().startswith(("and ", "but ", "so ", "no longer "))
    # "Sold it, own a Polestar now": who began without a subject goes on so.
    telling = _goes_on_telling(clause) or (
        _NOW.search(clause) is not None and _FIRST_PERSON.match(before) is None
    )
    shared = _shared(clause) if joined or telling else ""
    if shared:
        return shared, clause
    # "I'm from Naples originally, living in Munich now".
    going_on = _GOES_ON.match(rest) is not None
    if going_on and any((_NOW.search(rest), _NOW.search(before), _ORIGIN.search(before))):
        return "I'm", rest
    if _I_AM.match(before) is None:
        return None
    if _NOW_A.match(rest) or _AND_GOES_ON.match(rest):
        return "I'm", rest.removeprefix("and ")
    # "I'm from Trinidad, born in Tobago"
    born = rest.startswith("born ") and _ORIGIN.search(before) is not None
    return ("I was", rest) if born else None


def _goes_on_telling(clause: str) -> bool:
    """Whether it tells what was done next: "Sold the boat, bought a flat in Zeist"."""
    return is_past(clause.partition(" ")[0].lower()) and _same_subject().match(clause) is not None


def _shared(clause: str) -> str:
    """The subject that a clause shares with the one before it: "... so no longer a lifeguard"."""
    if expression("statements", "no_longer").match(clause):
        return "I'm"
    return "I" if _same_subject().match(clause) else ""


def is_reported(before: str) -> bool:
    """Whether the clause before hands over to somebody else's words: "he said, I ..."."""
    words = SPOKEN_WORDS.findall(before.casefold().rstrip().removesuffix(" that"))
    speakers = {"i", "i've", "i'd", "i'll", "we", "you"}
    return bool(
        words and words[-1] in vocabulary().reporting and not speakers.intersection(words)
    ) or before.rstrip().endswith(QUOTED)


@cache
def _opening() -> re.Pattern[str]:
    words = alternatives(vocabulary().openings)
    # "Greetings from Graz" says where one is, not from where.
    # Bounded: nobody opens a sentence with more, and a page of "and and and" costs no time.
    return re.compile(
        rf"(?:(?!no\s+longer\b|[a-z]+\s+from\s+(?!now\b|today\b|then\b|here\b|next\b))(?:{words})(?:\s+there)?\b[\s,:!]*|[-*•]\s+){{1,8}}(?=\S)",
        re.I,
    )


@cache
def _same_subject() -> re.Pattern[str]:
    verbs = alternatives(vocabulary().shared_verbs | vocabulary().left_out_verbs)
    return re.compile(
        rf"(?:(?:now|then|somehow|eventually|finally|since|later)\s+)?(?:{verbs})\b", re.I
    )


@cache
def _left_out() -> tuple[tuple[re.Pattern[str], str], ...]:
    words = vocabulary()
    adverbs = alternatives(words.adverbs)
    return tuple(
        (re.compile(rf"(?:(?:{adverbs})\s+)*(?:{before})\b", re.I), subject)
        for before, subject in (
            (alternatives(words.left_out_perfects), "I've"),
            (alternatives(words.left_out_pasts), "I was"),
            (rf"{alternatives(words.left_out_states)}|{_from_a_place()}", "I'm"),
            (alternatives(words.left_out_verbs), "I"),
        )
    )


def _from_a_place() -> str:
    """Where somebody is from, without "I'm": "from Leeds", and no "from Slack:", "from memory"."""
    ends = (
        rf"{_NO_JOURNEY}(?=\s*(?:\Z|[,.;!(]|"
        r"(?:and|but|too|btw|lol|haha|myself|though|tho|by|so|actually)\b))"
    )
    known = rf"(?:the\s+)?(?:{_WHAT_PLACES_ARE}\s+)?(?:{alternatives(vocabulary().places)})"
    nobody = (
        rf"(?!(?:{alternatives(vocabulary().products | vocabulary().employers)}|"
        rf"{expression_text('turns', 'first_name')})\b)"
    )
    name = rf"{nobody}(?-i:[A-Z])[\w'-]{{1,30}}(?:\s(?-i:[A-Z])[\w'-]{{1,30}}){{0,2}}"
    place = rf"{known}(?:,?\s+{name})?"
    # "Hull, East Yorkshire", "Kerala, India", "Ilkley in Yorkshire"
    county = r"(?-i:[A-Z])\w{1,20}(?:shire\b|\s(?-i:[A-Z])[\w'-]{1,30})|(?-i:UK|USA?)"
    lies = rf"(?:,|\s+in)\s+(?:{known}|{county})(?=\s*(?:\Z|[,.;!(]))"
    # "Ilkley, 34, nurse", "Bavaria, actually"
    of_somebody = r",\s+(?:\d\d(?=\s*(?:\Z|[,.;!]))|actually\b)"
    settlement = r"(?:[\w-]+\s){0,2}(?:village|town|city|suburb|island|hamlet|farm)\b"
    lives = r",?\s+(?:(?:and|but)\s+)?(?:(?:now|currently)\s+)?(?:living|based|live)\s+"
    born = r"(?:[\w'-]+\s){1,5}?(?:originally|born\s+and)\b"
    return (
        rf"from\s+(?![^:]{{1,60}}:)(?:(?<=originally\sfrom\s)\w|{place}{ends}|{born}|"
        rf"(?:{place}|{name})(?:\s+here{ends}|,\s+(?:an?\s+)?{settlement}|{lives}|(?=\W*\Z))|"
        rf"{name}(?:{lies}|{of_somebody})|{_WHAT_REGIONS_ARE}\s+{name}{ends}|"
        rf"(?:an?|the)\s+{settlement}(?:{ends}|\s(?=(?:in|near|on|outside|called|close)\b)))"
    )


# "From Paris, the train takes two hours", "From London, I flew to Rome"
_NO_JOURNEY = (
    r"(?!,\s+(?:the|it|it's|its|there|you|take|get|(?:i|we)\s+(?:drove|drive|flew|fly|took|take|"
    r"went|go|got|get|caught|catch|walked|cycled|rode|sailed|travell?ed|can|could|had|need)\b))"
)
_WHAT_REGIONS_ARE = r"(?:rural|sunny|rainy|upstate|northern|southern|eastern|western)"
_WHAT_PLACES_ARE = (
    rf"(?:{_WHAT_REGIONS_ARE}|lovely|beautiful|boring|good\s+old|little|inner|central|"
    r"north|south|east|west|outside|near)"
)


@cache
def _trusted() -> re.Pattern[str]:
    """Who knows it of the speaker: "my passport says I was born in Lagos"."""
    return re.compile(rf"{_authority()}(?=(?:i|my)\b)", re.I)


@cache
def _told_by_authority() -> re.Pattern[str]:
    """The same, of "the doctor says it's strawberries I'm allergic to"."""
    return re.compile(rf"{_authority()}(?=it(?:'s|\s+is)\b)", re.I)


def _authority() -> str:
    who = alternatives(vocabulary().authorities)
    return (
        rf"(?:my\s+|the\s+|our\s+)?(?:{who})\s+(?:says?|said|tells?\s+me|told\s+me|confirm(?:s|ed)|"
        r"shows?|showed)\s+(?:that\s+)?"
    )


@cache
def _adverbial() -> re.Pattern[str]:
    """A few words that say when, where or as what: "By trade I'm", "In 2019 we moved"."""
    return re.compile(
        r"(?:in|at|on|by|for|since|after|before|during|from|until|as|starting|not\s+long|last|this|these|next|about|around|over|"
        r"two|three|four|five|six|seven|eight|nine|ten|a|some|\d+|back(?!\s+living)|being|having|coming|growing|when\s+i\s+was)"
        r"(?:\s+(?!(?:that|which|who|if|when|whether|why|how|i|we|ask\w*|say\w*|said|think\w*|thought|tells?|told|"
        r"telling|claim\w*|believes?|believed|insist\w*|wonder\w*|heard|hoping|wish\w*)\b)[\w'-]+){1,6}?\s+(?=(?:i|we|my)\b)",
        re.I,
    )
