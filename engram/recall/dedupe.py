"""One answer per content, and none that another answer says already."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence

from engram.domain.memories import LinkKind, MemoryForm, SemanticMemory
from engram.domain.normalisation import normalise
from engram.recall.ranked import Ranked


def without_repeats(found: Iterable[Ranked]) -> list[Ranked]:
    """The best of each content, in the order given.

    The same words are one answer, whatever holds them. Where an episode and a
    derived memory say the same, the derived one answers: it names its sources
    and has a confidence. It takes the place, and the score, of the better of
    the two.
    """
    alike: dict[str, list[int]] = {}
    kept: list[Ranked] = []
    for one in found:
        places = alike.setdefault(_outline(one.memory.content), [])
        place = _same(one, kept, places)
        if place is None:
            places.append(len(kept))
            kept.append(one)
        elif one.is_derived and not kept[place].is_derived:
            kept[place] = one.moved_to(kept[place].score, "same_words")
    return kept


def folded(found: Sequence[Ranked]) -> list[Ranked]:
    """Without the notes that a better-ranked summary of them says already."""
    said: set[str] = set()
    kept: list[Ranked] = []
    for one in found:
        if one.memory.id in said:
            continue
        kept.append(one)
        if isinstance(one.memory, SemanticMemory) and one.memory.form is MemoryForm.SUMMARY:
            said.update(
                link.target_id for link in one.memory.links if link.kind is LinkKind.BELONGS_TO
            )
    return kept


def _same(one: Ranked, kept: list[Ranked], places: list[int]) -> int | None:
    if not places:
        return None
    content = normalise(one.memory.content)
    return next((p for p in places if normalise(kept[p].memory.content) == content), None)


def _outline(content: str) -> str:
    """Letters and digits only: equal for contents with one normal form, and far cheaper."""
    if content.isascii():
        folded = content.lower()
    else:
        folded = unicodedata.normalize("NFC", content).casefold()
        folded = unicodedata.normalize("NFC", folded)
    return "".join(filter(str.isalnum, folded))
