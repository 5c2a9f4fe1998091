"""BM25 term weights, and the terms that a text is found by."""

from __future__ import annotations

import re
import threading
import unicodedata
from collections import Counter
from collections.abc import Iterable
from hashlib import blake2b

import Stemmer  # type: ignore[import-not-found]  # an extension module without stubs

from engram.domain.identity import stream_safe
from engram.domain.kept import kept
from engram.ports import SparseVector

# --- which terms a text is found by: words of any script, and whole tokens such as "c++"

# Function words of English, without those that are also a month, a name or a country
# people ask for: "may", "will", "us".
_FUNCTION_WORDS = """
    a about above after again against all also am an and any are aren't as at be because been
    before being below between both but by can can't cannot could couldn't did didn't do does
    doesn't doing don't down during each few for from further had hadn't has hasn't have haven't
    having he he'd he'll he's her here here's hers herself him himself his how how's i i'd i'll
    i'm i've if in into is isn't it it's its itself just let's me more most my myself no nor not of
    off on once only or other ought our ours ourselves out over own same shan't she she'd she'll
    she's should shouldn't so some such than that that's the their theirs them themselves then
    there there's these they they'd they'll they're they've this those through to too under until
    up very was wasn't we we'd we'll we're we've were weren't what what's when when's where where's
    which while who who's whom why why's with won't would wouldn't you you'd you'll you're you've
    your yours yourself yourselves
"""
STOP_WORDS = frozenset(_FUNCTION_WORDS.split())
# What only opens, closes or ends a phrase; every other symbol belongs to its token
# ("c++", ".net", "#42", "$1.50", "-5").
_QUOTES = "\"'`\u201c\u201d\u201e\u00ab\u00bb\u2039\u203a"
_OPENING = _QUOTES + "([{<¡¿*_~"
_CLOSING_SIGNS = _QUOTES + ")]}>.,;:!?*_~"
_WORDS = re.compile(r"[^\W_]+(?:'[^\W_]+)*")
# Accents are typed in one place and left out in the other, so both forms become the bare one.
_ACCENTS = re.compile(r"[\u0300-\u036f]+")
# Scripts written without spaces are matched by pairs of characters.
_UNSPACED = re.compile(
    r"[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\U00020000-\U0002fa1f]+"
)

# Function words by which a language is told; a word of several speaks a little for each. None is an
# English word too, such as "die", "son", "hay" or "no".
_TELLING = {
    "german": """
        der das den dem des ein eine einen einem einer eines und oder aber ist sind waren wird wurde
        habe hatte ich du er sie wir ihr mich mir dich dir ihn ihm uns mein meine meinen meinem
        meiner dein deine sein seine unser unsere nicht kein keine auf aus bei mit nach von zu zum
        zur im wie wo wer wann warum welche welcher welches wenn dass für über durch gegen vor unter
        zwischen noch nur schon sehr dann hier jetzt sich kann muss soll bitte
    """,
    "french": """
        le la les une un du de et ou est sont était suis ai avait je tu il elle nous vous ils elles
        mon ma mes ton ta ses notre nos votre vos leur leurs ne que qui quoi dont où quand comment
        pourquoi quel quelle quels quelles ce cet cette ces au aux avec dans sans chez très aussi
        être avoir fait en par sur plus qu'est c'est j'ai n'est s'il d'un d'une
    """,
    "spanish": """
        el la los las un una unos unas y o de pero es era está están estaba estoy fue soy han yo tú
        él ella ellos te se nos lo le mi mis tu su sus nuestro nuestra del al con en por para hasta
        desde que qué quién cuál cuándo cómo dónde cuánto cuánta porque si muy más también este esta
        esto ese esa eso hace cuando donde
    """,
    "portuguese": """
        o os um uma uns umas e é são era está estão estava foi tem têm tinha eu ele ela nós você
        vocês te se nos lhe meu minha meus minhas teu tua seu sua nosso nossa não nem de dos da das
        na nas ao à com por pelo pela para até que quem qual quando onde quanto muito mais já também
        este esta isto esse essa isso aquele há porque
    """,
    "italian": """
        il lo la gli le un uno una e è sono era ho hai ha abbiamo io lui lei noi mi ti si ci mio mia
        miei tuo tua suo sua nostro non di del della dei delle da nel nella che chi quale quando
        dove quanto perché tra molto più anche questo questa quello sto stato
    """,
    "dutch": """
        het een de en zijn waren heb heeft ik jij je wij hij zij mij mijn jouw ons onze niet geen
        van voor met naar bij uit ook hoe waar wie wanneer waarom welke wat dat dit deze omdat maar
        nog zeer heel kan moet ze er
    """,
}

_STRAIGHT_APOSTROPHES = str.maketrans("\u2018\u2019", "''")

_stemmers = threading.local()


def _telling_words() -> dict[str, tuple[str, ...]]:
    """Each word that tells a language, with the languages that have it."""
    spoken: dict[str, tuple[str, ...]] = {}
    for language, said in _TELLING.items():
        for word in said.split():
            spoken[word] = (*spoken.get(word, ()), language)
    return spoken


_LANGUAGES_OF = _telling_words()
# What comes first tells the language; a pasted log after it changes nothing.
_TOLD_BY = 200
# One word that two languages have is too little.
_LEAST_TOLD = 0.5


def language_of(text: str) -> str | None:
    """The language whose stems a text is found by besides those of English; None for no other.

    By its function words: German, French, Spanish, Portuguese, Italian or Dutch. A text in which
    English has as many of its own is English.
    """
    words = _WORDS.findall(text[: _TOLD_BY * 10].casefold().translate(_STRAIGHT_APOSTROPHES))
    english = 0
    told: dict[str, float] = {}
    for word in words[:_TOLD_BY]:
        english += word in STOP_WORDS
        languages = _LANGUAGES_OF.get(word, ())
        for language in languages:
            told[language] = told.get(language, 0.0) + 1.0 / len(languages)
    most = max(told, key=lambda language: told[language], default=None)
    return most if most is not None and told[most] > max(english, _LEAST_TOLD) else None


def foreign_terms(text: str) -> dict[str, str]:
    """Each term of a text that is not English, with the stem that its own language gives it.

    Only where the two differ. English takes no word of it: its terms stay as they are.
    """
    language = language_of(text)
    if language is None:
        return {}
    stems: dict[str, str] = {}
    for word in _WORDS.findall(unicodedata.normalize("NFC", stream_safe(text)).casefold()):
        # "l'école" is found as "école".
        last = word.rpartition("'")[2]
        term, own = _stem(_fold(word)), _fold(_stem(last, language))
        if term != own:
            stems[term] = own
    return stems


def terms_of(text: str) -> list[str]:
    """The terms of ``text`` in order, repeated as often as they occur.

    English function words are left out, unless the text has nothing else.
    """
    words = _fold(text).split()
    found: list[str] = []
    for word in words:
        found.extend(_cached_terms(word) if len(word) <= _LONGEST_CACHED else _terms_of_word(word))
    if not found:
        for word in words:
            found.extend(_stem(part) for part in _WORDS.findall(word))
    return found


def _fold(text: str) -> str:
    if text.isascii():
        return text.lower()
    bare = _ACCENTS.sub("", unicodedata.normalize("NFKD", stream_safe(text)))
    folded = unicodedata.normalize("NFC", bare).casefold().translate(_STRAIGHT_APOSTROPHES)
    # Folding can bring back what composing took away; once more makes it stable.
    return unicodedata.normalize("NFC", folded)


def _terms_of_word(word: str) -> tuple[str, ...]:
    if word in STOP_WORDS:
        return ()
    token = word.lstrip(_OPENING).rstrip(_CLOSING_SIGNS) or word
    parts = _WORDS.findall(token)
    terms: list[str] = []
    if parts != [token]:
        terms.append(token)
    for part in parts:
        if part in STOP_WORDS:
            continue
        terms.extend(_pairs(part) if _UNSPACED.search(part) else (_stem(part),))
    return tuple(terms)


# Longer "words" are blobs and addresses that hardly come twice.
_LONGEST_CACHED = 64
_cached_terms = kept(65_536)(_terms_of_word)


def _pairs(part: str) -> list[str]:
    return [part] if len(part) == 1 else [part[i : i + 2] for i in range(len(part) - 1)]


def _stem(word: str, language: str = "english") -> str:
    # A stemmer object must not be used by two threads at once.
    stemmer = getattr(_stemmers, language, None)
    if stemmer is None:
        stemmer = Stemmer.Stemmer(language, 0)
        setattr(_stemmers, language, stemmer)
    return str(stemmer.stemWord(word))


# --- BM25 term weights, made here so that every engine holds the same vectors
#
# The engine multiplies the inverse document frequency in (modifier IDF); what is
# stored is the saturated, length-normalised term frequency.

K = 1.2
B = 0.5
# Terms per text that count as ordinary length. A constant, because a running
# average would give the same text other weights on another day. A chat turn has
# 15 to 30 words, about half of them function words; about four more terms come
# from the speaker and the date that are indexed with it, and about ten from the
# turn before it.
AVERAGE_TERMS = 32.0
# What a word of the turn before counts: "a greyhound" answers "which dog did you
# adopt?", and only both together hold the words of a question about it. Measured
# on long conversations, 0.5 to 1 do alike.
BEFORE_WEIGHT = 0.65
# A long answer before a short turn would drown it; what leads over stands at its end.
BEFORE_TERMS = 48

_HALF = 0.5

ENCODING = "bm25.2"
"""Names this encoding; whatever changes a term that is there, or its weight, changes it.

Stems of other languages came under the same name: what was stored before is found as it was.
"""


def encode_document(text: str, before: str | None = None) -> SparseVector:
    """Term weights of a text to be stored; empty only where it holds no letter, digit or symbol.

    Args:
        text: The text itself.
        before: What was said just before it; found by its words too, with less weight.
    """
    counts: dict[str, float] = dict(Counter(terms_of(text)))
    if before:
        for term in terms_of(before)[-BEFORE_TERMS:]:
            counts[term] = counts.get(term, 0.0) + BEFORE_WEIGHT
    norm = K * (1.0 - B + B * sum(counts.values()) / AVERAGE_TERMS)
    # The stems of its own language come on top, so that a question which is too short to tell its
    # language, or was asked before Engram knew them, finds the text as well.
    for term, own in foreign_terms(text).items():
        if (count := counts.get(term, 0.0)) > counts.get(own, 0.0):
            counts[own] = count
    return _vector((term, count * (K + 1.0) / (count + norm)) for term, count in counts.items())


def encode_query(text: str) -> SparseVector:
    """Term weights of a question: 1 for each term, however often it is repeated.

    Half of it is that of the stem in the question's own language, where that is not English.
    """
    own = foreign_terms(text)
    weights: dict[str, float] = {}
    for term in dict.fromkeys(terms_of(text)):
        stem = own.get(term)
        weights[term] = weights.get(term, 0.0) + (1.0 if stem is None else _HALF)
        if stem is not None:
            weights[stem] = weights.get(stem, 0.0) + _HALF
    return _vector(weights.items())


@kept(65_536)
def term_id(term: str) -> int:
    """The stable 32-bit id of a term, the same in every process and on every machine."""
    digest = blake2b(term.encode("utf-8", "surrogatepass"), digest_size=4).digest()
    return int.from_bytes(digest, "big")


def _vector(weights: Iterable[tuple[str, float]]) -> SparseVector:
    summed: dict[int, float] = {}
    for term, weight in weights:
        number = term_id(term)
        summed[number] = summed.get(number, 0.0) + weight
    indices = tuple(sorted(summed))
    return SparseVector(indices=indices, values=tuple(summed[index] for index in indices))


encode_known = kept(2048)(encode_query)
"""The same, kept: the same memories answer again and again."""
