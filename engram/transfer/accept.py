"""From what readers find to turns that can be stored, split where they are too long."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, tzinfo
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field

from engram.contracts.importing import ImportedTurn
from engram.domain.sanitize import has_control_characters, one_line
from engram.domain.scope import check_identifier
from engram.domain.turns import MAX_NAME_CHARACTERS, Turn, check_turn, is_just_before
from engram.errors import InvalidScope, InvalidTurn
from engram.language.guarding import UNGUARDED, PersonalDataGuard
from engram.transfer.readers.reading import FoundTurn, LeftOut, ReadEntry

# --- words that are too long for one turn, in parts that end where a reader would pause

# From the widest pause to the narrowest.
_PAUSES: Final = tuple(
    re.compile(pattern) for pattern in (r"\n\s*\n", r"\n", r"(?<=[.!?\u2026\u3002])\s", r"\s")
)
# A part that ends before so much of what it may hold is cut at the next narrower pause.
_LEAST: Final = 0.5


def split(text: str, limit: int) -> list[str]:
    """``text`` in parts of at most ``limit`` bytes of UTF-8; nothing but space between is lost.

    Args:
        text: Valid Unicode.
        limit: At least 4, so that every character fits.
    """
    parts: list[str] = []
    rest = text
    while len(rest.encode()) > limit:
        end = _cut(rest, len(rest.encode()[:limit].decode("utf-8", "ignore")))
        parts.append(rest[:end].strip())
        rest = rest[end:].lstrip()
    parts.append(rest)
    return [part for part in parts if part.strip()] or [text]


def _cut(text: str, most: int) -> int:
    """Where to cut, at ``most`` characters at the latest."""
    for pause in _PAUSES:
        ends = [found.start() for found in pause.finditer(text, int(most * _LEAST), most)]
        if ends and ends[-1] > 0:
            return ends[-1]
    return most


# --- from what readers find to turns that can be stored; what cannot be is counted

_TICK: Final = timedelta(microseconds=1)
_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9._@+:=|~-]+")
_DIGITS: Final = re.compile(r"\d+")
_LONGEST_MADE_NAME: Final = 56
_PLACES_A_REASON: Final = 5
# What the id of a part has behind that of its turn.
_LONGEST_ENDING: Final = len("#123456")
# Sessions whose last words are kept, for sources that mix sessions.
_SESSIONS_IN_MIND: Final = 256


class ReadReport(BaseModel):
    """What a source holds.

    Attributes:
        format: Its format.
        conversations: Sessions with at least one turn.
        turns: Turns that can be stored; each part of a long one counts.
        split: Turns that were too long, and became several.
        repaired: Turns with characters that no text can hold, which were replaced.
        undated: Turns without a time of their own; they follow the turn before.
        skipped: What is left out, by reason.
        places: Where the first of each reason stand.
        first_at: Time of the earliest turn.
        last_at: Time of the latest turn.
    """

    model_config = ConfigDict(frozen=True)

    format: str = ""
    conversations: int = 0
    turns: int = 0
    split: int = 0
    repaired: int = 0
    undated: int = 0
    skipped: Mapping[str, int] = Field(default_factory=dict)
    places: Mapping[str, tuple[str, ...]] = Field(default_factory=dict)
    first_at: datetime | None = None
    last_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Acceptance:
    """How turns are taken in.

    Attributes:
        session_prefix: Before every session's name.
        zone: Of times that name none.
        undated_at: Where the times of a source without any begin.
        now: The present, to tell absurd times.
        max_turn_bytes: Longer turns become several.
        namespace: Where they go.
        guard: Masks personal data, where that namespace wants it.
    """

    session_prefix: str
    zone: tzinfo
    undated_at: datetime
    now: datetime
    max_turn_bytes: int
    namespace: str
    guard: PersonalDataGuard = UNGUARDED


@dataclass(slots=True)
class _Session:
    name: str
    found: int = 0
    stored: int = 0
    last_at: datetime | None = None


@dataclass(slots=True)
class _ReadCounts:
    turns: int = 0
    split: int = 0
    repaired: int = 0
    undated: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    places: dict[str, tuple[str, ...]] = field(default_factory=dict)
    first_at: datetime | None = None
    last_at: datetime | None = None


class Acceptor:
    """Takes turns in, in order; the same source gives the same turns, always.

    Args:
        how: Settled beforehand.
    """

    def __init__(self, how: Acceptance) -> None:
        self._how = how
        self._sessions: dict[str, _Session] = {}
        self._counts = _ReadCounts()
        self._words: OrderedDict[str, str] = OrderedDict()
        self._latest: str | None = None

    def turns(self, found: Iterable[ReadEntry]) -> Iterator[ImportedTurn]:
        """What can be stored, ready to be sent."""
        for one in found:
            if isinstance(one, LeftOut):
                self._skip(one.reason, one.place)
            else:
                yield from self._accept(one)

    def report(self, format_name: str = "") -> ReadReport:
        """What was found so far."""
        counts = self._counts
        return ReadReport(
            format=format_name,
            conversations=sum(one.stored > 0 for one in self._sessions.values()),
            turns=counts.turns,
            split=counts.split,
            repaired=counts.repaired,
            undated=counts.undated,
            skipped=dict(sorted(counts.skipped.items())),
            places=dict(sorted(counts.places.items())),
            first_at=counts.first_at,
            last_at=counts.last_at,
        )

    def _accept(self, found: FoundTurn) -> Iterator[ImportedTurn]:
        session = self._session(found.session)
        position = session.found
        session.found += 1
        mended = replace(found, content=repaired(found.content))
        changed = mended.content != found.content
        try:
            found = self._masked(mended)
        except InvalidTurn as error:
            self._skip(error.message.rstrip("."), found.place)
            return
        content = found.content
        when, dated = self._when(found, session)
        message_id = found.message_id or _derived(session.name, position, found)
        limit = self._how.max_turn_bytes
        parts = split(content, limit) if len(content) * 4 > limit else [content]
        if len(parts) > 1 and len(message_id) > MAX_NAME_CHARACTERS - _LONGEST_ENDING:
            message_id = _derived(session.name, position, found)
        if found.speaker is not None and has_control_characters(found.speaker):
            # People choose their names, and other programs let them.
            found = replace(found, speaker=one_line(found.speaker) or None)
        try:
            # Not validated a second time: what matters is checked below.
            whole = Turn.model_construct(
                role=found.role,
                content=parts[0],
                speaker=found.speaker,
                timestamp=when,
                message_id=message_id,
                metadata=_of_part(found.metadata, len(parts), len(parts)),
                tags=found.tags,
                importance=found.importance,
                expires_at=self._zoned(found.expires_at),
                expires_in=None,
                summary=found.summary,
            )
            check_turn(whole, now=self._how.now, max_bytes=limit)
        except InvalidTurn as error:
            # A number in it would make a reason of its own.
            self._skip(_DIGITS.sub("N", error.message.rstrip(".")), found.place)
            return
        self._count(when, dated=dated, changed=changed, parts=len(parts))
        for number, words in enumerate(parts, start=1):
            part = message_id if len(parts) == 1 else f"{message_id}#{number}"
            yield self._ready(found, session, when, words, part, number, len(parts))

    def _masked(self, found: FoundTurn) -> FoundTurn:
        """The turn with tokens for personal data, before anything is derived from its words.

        Before it is split, too: a number is not to be cut in two, and pass.
        """
        return replace(found, **self._how.guard.masked(self._how.namespace, found))

    def _ready(
        self,
        turn: FoundTurn,
        session: _Session,
        when: datetime,
        words: str,
        message_id: str,
        number: int,
        of: int,
    ) -> ImportedTurn:
        # Each field was checked already, and there are many turns.
        made = ImportedTurn.model_construct(
            session_id=session.name,
            message_id=message_id,
            role=turn.role,
            content=words,
            speaker=turn.speaker,
            timestamp=when + (number - 1) * _TICK,
            metadata=_of_part(turn.metadata, number, of),
            tags=turn.tags,
            importance=turn.importance,
            expires_at=self._zoned(turn.expires_at),
            summary=turn.summary,
            sequence=session.stored,
            before=self._before(session, when),
            place=turn.place,
        )
        session.stored += 1
        session.last_at = made.timestamp
        self._words[session.name] = words
        self._words.move_to_end(session.name)
        if len(self._words) > _SESSIONS_IN_MIND:
            self._words.popitem(last=False)
        self._latest = session.name
        return made

    def _before(self, session: _Session, when: datetime) -> str | None:
        """What was said just before in a session to which the source comes back."""
        just = session.last_at is not None and is_just_before(session.last_at, when)
        return self._words.get(session.name) if just and self._latest != session.name else None

    def _session(self, source_name: str) -> _Session:
        if source_name not in self._sessions:
            name = session_name(self._how.session_prefix + source_name)
            self._sessions[source_name] = _Session(name)
        return self._sessions[source_name]

    def _when(self, found: FoundTurn, session: _Session) -> tuple[datetime, bool]:
        said = self._zoned(found.timestamp)
        if said is not None:
            return said, True
        last = session.last_at or self._counts.last_at
        if session.last_at is None:
            last = self._how.undated_at + self._counts.undated * _TICK
        return (last or self._how.undated_at) + _TICK, False

    def _zoned(self, moment: datetime | None) -> datetime | None:
        """A moment of the source, which may have no zone of its own."""
        if moment is None or moment.utcoffset() is not None:
            return moment
        return moment.replace(tzinfo=self._how.zone)

    def _count(self, when: datetime, *, dated: bool, changed: bool, parts: int) -> None:
        counts = self._counts
        counts.turns += parts
        counts.split += parts > 1
        counts.repaired += changed
        counts.undated += not dated
        counts.first_at = when if counts.first_at is None else min(counts.first_at, when)
        counts.last_at = when if counts.last_at is None else max(counts.last_at, when)

    def _skip(self, reason: str, place: str) -> None:
        counts = self._counts
        counts.skipped[reason] += 1
        places = counts.places.get(reason, ())
        if len(places) < _PLACES_A_REASON:
            counts.places[reason] = (*places, place)


def _of_part(metadata: Mapping[str, Any], number: int, of: int) -> Mapping[str, Any]:
    """What is kept with one part of a turn; a turn that is whole keeps what it has."""
    return {**metadata, "part": number, "parts": of} if of > 1 else metadata


def session_name(wanted: str) -> str:
    """``wanted`` as a session id; one that is changed carries a trace of what it was."""
    try:
        return check_identifier(wanted, "session id")
    except InvalidScope:
        plain = (
            _NOT_IN_NAMES.sub("-", wanted).strip("-._@+:=|~")[:_LONGEST_MADE_NAME].rstrip("-")
            or "session"
        )
        return f"{plain}-{hashlib.sha256(wanted.encode('utf-8', 'replace')).hexdigest()[:12]}"


def repaired(text: str) -> str:
    """``text`` without what no text can hold: NUL, and halves of pairs of surrogates."""
    if text.isascii():
        return text.replace("\x00", "\ufffd") if "\x00" in text else text
    try:
        text.encode()
    except UnicodeEncodeError:
        # Halves that belong together are put together.
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text.replace("\x00", "\ufffd")


def _derived(session: str, position: int, found: FoundTurn) -> str:
    parts = json.dumps([session, position, found.role, found.speaker, found.content])
    return f"import-{hashlib.sha256(parts.encode()).hexdigest()[:32]}"
