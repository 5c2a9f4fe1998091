"""Whether a negation denies what a memory claims.

Decided by words: the memory must say, of the same subject, a verb that means
what the negated one means, and after it the whole negated object. What is
asked, supposed, denied or told as past by the memory is no claim. When it is
not clear, the memory is not covered: hiding a true one costs more.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from engram.domain.kept import kept
from engram.domain.memories import (
    AnyMemory,
    Episode,
    Fact,
    FactCategory,
    NegationFact,
    SemanticMemory,
    Slot,
)
from engram.language.before import denies_the_past
from engram.language.found import FoundNegation
from engram.language.statements.cutting import until_cut, without_adverbs
from engram.language.text import (
    WORDS_AND_SIGNS,
    is_past,
    plain,
    split_sentences,
    stem,
    verb_lemma,
)

_SIGNS_KEPT = frozenset(",;:!?")
_FOR_ME = re.compile(r"\bno\b.{0,200}\bfor (?:me|us|my|our)\b", re.IGNORECASE)

_WORDS_WITHOUT_CONTENT = frozenset(
    "a an the any some my our your his her its their of in on at to for with from by about into as "
    "and or nor me us it that this these those very really 's".split()
)
_MEANS_THE_SAME: tuple[frozenset[str], ...] = (
    frozenset("use utilize utilise run rely employ".split()),
    frozenset("have own possess".split()),
    frozenset("like love enjoy adore".split()),
    frozenset("live reside dwell".split()),
    frozenset("study major".split()),
    frozenset("speak talk".split()),
    frozenset("eat consume".split()),
    frozenset("drink consume".split()),
    frozenset("teach".split()),
)
# Who says that they went there, or saw it, denies that they never did.
_NEVER_BEEN = re.compile(r"\b(?:has|have) (?:never|not) been to\b")
_WENT = (
    r"(?:i'm|we're|was|were|am|are|been) (?:just )?(?:(?:back|home) )?(?:in|from)"
    r"|(?:went|flew|travelled|traveled|(?:got|came|get|come) (?:back|home)|returned|back|home)"
    r"(?: (?:over|down|up|out|back|home|all))* (?:to|from)|visited"
)
_ON_THE_WAY = (
    "the a my our trip holiday honeymoon week two three weeks days to in from around across"
)
_WAS_THERE = {
    # Who speaks may leave out "I": "Just got back from Japan".
    told_by_user: re.compile(
        rf"(?:\A|(?<=[,;:] )|\b{who} )(?:(?:have|has|just|also|only|\w+ly|so|and|then|actually) )*"
        rf"(?:{_WENT})(?: (?:{_ON_THE_WAY.replace(' ', '|')}))* "
    )
    for told_by_user, who in ((True, "(?:i|we|i've|we've)"), (False, "user"))
}
# What comes to be so by what was done: who bought a car has one.
_COMES_OF = {"have": frozenset(map(stem, "buy get purchase adopt inherit acquire lease".split()))}
_WHAT_IT_IS_LIKE = frozenset("new used little small big own old second hand first".split())
_FED = frozenset("have eat drink take consume".split())
# Verbs whose place or employer may come after other words: "works as a cook at Ikea".
_LOOSE = frozenset("live reside work study go move teach".split())
_FORMS_OF_BE = frozenset("is are am was were be been i'm we're 'm 're".split())
_NEGATING = frozenset(
    "not never no none nobody neither nor without stopped quit cannot longer former formerly "
    "hardly "
    "rarely don't doesn't didn't isn't aren't wasn't weren't haven't hasn't won't can't dont "
    "doesnt".split()
)
_SUPPOSING = frozenset(
    "if would wouldn't wish suppose imagine whether unless might could should i'd".split()
)
_ELSEWHERE = frozenset(
    "but because which who while when whereas instead than over unlike except although "
    "though where".split()
)
_PREPOSITIONS = frozenset(
    "of in on at to for with from by about into as after before since".split()
)
_PRONOUNS = frozenset("i we he she they you my our his her their your it".split())
_SPEAKERS = frozenset("i we i'm we're i've we've".split())
_UNRESOLVED = frozenset("he she they it".split())
_SKIPPED = frozenset(
    "also still really actually currently mostly usually often always now just do does did "
    "started began "
    "have has "
    "'ve am is are be been being regularly frequently generally mainly both all".split()
)
_AFTER_OBJECT = frozenset(
    "and or too every daily weekly twice once per each now again a the as instead when because "
    "since but while these right any "
    "so if very most more sometimes often always regularly".split()
)


@kept(4096)
def pattern_terms(pattern: str) -> tuple[str, ...]:
    """The content stems of a negated pattern, each once: the verb's, then the object's.

    For look-ups, and what :func:`covers` compares. "use mongo" gives
    ("use", "mongo"); "be allergic to penicillin" ("be", "allerg", "penicillin").
    """
    verb, *rest = _words(pattern) or ("",)
    terms = [_verb(verb), *_content_stems(rest)]
    return tuple(dict.fromkeys(term for term in terms if term))


def claim_terms(memory: AnyMemory) -> frozenset[str]:
    """All content stems that a memory could claim something with.

    A negation covers it only if each term of its object is among these, and each
    of :func:`subject_terms`, so this sorts out most pairs before :func:`covers`
    reads their sentences; unless the memory :func:`speaks_as` its subject.
    """
    terms = _terms_in(memory.content)
    if isinstance(memory, Episode):
        return terms
    if isinstance(memory, Fact):
        terms |= _terms_in(memory.value)
    slot = getattr(memory, "slot", None)
    if isinstance(slot, Slot):
        terms |= _terms_in(f"{slot.subject} {slot.predicate} {slot.object}")
    return terms


def speaks_as(memory: AnyMemory) -> str | None:
    """The subject of a negation that a memory need not name: whoever has the turn."""
    return (memory.speaker or "user").casefold() if isinstance(memory, Episode) else None


@kept(1024)
def subject_terms(subject: str) -> frozenset[str]:
    """The content stems of a negation's subject; none where it is the user, however named."""
    if _is_the_user(subject):
        return frozenset()
    return frozenset(_content_stems(_words(subject))) - {"user"}


def _is_the_user(subject: str) -> bool:
    return subject == "user" or {"of", "us"} <= set(_words(subject))


@kept(4096)
def _terms_in(text: str) -> frozenset[str]:
    return frozenset(_content_stems(_words(text)))


def covers(negation: NegationFact, memory: AnyMemory) -> bool:
    """Whether what ``memory`` claims is what ``negation`` denies.

    Both must be about the same subject. When either was said plays no part.
    """
    if isinstance(memory, NegationFact) or negation.subject in _UNRESOLVED:
        return False
    verb, *terms = pattern_terms(negation.negates_pattern) or ("",)
    if not verb:
        return False
    if isinstance(memory, Episode):
        return memory.role == "user" and _denied_by_speaker(negation, verb, terms, memory)
    denied = _taken_apart(negation.content, negation.evidence, verb, (*terms,), negation.subject)
    if isinstance(memory, Fact):
        return _names_denied(denied, memory)
    slot = getattr(memory, "slot", None)
    if isinstance(slot, Slot):
        return denied.claimed_by_slot(slot) and not _is_denial(memory.content)
    return denied.claimed_in(memory.content, told_by_user=False)


def denies(found: FoundNegation, slot: Slot) -> bool:
    """Whether what a turn says is not so is what a slot says.

    Args:
        found: In the turn.
        slot: Of the user where "I" says it.
    """
    verb, *terms = pattern_terms(found.negates_pattern) or ("",)
    if not verb or found.subject in _UNRESOLVED:
        return False
    denied = _taken_apart(found.content, found.evidence, verb, (*terms,), found.subject)
    return denied.claimed_by_slot(slot)


def brings_about(negation: NegationFact, memory: SemanticMemory) -> bool:
    """Whether what ``memory`` tells makes so what is denied: "bought a car" of "no car".

    That it was not so before, such a memory does not deny; and later it may not be so any more.
    """
    verb, *terms = pattern_terms(negation.negates_pattern) or ("",)
    if negation.subject in _UNRESOLVED or verb not in _COMES_OF or not terms:
        return False
    denied = _taken_apart(negation.content, negation.evidence, verb, (*terms,), negation.subject)
    return denied.comes_of(memory.content)


def affirms(negation: NegationFact, sentence: str) -> bool:
    """Whether a sentence says, or makes so, what is denied.

    Where that is a verb alone, so it must stand: "I smoke salmon" takes back no "I don't smoke".

    Args:
        negation: Denies something.
        sentence: In the third person: "The user drinks coffee again."
    """
    verb, *terms = pattern_terms(negation.negates_pattern) or ("",)
    if negation.subject in _UNRESOLVED or not verb:
        return False
    denied = _taken_apart(negation.content, negation.evidence, verb, (*terms,), negation.subject)
    if denied.claimed_in(sentence, told_by_user=False, as_it_is=True):
        return True
    return verb in _COMES_OF and bool(terms) and denied.comes_of(sentence)


def _denied_by_speaker(
    negation: NegationFact, verb: str, terms: Sequence[str], memory: Episode
) -> bool:
    """Whether the turn's speaker claims it; "I" is whoever has the turn's name."""
    speaker = memory.speaker.casefold() if memory.speaker is not None else "user"
    if negation.subject == "user" != speaker:
        # Somebody with a name spoke here; whether it is that user, nobody said.
        return False
    subject = "user" if negation.subject == speaker else negation.subject
    denied = _taken_apart(negation.content, negation.evidence, verb, (*terms,), subject)
    return denied.claimed_in(memory.content, told_by_user=True)


def _names_denied(denied: _Denied, memory: Fact) -> bool:
    about_name = denied.subject in {"my name", "user"} and denied.verb == "be"
    stems = set(_content_stems(_words(memory.value)))
    return (
        memory.category is FactCategory.NAME
        and about_name
        and bool(denied.terms)
        and stems == set(denied.terms)
    )


class _Denied:
    """A negation, taken apart."""

    def __init__(
        self, content: str, evidence: str, verb: str, terms: tuple[str, ...], subject: str
    ) -> None:
        self.verb = verb
        self.terms = terms
        self.past = denies_the_past(content)
        self.subject = "user" if _is_the_user(subject) else subject
        self._subject_stems = frozenset(_content_stems(_words(subject))) - {"user"}
        self._verbs = _equivalents(verb)
        self._never_been = _NEVER_BEEN.search(content) is not None
        if _FOR_ME.search(evidence):
            self._verbs |= {_verb(word) for word in _FED}

    def claimed_by_slot(self, slot: Slot) -> bool:
        """Whether a (subject, predicate, object) says what is denied."""
        if not self._same_subject(_words(slot.subject)):
            return False
        predicate = _words(slot.predicate)
        said = [word for word in predicate if word not in _SKIPPED - _FORMS_OF_BE] or predicate
        verbs = {_verb(word) for word in said[:1]} | (
            {"be"} if self._is_being(predicate) else set()
        )
        objects = [*predicate[1:], *_words(slot.object)]
        found = set(_content_stems(objects))
        if self.verb == "be" and not set(_content_stems(predicate[1:])) <= set(self.terms):
            # "is married to" a nurse is not "is" a nurse.
            return False
        if "and" in objects and found - set(self.terms):
            # Who no longer likes chess may still like "playing guitar and chess".
            return False
        return (
            bool(verbs & self._verbs) and set(self.terms) <= found and self._head_matches(objects)
        )

    def claimed_in(self, text: str, *, told_by_user: bool, as_it_is: bool = False) -> bool:
        """Whether a sentence of ``text`` states what is denied.

        ``as_it_is``: of a verb alone, without an object of its own.
        """
        return any(
            self._stated(words, told_by_user=told_by_user, as_it_is=as_it_is)
            for words, verbs in _statements(text)
            # These two are also said in other words, see below.
            if self._never_been or self._verbs & verbs or self._verbs & {"be", "use"}
        )

    def comes_of(self, text: str) -> bool:
        """Whether a sentence of ``text`` tells of what makes it so."""
        made = _COMES_OF[self.verb]
        return any(
            self._subject_before(words, at, told_by_user=False) and self._got_it(words[at + 1 :])
            for words, _ in _statements(text)
            for at, word in enumerate(words)
            if _verb(word) in made
        )

    def _got_it(self, words: Sequence[str]) -> bool:
        """Whether this is the thing itself, and for nobody else."""
        said = [
            at
            for at, word in enumerate(words)
            if word not in _WORDS_WITHOUT_CONTENT | _WHAT_IT_IS_LIKE
        ][: len(self.terms)]
        if {_stem(words[at]) for at in said} != set(self.terms):
            return False
        return _object_ends(words, said[-1]) and words[said[-1] + 1 : said[-1] + 2] != ("for",)

    def _was_there(self, words: Sequence[str], *, told_by_user: bool) -> bool:
        """Whether the user was where they had never been: "came back from Japan"."""
        said = " ".join(words)
        return self.subject == "user" and any(
            set(_content_stems(_words(said[found.end() :])[: len(self.terms)])) == set(self.terms)
            for found in _WAS_THERE[told_by_user].finditer(said)
        )

    def _stated(self, words: Sequence[str], *, told_by_user: bool, as_it_is: bool) -> bool:
        if self._never_been and self._was_there(words, told_by_user=told_by_user):
            return True
        for index, word in enumerate(words):
            if not self._is_verb(words, index):
                continue
            if not self._subject_before(words, index, told_by_user=told_by_user):
                continue
            past = is_past(word) and not {"have", "has", "i've", "we've", "been"} & set(
                words[max(0, index - 2) : index]
            )
            if past and not self.past and word not in _FORMS_OF_BE:
                continue
            if self.terms or not as_it_is:
                found = self._object_after(words, index)
            else:
                found = _only_adverbs(words[index + 1 :])
            if found:
                return True
        return False

    def _is_verb(self, words: Sequence[str], index: int) -> bool:
        word = words[index]
        if word in {"i'm", "we're"}:
            return "be" in self._verbs
        lemma = _verb(word)
        if lemma in self._verbs:
            return True
        following = words[index + 1] if index + 1 < len(words) else ""
        return ((lemma, following) in {("work", "with")} and "use" in self._verbs) or (
            (lemma, following) == ("work", "as") and "be" in self._verbs
        )

    def _subject_before(self, words: Sequence[str], index: int, *, told_by_user: bool) -> bool:
        at = index if words[index] in {"i'm", "we're"} else index - 1
        while at >= 0 and (words[at] in _SKIPPED or words[at].endswith("ly")):
            at -= 1
        if self.subject == "user":
            if at < 0:
                return not told_by_user
            nearest = words[at]
            if told_by_user:
                return nearest in _SPEAKERS
            return nearest == "user" or (nearest in _SPEAKERS | {"and"} and "user" in words[:at])
        return self._subject_stems <= set(_content_stems(words[max(0, at - 5) : at + 1]))

    def _object_after(self, words: Sequence[str], index: int) -> bool:
        if not self.terms:
            return True
        missing = set(self.terms)
        content_seen = False
        for at in range(index + 1, len(words)):
            word = words[at]
            if word in _NEGATING or word in _ELSEWHERE or word in {"i", "we", "he", "she", "they"}:
                return False
            if content_seen and _verb(word) in self._verbs:
                # Another statement began, about whomever stands before this verb.
                return False
            if word in _PREPOSITIONS:
                if content_seen and self.verb not in _LOOSE and not missing < set(self.terms):
                    return False
                continue
            if word in _WORDS_WITHOUT_CONTENT or not word[0].isalnum():
                continue
            content_seen = True
            missing.discard(_stem(word))
            if not missing:
                return _object_ends(words, at)
        return False

    def _head_matches(self, objects: Sequence[str]) -> bool:
        """The last denied word heads the object: "coffee" does not deny "coffee cake"."""
        if not self.terms:
            return True
        last = self.terms[-1]
        for at, word in enumerate(objects):
            if _stem(word) == last and _object_ends(objects, at):
                return True
        return False

    def _is_being(self, predicate: Sequence[str]) -> bool:
        return any(word in _FORMS_OF_BE for word in predicate[:1]) or list(predicate[:2]) == [
            "works",
            "as",
        ]

    def _same_subject(self, words: Sequence[str]) -> bool:
        if self.subject == "user":
            return set(words) <= {"user", "the"} and bool(words)
        return self._subject_stems == frozenset(_content_stems(words)) - {"user"}


# The same negations are held against many memories.
_taken_apart = kept(1024)(_Denied)


def _object_ends(words: Sequence[str], at: int) -> bool:
    """Whether no further noun follows that the word at ``at`` would only describe."""
    if at + 1 >= len(words):
        return True
    following = words[at + 1]
    # "Windows 11" is Windows.
    loose = any(map(str.isdigit, following)) or (
        following in _PREPOSITIONS | _WORDS_WITHOUT_CONTENT | _AFTER_OBJECT | _ELSEWHERE | _PRONOUNS
    )
    return loose or not following[0].isalnum() or following.endswith("ly")


def _only_adverbs(words: Sequence[str]) -> bool:
    """Whether nothing but how or when it is done follows a verb: "again", "socially these days"."""
    left = without_adverbs(until_cut(" ".join(("does", *words)))).split()[1:]
    return all(word.endswith("ly") for word in left)


def _is_denial(text: str) -> bool:
    return any(word in _NEGATING for word in _words(text))


@kept(1024)
def _statements(text: str) -> tuple[tuple[tuple[str, ...], frozenset[str]], ...]:
    """Sentences that state something: neither asked nor supposed nor told as bygone.

    Each as its words, and as these would be as verbs.
    """
    return tuple((words, frozenset(map(_verb, words))) for words in _stating(text))


def _stating(text: str) -> Iterator[tuple[str, ...]]:
    said = plain(text)
    for piece in split_sentences(said, semicolons=True):
        if "?" in piece.mark:
            continue
        words = _words(said[piece.start : piece.end])
        bygone = any(
            word == "used" and words[at + 1 : at + 2] == ("to",) for at, word in enumerate(words)
        )
        denied = _first_part_denies(words)
        if words and not (bygone or denied or _SUPPOSING & set(words)):
            yield words


def _first_part_denies(words: Sequence[str]) -> bool:
    """Whether a negation stands before the first comma or "but": then nothing is claimed there."""
    for word in words:
        if word in _NEGATING:
            return True
        if word in _ELSEWHERE or word in {",", ";", ":"}:
            return False
    return False


@kept(1024)
def _equivalents(verb: str) -> frozenset[str]:
    found = {verb}
    for group in _MEANS_THE_SAME:
        stems = {_verb(word) for word in group}
        if verb in stems:
            found |= stems
    return frozenset(found)


def _words(text: str) -> tuple[str, ...]:
    return tuple(
        word.removesuffix("'s") if word not in {"he's", "she's", "it's"} else word
        for word in WORDS_AND_SIGNS.findall(plain(text.casefold()))
        if word[0].isalnum() or word in _SIGNS_KEPT
    )


def _content_stems(words: Sequence[str]) -> list[str]:
    return [
        _stem(word) for word in words if word not in _WORDS_WITHOUT_CONTENT and word[0].isalnum()
    ]


@kept(8192)
def _stem(word: str) -> str:
    return stem(word.removesuffix("'s"))


@kept(8192)
def _verb(word: str) -> str:
    """Verbs compare by the stem of their lemma."""
    return "be" if word in _FORMS_OF_BE else stem(verb_lemma(word))
