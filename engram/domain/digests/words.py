"""Content words: what a text is about, without what every text has."""

from __future__ import annotations

import re
from collections import Counter

from engram.domain.word_forms import stem

_WORDS = re.compile(r"[^\W_]+(?:['’.+#-][^\W_]+)*[+#]*")
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
_CONTRACTED = re.compile(r"['’](?:s|re|ve|ll|d|m|t)\Z")
_SHORTEST = 2


def content_words(text: str) -> Counter[str]:
    """How often each content word occurs, as it is written but for case."""
    words = (_bare(word) for word in _WORDS.findall(text.casefold()))
    return Counter(word for word in words if _tells(word))


def terms_of(text: str) -> Counter[str]:
    """How often each content word occurs, stemmed."""
    found: Counter[str] = Counter()
    for word, count in content_words(text).items():
        found[stem(word)] += count
    return found


def _bare(word: str) -> str:
    return _CONTRACTED.sub("", word)


def _tells(word: str) -> bool:
    if len(word) < _SHORTEST or word in _STOP or word.isdigit():
        return False
    return stem(word) not in _LIGHT_STEMS
