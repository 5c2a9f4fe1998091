"""Words in a turn that must survive as they were said: found by rule, few and certain."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from engram.domain.circumstances import Circumstances
from engram.domain.confidence import Confidence, ExtractionMethod, Verification
from engram.domain.identity import apart, derived_id
from engram.domain.memories import (
    Episode,
    Evidence,
    MemoryForm,
    MemoryKind,
    MemoryType,
    SemanticMemory,
)

ArtifactKind: TypeAlias = Literal["code", "command", "quotation", "address"]
MOST_IN_A_TURN: Final = 8
LONGEST: Final = 8000
"""Characters. What is longer is kept by its turn alone."""
_FENCED = re.compile(r"^(?P<fence>```+|~~~+)[^\n`]*\n(?P<words>.*?)\n?^(?P=fence)\s*$", re.M | re.S)
_INLINE = re.compile(r"(?<!`)`(?P<words>[^`\n]{4,300})`(?!`)")
# A program and at least one argument; a lone word in backticks is a name.
_COMMAND = re.compile(
    r"(?:\$ |sudo )?(?:[\w./-]+/)?(?:git|docker|kubectl|helm|npm|npx|pnpm|yarn|pip3?|pipx|uv|uvx|"
    r"python3?|cargo|go|make|cmake|ssh|scp|rsync|curl|wget|apt|apt-get|brew|dnf|systemctl|"
    r"journalctl|psql|mysql|redis-cli|aws|gcloud|az|terraform|ansible(?:-playbook)?|tar|find|grep|"
    r"sed|awk|chmod|chown|ls|cd|cp|mv|rm|mkdir|cat|tail|export|crontab|ffmpeg|openssl)\s+\S.*"
)
_QUOTED = re.compile(r"[\"“„](?P<words>[^\"“”„\n]{40,2000})[\"”“]")
_STREET = (
    r"(?:Street|St\.?|Avenue|Ave\.?|Road|Rd\.?|Lane|Ln\.?|Drive|Dr\.?|Boulevard|Blvd\.?|Court|Ct\.?"
    r"|Square|Sq\.?|Place|Pl\.?|Terrace|Way|Close|Crescent|Row|Parkway|Highway)"
)
_CODE = (
    r"(?:[A-Z]{1,2}\d[A-Z\d]? ?\d[A-Z]{2}|(?:[A-Z]{2} )?\d{5}(?:-\d{4})?|[A-Z]\d[A-Z] ?\d[A-Z]\d)"
)
# House number and street, then a town with a code: no street name alone is an address.
_ADDRESS = re.compile(
    rf"(?P<words>\b(?:(?:Flat|Apt\.?|Unit|Suite) ?\w+,? )?\d{{1,5}}[A-Za-z]? "
    rf"(?:[A-Z][\w'.-]+ ){{1,4}}{_STREET}(?:, ?[A-Z][\w'. -]+){{1,3}},? {_CODE}\b)"
)


@dataclass(frozen=True, slots=True)
class Verbatim:
    """Words to keep, and what they are."""

    words: str
    kind: ArtifactKind


def verbatim_in(text: str) -> list[Verbatim]:
    """Code in fences, commands in backticks, long quotations and full postal addresses, in order.

    Args:
        text: A turn in its author's own words, without recalled memories.
    """
    found: dict[str, tuple[int, Verbatim]] = {}
    for start, one in _found(text):
        if one.words.strip() and len(one.words) <= LONGEST:
            found.setdefault(one.words, (start, one))
    ordered = sorted(found.values(), key=lambda pair: pair[0])
    return [one for _, one in ordered[:MOST_IN_A_TURN]]


def artifact_identity(words: str, *, is_test: bool) -> str:
    """What makes two artifacts the same one: every letter of them."""
    hashed = hashlib.sha256(words.encode("utf-8", "surrogatepass")).hexdigest()
    return apart(f"artifact:{hashed}", is_test=is_test)


def artifact(one: Verbatim, episode: Episode, at: Circumstances) -> SemanticMemory:
    """The memory that keeps these words of a turn."""
    identity = artifact_identity(one.words, is_test=episode.is_test)
    return SemanticMemory(
        id=derived_id(at.scope, MemoryType.SEMANTIC, identity, 0),
        namespace=at.scope.namespace,
        user_id=at.scope.user_id,
        content=one.words,
        form=MemoryForm.ARTIFACT,
        kind=MemoryKind.NOTE,
        known_at=episode.timestamp,
        event_at=episode.timestamp,
        created_at=at.now,
        derived_at=at.now,
        session_id=episode.session_id,
        importance=episode.importance,
        tags=tuple(dict.fromkeys((*episode.tags, one.kind))),
        is_test=episode.is_test,
        provenance=at.provenance,
        source_episode_ids=(episode.id,),
        evidence=(Evidence(episode_id=episode.id, words=one.words),),
        confidence=Confidence(
            method=ExtractionMethod.VERBATIM,
            extraction=1.0,
            last_confirmed=episode.timestamp,
            verification=Verification.EVIDENCE_FOUND,
        ),
        identity=identity,
    )


def _found(text: str) -> Iterator[tuple[int, Verbatim]]:
    rest = text
    for match in _FENCED.finditer(text):
        yield match.start(), Verbatim(match["words"], "code")
        # What stands in a fence is looked at once.
        rest = _blank(rest, match.start(), match.end())
    for match in _INLINE.finditer(rest):
        if _COMMAND.fullmatch(match["words"]):
            yield match.start(), Verbatim(match["words"], "command")
    yield from _plain(rest)


def _plain(text: str) -> Iterable[tuple[int, Verbatim]]:
    for match in _QUOTED.finditer(text):
        yield match.start(), Verbatim(match["words"], "quotation")
    for match in _ADDRESS.finditer(text):
        yield match.start(), Verbatim(match["words"], "address")


def _blank(text: str, start: int, end: int) -> str:
    return text[:start] + " " * (end - start) + text[end:]
