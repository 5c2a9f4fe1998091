"""English text as every reader sees it: signs, quotations, sentences, words and their forms."""

from __future__ import annotations

import re
import threading
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import Stemmer  # type: ignore[import-not-found]  # an extension module without stubs

from engram.domain.kept import kept

# --- signs: typographic ones become plain ones, one for one, so that offsets hold

_APOSTROPHES = {"\u2018": "'", "\u2019": "'", "\u02bc": "'"}
_ONLY_APOSTROPHES = str.maketrans(_APOSTROPHES)
_PLAIN_SIGNS = str.maketrans(
    _APOSTROPHES
    | {
        "\u201c": '"', "\u201d": '"', "\u00a0": " ", "\u202f": " ", "\u2009": " ", "\t": " ",
        "\u2010": "-", "\u2011": "-", "\u2012": "-", "\u2013": "-", "\u2014": "-",
    }
)  # fmt: skip


def plain(text: str, *, dashes: bool = True) -> str:
    """``text`` with plain apostrophes, quotes, dashes and spaces, same length.

    Args:
        text: Any text.
        dashes: Whether dashes, quotes and spaces become plain too. Not where clauses are
            read: "Rome\u2014and" breaks at its dash, "well-known" does not.
    """
    if text.isascii() and not (dashes and "\t" in text):
        return text
    return text.translate(_PLAIN_SIGNS if dashes else _ONLY_APOSTROPHES)


FIRST_SIGN, LAST_SIGN = "\U00100000", "\U0010fffd"
"""From the first to the last of the signs that stand for code and links; for private use, so
that no text has a meaning for them."""
SIGNS_APART = re.compile(rf"[{FIRST_SIGN}-{LAST_SIGN}]")
_SIGNS_OF_ONE = re.compile(rf"(?P<sign>{SIGNS_APART.pattern})(?P=sign)*")
_CODE_OR_LINK = re.compile(
    # A link is tried once per word: 32 KB without a space, such as an encoded file, cost no time.
    r"```.*?(?:```|\Z)|`[^`]*`|(?<!\S)\S+(?:://|@)\S+",
    re.DOTALL,
)
# After an address they end its sentence or its clause.
_NO_PART_OF_IT = ".!?,"


class SetApart(NamedTuple):
    """A text without the words of its code and links, which say nothing, and the way back.

    Attributes:
        text: As long as it was, with as many of the same sign for each of them.
        words: What stood there, in the order of the signs.
    """

    text: str
    words: tuple[str, ...] = ()

    def put_back(self, said: str) -> str:
        """``said``, which was made of the text, with the words in place of the signs."""
        return _SIGNS_OF_ONE.sub(self._words_of, said) if self.words else said

    def _words_of(self, signs: re.Match[str]) -> str:
        number = ord(signs["sign"]) - ord(FIRST_SIGN)
        return self.words[number] if number < len(self.words) else signs.group()


def set_apart(text: str) -> SetApart:
    """``text`` with signs for its code and links, e-mail addresses among them."""
    own = text if text.isascii() else SIGNS_APART.sub(" ", text)
    words: list[str] = []

    def sign(found: re.Match[str]) -> str:
        apart = found.group().rstrip(_NO_PART_OF_IT)
        # Past so many, nothing is read: the last ones share a sign.
        number = min(ord(FIRST_SIGN) + len(words), ord(LAST_SIGN))
        words.append(apart)
        return chr(number) * len(apart) + found.group()[len(apart) :]

    if any(mark in own for mark in ("`", "@", "://")):
        own = _CODE_OR_LINK.sub(sign, own)
    return SetApart(own, tuple(words))


# Two are kept: "a  b" is a slip, and a line that is empty ends a paragraph.
_LONG_RUN = re.compile(rf"\s{{3,}}|(?P<sign>[{FIRST_SIGN}-{LAST_SIGN}])(?P=sign)+")


class Collapsed(NamedTuple):
    """A text with no more than two spaces or one sign in a row, and the way back.

    Patterns that look for "any white space" try again from each of it; with runs this
    short their work grows with the text and not with its square.

    Attributes:
        text: With each longer run as two spaces, or two newlines where it ended a line; and each
            run of a sign that :func:`set_apart` left as one.
        cuts: For each shortened run where it ends in ``text``, and how much is gone by then.
    """

    text: str
    cuts: tuple[tuple[int, int], ...] = ()

    def original(self, at: int) -> int:
        """Where in the text as it was the place ``at`` of ``text`` is."""
        number = bisect_right(self.cuts, at, key=lambda cut: cut[0])
        return at + (self.cuts[number - 1][1] if number else 0)


def collapsed(text: str) -> Collapsed:
    """``text`` with its runs shortened: what every rule reads in its place."""
    parts: list[str] = []
    cuts: list[tuple[int, int]] = []
    at = length = gone = 0
    for run in _LONG_RUN.finditer(text):
        short = run["sign"] or ("\n\n" if "\n" in run.group() else "  ")
        parts += (text[at : run.start()], short)
        length += run.start() - at + len(short)
        gone += run.end() - run.start() - len(short)
        at = run.end()
        cuts.append((length, gone))
    if not cuts:
        return Collapsed(text)
    return Collapsed("".join([*parts, text[at:]]), tuple(cuts))


def fold(text: str) -> str:
    """``text`` in lower case, same length: a letter whose lower case is longer stays."""
    low = text.lower()
    if len(low) == len(text):
        return low
    return "".join(lower if len(lower := letter.lower()) == 1 else letter for letter in text)


def as_spelled(wanted: str, text: str) -> str:
    """``wanted`` in the letters in which ``text`` has it last, whatever their case."""
    key, folded = wanted.casefold(), text.casefold()
    at = folded.rfind(key)
    if not key or at < 0:
        return wanted
    # A letter may be longer when it is folded: "ß" is "ss".
    letters = [place for place, letter in enumerate(text) for _ in letter.casefold()]
    return text[letters[at] : letters[at + len(key) - 1] + 1]


# --- quotations: words that the speaker passes on

_DOUBLE_MARKS = '"“”«„'
_CLOSING_MARKS = '"“”»'
_DOUBLE_QUOTED = re.compile(rf"[{_DOUBLE_MARKS}][^\"“”»]*[\"“”»]")
_SINGLE_QUOTED = re.compile(r"(?<!\w)'(?=\w)[^'\n]*(?:(?<=\w)'(?=\w)[^'\n]*)*'(?!\w)")
_SPEECH = re.compile(r"\b(?:i|we|he|she|it|they|you|i'm|i've|my)\b", re.IGNORECASE)


def without_quotations(text: str, *, only_speech: bool = False) -> str:
    """``text``, same length, with :data:`QUOTED` and blanks for whatever is quoted.

    Args:
        text: With plain apostrophes.
        only_speech: Whether a quotation without a pronoun stays: what is called "Mongo"
            can be denied, and is no less told by its marks.
    """

    def hidden(found: re.Match[str]) -> str:
        words = found.group()
        return words if only_speech and not _SPEECH.search(words) else QUOTED.center(len(words))

    # After the last mark that can close, none of those that can open is worth a try.
    closed = max(map(text.rfind, _CLOSING_MARKS)) + 1
    if closed:
        text = _DOUBLE_QUOTED.sub(hidden, text[:closed]) + text[closed:]
    return _SINGLE_QUOTED.sub(hidden, text) if "'" in text else text


QUOTED = "\x00"
"""Stands where a quotation stood."""

# --- sentences and clauses

# Begins with the marks themselves: so the engine leaps from one to the next.
_ENDED = (
    r"(?:(?<=[\n;])\n*|(?<=[!?…])[.!?…]*[\"')\]]*"
    r"|(?<=\.)(?:[.!?…]+[\"')\]]*|[\"')\]]*(?=\s|\Z)))"
)
SENTENCE_END = re.compile(rf"[.!?…\n]{_ENDED}")
STATEMENT_END = re.compile(rf"[.!?…\n;]{_ENDED}")
"""The same, and semicolons: where each statement is looked at by itself."""
CLAUSE_END = re.compile(
    rf"{STATEMENT_END.pattern}|[,:()]|\s-\s"
    r"|\b(?:and|but|because|so|then|which|that|while|or|although|though)\b"
)
# A full stop after one of these ends nothing: a name or more of the sentence follows.
_LEADING = (
    "Dr Mr Mrs Ms Mx St Mt Ft Prof Rev Fr Gen Col Lt Sgt Capt Cmdr Gov Sen Hon Messrs Mme "
    "vs approx e.g i.e u.s u.k U.S U.K"
).split()
# After these it ends the sentence, unless that goes on in lower case or with a number.
_TRAILING = "Jr Sr Inc Ltd Co Corp Bros Ave Blvd Rd Dept dept est etc al ca".split()
# Before a number only: "No. 7", but "Did it rain? No."
_NUMBERED = "No Nos Nr no nos nr p pp Fig fig Vol vol Ch ch Sec sec Art art".split()
_BEFORE_STOP = re.compile(r"(?P<street>[A-Z][a-z]+ )?(?<![\w.])(?P<word>\w[\w.]{0,7})\Z")
_LONGEST_BEFORE_STOP = 24
# The stop comes first: so the engine looks back only where there is one.
FULL_STOP = r"\.(?=\s|\Z)" + "".join(rf"(?<!\b{re.escape(word)}\.)" for word in _LEADING)
FULL_STOP += r"(?:(?<!\b(?-i:[A-HJ-Z])\.)|(?!\s(?-i:[A-Z])))"
"""A full stop that can end a sentence, and follows no initial of a name, as a part of patterns."""


def _ends_nothing(text: str, start: int, stop: int) -> bool:
    """Whether the full stop at ``stop`` only shortens a word: "St. Mary's", "No. 7"."""
    found = _BEFORE_STOP.search(text, max(start, stop - _LONGEST_BEFORE_STOP), stop)
    if found is None:
        return False
    word, after = found.group("word"), text[stop + 1 : stop + 3].strip()
    if word == "St" and found.group("street"):
        # "Baker St." is no saint.
        word = "Rd"
    if word in _TRAILING:
        return after[:1].islower() or after[:1].isdigit() or after[:1] in {",", ";", ")"}
    if word in _NUMBERED:
        return after[:1].isdigit()
    return word in _LEADING or (len(word) == 1 and word.isupper())


class Piece(NamedTuple):
    """A sentence's place in a text, and the mark that ends it."""

    start: int
    end: int
    mark: str


def split_sentences(text: str, *, semicolons: bool = False) -> Iterator[Piece]:
    """Where the sentences of ``text`` stand, empty ones left out.

    Args:
        text: With plain signs.
        semicolons: Whether they end a sentence. Where a sentence is understood from its
            beginning on, they do not: "I moved to Rome; still at Fiat" has one subject.
    """
    start = 0
    for found in (STATEMENT_END if semicolons else SENTENCE_END).finditer(text):
        end, mark = found.start(), found.group()
        if mark == "." and _ends_nothing(text, start, end):
            continue
        if end > start:
            yield Piece(start, end, mark)
        start = found.end()
    if start < len(text):
        yield Piece(start, len(text), "")


# --- words

_RUN = r"[^\W_]+"
BARE_WORDS = re.compile(_RUN)
"""Letters and digits only, "c" for "C++": for texts that need not be spelt alike."""
SPOKEN_WORDS = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)*")
"""Words as they are said, "don't": for verbs, pronouns and the like."""
_WHOLE = rf"{_RUN}(?:[.+#&/'-]+{_RUN})*[+#]*"
WORDS_AND_SIGNS = re.compile(rf"{_WHOLE}|[^\w\s]")
"""Whatever stands without a space, "C++", "R&D", "and/or", and each sign by itself."""


# --- English word forms: from any form of a verb to its lemma, from any word to its stem

# Lemma, then past, then participle where it differs. Only what a stemmer cannot undo.
_IRREGULAR_VERBS = """
be was been; be were; be is; be are; be am; be being; be 's; be 're; be 'm; have had; have has;
have having do did done; do does; go went gone; go goes; arise arose arisen; awake awoke awoken;
bear bore borne; beat beat beaten; become became; begin began begun; bend bent; bet bet; bind
bound; bite bit bitten; bleed bled; blow blew blown; break broke broken; breed bred; bring
brought; broadcast broadcast; build built; burn burnt; burst burst; buy bought; cast cast; catch
caught; choose chose chosen; cling clung; come came; cost cost; creep crept; cut cut; deal
dealt; dig dug; dive dove; draw drew drawn; dream dreamt; drink drank drunk; drive drove driven;
eat ate eaten; fall fell fallen; feed fed; feel felt; fight fought; find found; flee fled; fly
flew flown; forbid forbade forbidden; forget forgot forgotten; forgive forgave forgiven; freeze
froze frozen; get got gotten; give gave given; grind ground; grow grew grown; hang hung; hear
heard; hide hid hidden; hit hit; hold held; hurt hurt; keep kept; kneel knelt; know knew known;
lay laid; lead led; lean leant; leap leapt; learn learnt; leave left; lend lent; let let; lie
lay lain; light lit; lose lost; make made; mean meant; meet met; pay paid; put put; quit quit;
read read; ride rode ridden; ring rang rung; rise rose risen; run ran run; say said; see saw
seen; seek sought; sell sold; send sent; set set; sew sewed sewn; shake shook shaken; shave
shaved shaven; shine shone; shoot shot; show showed shown; shrink shrank shrunk; shut shut; sing
sang sung; sink sank sunk; sit sat; babysit babysat; sleep slept;
slide slid; smell smelt; speak spoke spoken;
spell spelt; spend spent; spill spilt; spin spun; spit spat; split split; spoil spoilt; spread
spread; stand stood; steal stole stolen; stick stuck; sting stung; strike struck; swear swore
sworn; sweep swept; swell swelled swollen; swim swam swum; swing swung; take took taken; teach
taught; tear tore torn; tell told; think thought; throw threw thrown; understand understood;
undertake undertook undertaken; undergo underwent undergone; wake woke woken; wear wore worn;
weave wove woven; weep wept; win won; wind wound; withdraw withdrew withdrawn; write wrote
written; die dying; tie tying; lie lying;
travel travelling; travel travelled; cancel cancelling; cancel cancelled
"""
_LEMMAS: dict[str, str] = {}
_ONLY_PAST: set[str] = set()
_PARTICIPLES: set[str] = set()
_NOT_PAST = {"do", "is", "are", "am", "being", "'s", "'re", "'m", "has", "having", "does", "goes"}
_NOT_PAST |= {"dying", "tying", "lying", "dove", "wound", "ground", "bound", "lay", "left", "bit"}
for _entry in _IRREGULAR_VERBS.replace("\n", " ").split(";"):
    _lemma, *_forms = _entry.split()
    for _form in _forms:
        _LEMMAS.setdefault(_form, _lemma)
        if _form != _lemma and _form not in _NOT_PAST:
            _ONLY_PAST.add(_form)
    _PARTICIPLES.update(_forms[-1:])
_PARTICIPLES -= _NOT_PAST - {"left", "bound", "wound"}

IRREGULAR_PAST = frozenset(_ONLY_PAST | {"left"})
"""Past forms and participles that no present form shares ("ate", "gone"; not "put")."""
IRREGULAR_PARTICIPLES = frozenset(_PARTICIPLES)

_NO_PAST = frozenset(
    (
        "ahmed alfred biped bleed breed creed deed embed exceed feed fred greed heed hundred "
        "indeed infrared jared kindred mohammed moped muhammed naked ned need proceed ragged reed "
        "rugged sacred seed shed shred sled speed succeed syed ted weed wicked wilfred "
    ).split()
)

_VOWELS = "aeiouy"
_SHORTEST_STEM = 3
_KEEP_DOUBLE = frozenset("lsfz")
_TRULY_DOUBLE = frozenset("add odd egg err butt".split())
_WITH_E = frozenset(
    (
        "accus achiev acquir admir advertis advis ag agre analys analyz announc apologis apologiz "
        "appreciat argu arrang arriv assum bak balanc behav believ bik blam breath brows caff car "
        "caus celebrat chang charg chas choos clon clos cod com combin communicat compar compet "
        "complet compos concentrat confus consum continu convinc cooperat cop creat criticis "
        "criticiz cultivat cycl damag danc dat decid decreas defin delet describ deserv desir "
        "determin devot din disagre dispos div donat driv eas educat encourag engag evaluat "
        "examin excit excus exercis explor expos fac financ fir fre freez gam gambl googl graduat "
        "guid handl hat hesitat hid hik hir hop ignor imagin impos improv includ increas inspir "
        "investigat invit invok issu jok judg juggl leav licens lik lin liv los lov mak manag "
        "meditat memoris memoriz migrat mov nam not notic nurs observ operat oppos organis "
        "organiz participat paus phon pil plac pleas practic practis prais prepar prescrib pric "
        "prioritis prioritiz produc promis promot propos prov provid purchas quot rac rais rat "
        "realis realiz receiv recogn recognis recogniz reduc refus rehears relat releas remov "
        "replac requir rescu resum retir rid rul sampl sav schedul scor scrap sens separat serv "
        "settl shak shap shar shin siz skat slic slid smil smok solv sourc spic squeez stag star "
        "stat stor strik struggl subscrib suppos surpris surviv tak tast teas tim tir trac trad "
        "translat tun typ unit updat us valu vap voic vot wag wak wast wav welcom whistl wip wir "
        "wok writ "
    ).split()
) | {lemma[:-1] for lemma in _LEMMAS.values() if lemma.endswith("e") and not lemma.endswith("ee")}


def verb_lemma(word: str) -> str:
    """The base form of a verb: "using", "uses" and "used" give "use".

    Regular endings are undone by rule and a list of stems that end in a mute e;
    where both readings exist the commoner one is taken. ``word`` is lower case.
    """
    if word in _LEMMAS:
        return _LEMMAS[word]
    if len(word) <= _SHORTEST_STEM or word in _NO_PAST:
        return word
    if word.endswith(("ies", "ied")):
        return word[:-3] + ("y" if len(word) > _SHORTEST_STEM + 1 else "ie")
    if word.endswith("s"):
        return _without_s(word)
    return _without_ing_or_ed(word)


def _without_s(word: str) -> str:
    if word.endswith(("sses", "shes", "ches", "xes", "zzes", "oes")):
        return word[:-2]
    return word if word.endswith(("ss", "us", "is")) else word[:-1]


def _without_ing_or_ed(word: str) -> str:
    for ending in ("ing", "ed"):
        stem = word.removesuffix(ending)
        if stem != word and len(stem) > 1 and any(letter in _VOWELS for letter in stem):
            return _base(stem)
    return word


def _base(stem: str) -> str:
    if stem in _WITH_E:
        return stem + "e"
    doubled = len(stem) >= _SHORTEST_STEM and stem[-1] == stem[-2] and stem[-1] not in _VOWELS
    if doubled and stem not in _TRULY_DOUBLE and stem[-1] not in _KEEP_DOUBLE:
        return stem[:-1]
    return stem


def is_past(word: str) -> bool:
    """Whether ``word``, lower case, looks like a past form or participle and nothing else."""
    if word in IRREGULAR_PAST:
        return True
    return len(word) > _SHORTEST_STEM and word.endswith("ed") and word not in _NO_PAST


_stemmer = Stemmer.Stemmer("english")
# The stemmer keeps state between calls and must not be entered by two threads.
_stemming = threading.Lock()


@kept(8192)
def stem(word: str) -> str:
    """The stem of one lower-case word; irregular verbs through their lemma ("ate" as "eat")."""
    base = _LEMMAS.get(word, word)
    with _stemming:
        return str(_stemmer.stemWord(base))


# --- small words: what every question and every statement has

SMALL_WORDS = frozenset(
    "a an the and or of in on at to for with from as is was are were be do does did has have had "
    "what who where when which how why".split()
)
"""Articles, prepositions, helping verbs and question words: no subject and no object."""

# --- streets: what makes a name an address

STREET_WORD = (
    r"(?:Street|St\.?|Avenue|Ave\.?|Road|Rd\.?|Lane|Ln\.?|Drive|Dr\.?|Boulevard|Blvd\.?|Court|Ct\.?"
    r"|Square|Sq\.?|Place|Pl\.?|Terrace|Way|Close|Crescent|Row|Parkway|Highway)"
)
"""How the names of streets end, as a part of patterns."""
HOUSE_NUMBER = r"\d{1,5}[A-Za-z]?(?:[-/]\d{1,4}[A-Za-z]?)?"
_STREET_NAME = r"[A-ZÀ-ÖØ-Þ][\w'.-]{0,40}"
# "Hauptstraße", "Keizersgracht", "Friedrich-Ebert-Straße"
_STREET_IN_A_WORD = (
    r"(?=[A-ZÀ-ÖØ-Þ])[\w'.-]{0,40}(?:[Ss]tra(?:ß|ss)e|[Ss]tr\.|[Ss]traat|gracht|laan|kade|plein|weg|allee|"
    r"platz|gasse|damm|ufer|chaussee|-(?:Allee|Platz|Weg|Ring))(?!\w)"
)
_OF_STREETS = r"(?: (?:de|del|della|dei|du|des|do|da|la|las|le|les|los))"
STREET_WITH_NUMBER_LAST = (
    rf"(?:(?:{_STREET_NAME} ){{0,2}}{_STREET_IN_A_WORD}"
    rf"|(?:Via|Viale|Corso|Piazza|Calle|Avenida|Paseo|Plaza|Rua){_OF_STREETS}{{0,2}}"
    rf"(?: {_STREET_NAME}){{1,3}}),? {HOUSE_NUMBER}(?!\w)"
)
"""A street with its number behind it, as a part of patterns: "Hauptstraße 5", "Via Roma 12"."""
STREET_ADDRESS = (
    rf"(?:{HOUSE_NUMBER},? (?:(?:{_STREET_NAME} ){{1,4}}{STREET_WORD}|{_STREET_IN_A_WORD}"
    rf"|(?:rue|avenue|boulevard|place|quai){_OF_STREETS}{{0,2}}(?: {_STREET_NAME}){{1,4}})(?!\w)"
    rf"|{STREET_WITH_NUMBER_LAST})"
)
"""A street with its number that needs no words around to be told as one."""

# --- content words: what a text is about, without what every text has

# Two things with "/" or "&" between them are two topics.
_TOPIC_WORDS = re.compile(rf"{_RUN}(?:[.+#'-]{_RUN})*[+#]*")
_FUNCTION = """
a about above after again against ago all almost along already also although always am among an
and another any anybody anyone anything are around as at away back be because been before being
below between both but by can cannot could did do does doing done down during each either else
enough even ever every everybody everyone everything few for from further had has have having he
hence her here hers herself him himself his how however i if in indeed instead into is it its
itself just later least less let like lot lots many may maybe me might mine more most much must my
myself near neither never no nobody none nor not nothing now of off often on once one only onto or
other others our ours out over own per perhaps quite rather really same shall she should since so
some somebody someone something sometimes somewhere soon still such than that the their theirs
them themselves then there these they this those though through thus till to today together
tomorrow tonight too toward towards under unless until up upon us use used uses using very was we
well were what whatever when where whether which while who whom whose why will with within without
would yes yesterday yet you your yours yourself
"""
_CHAT = """
ah alright anyway awesome bye cheers cool course exactly fine glad good great ha haha hello hey hi
hmm huh interesting kind know lol mean nah nice nope oh ok okay please right sorry sort sounds sure
thank thanks think true uh um understood welcome wow wonderful yeah yep yup
"""
_LIGHT = """
ask asked be become came come comes day days do feel feels felt find found gave get gets getting
give gives go goes going gone got happen happened help keep kept know last let live lives long look
looking lot made make makes making many need needs new next old people put put said say says see
seem seems start started take taken takes tell thing things think time times told took tried try
trying want wanted wants way week weeks went work works worked working year years month months user
also longer no like love enjoy hate dislike prefer own speak study plan promise call called
marry born
"""
_STOP = frozenset(f"{_FUNCTION} {_CHAT} {_LIGHT}".split())
# Light in every form: "likes" says as little about a topic as "like".
_LIGHT_STEMS = frozenset(stem(word) for word in _LIGHT.split())
_CONTRACTED = re.compile(r"'(?:s|re|ve|ll|d|m|t)\Z")
_SHORTEST_TERM = 2


def content_words(text: str) -> Counter[str]:
    """How often each content word occurs, as it is written but for case."""
    words = (_bare(word) for word in _TOPIC_WORDS.findall(plain(text.casefold(), dashes=False)))
    return Counter(word for word in words if _tells(word))


def terms_of(text: str) -> Counter[str]:
    """How often each content word occurs, stemmed."""
    found: Counter[str] = Counter()
    for word, count in content_words(text).items():
        found[stem(word)] += count
    return found


def topic_stems(text: str) -> frozenset[str]:
    """The stems of its content words, however often each occurs."""
    words = map(_bare, _TOPIC_WORDS.findall(plain(text.casefold(), dashes=False)))
    return frozenset(stem(word) for word in words if _tells(word))


def _bare(word: str) -> str:
    return _CONTRACTED.sub("", word)


def _tells(word: str) -> bool:
    if len(word) < _SHORTEST_TERM or word in _STOP or word.isdigit():
        return False
    return stem(word) not in _LIGHT_STEMS


@kept(4096)
def bare_stems(text: str) -> frozenset[str]:
    """The stems of the words of ``text`` that carry meaning."""
    words = BARE_WORDS.findall(text.casefold())
    return frozenset(stem(word) for word in words if word not in SMALL_WORDS)
