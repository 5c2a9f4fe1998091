"""What is kept word for word beside the statements of a batch."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final, Literal, TypeAlias

from engram.consolidation.amendments import has_source, traits
from engram.domain.confidence import Confidence, ExtractionMethod, Verification
from engram.domain.identity import content_hash, derived_id, with_test_namespace
from engram.domain.memories import (
    DEFAULT_IMPORTANCE,
    Category,
    Episode,
    Evidence,
    LifecycleState,
    LinkKind,
    MemoryForm,
    MemoryKind,
    MemoryType,
    Provenance,
    Resolution,
    SemanticMemory,
    Slot,
    Telling,
)
from engram.domain.occasions import occasions_of
from engram.domain.plan import (
    MAX_ENTITIES,
    Action,
    CreateArtifact,
    LinkGraph,
    Reason,
    Statement,
    StoreEpisode,
    StoreNote,
    UpdateNote,
    eligibility_of,
)
from engram.domain.scope import Scope
from engram.domain.slots import ends_something
from engram.domain.turns import MAX_NAME_CHARACTERS, is_first_party, without_injected_context
from engram.language.text import STREET_WITH_NUMBER_LAST, STREET_WORD

# --- under which circumstances statements are reconciled, and what a new memory takes from them


@dataclass(frozen=True, slots=True)
class Circumstances:
    """Under which the statements were made and are reconciled.

    Attributes:
        scope: Whose memory.
        now: The present.
        episodes: Every episode that the statements name, by id.
        provenance: Which run and model.
        brought_in: Whether the statements come from another program, whose words they are:
            what a conversation says letter by letter as Engram words it, repeats Engram.
    """

    scope: Scope
    now: datetime
    episodes: Mapping[str, Episode]
    provenance: Provenance
    brought_in: bool = False

    def side(self, *, is_test: bool) -> Circumstances:
        """The same with only the test turns, or only the real ones."""
        kept = {key: e for key, e in self.episodes.items() if e.is_test == is_test}
        return replace(self, episodes=kept)

    def identity(self, statement: Statement) -> str:
        """What makes two conclusions the same one, on this side."""
        is_test = any(episode.is_test for episode in self.sources(statement))
        return with_test_namespace(content_hash(statement.content), is_test=is_test)

    def sources(self, statement: Statement) -> list[Episode]:
        """The episodes of a statement that exist."""
        wanted = dict.fromkeys(statement.episode_ids)
        return [self.episodes[e] for e in wanted if e in self.episodes]

    def telling(self, statement: Statement) -> Telling | None:
        """When it was said, and of when; None without a real source."""
        sources = self.sources(statement)
        if not sources:
            return None
        times = [episode.timestamp for episode in sources]
        latest = max(sources, key=lambda episode: (episode.timestamp, episode.sequence))
        return Telling(
            event_at=statement.event_at or min(times),
            event_from=statement.event_from,
            event_by=statement.event_by,
            known_at=max(times),
            begins=statement.begins,
            alongside=statement.alongside,
            holds_until=statement.holds_until,
            episode_ids=tuple(episode.id for episode in sources),
            session_id=latest.session_id,
            sequence=latest.sequence,
        )

    def memory(self, statement: Statement, telling: Telling, slot: Slot | None) -> SemanticMemory:
        """What a statement becomes if nothing like it is known: generation 0."""
        episodes = self.sources(statement)
        identity, occasions = self.identity(statement), occasions_of(episodes)
        sessions = {episode.session_id for episode in episodes}
        return SemanticMemory(
            id=derived_id(self.scope, MemoryType.SEMANTIC, identity, 0),
            namespace=self.scope.namespace,
            user_id=self.scope.user_id,
            content=statement.content,
            known_at=telling.known_at,
            created_at=self.now,
            session_id=sessions.pop() if len(sessions) == 1 else None,
            **traits(episodes, statement.importance, statement.tags),
            is_test=any(e.is_test for e in episodes),
            provenance=self.provenance,
            # Forgotten, what it only has the words of takes those along.
            source_episode_ids=tuple(dict.fromkeys((*telling.episode_ids, *statement.worded_by))),
            occasions=occasions,
            event_at=telling.event_at,
            derived_at=self.now,
            confidence=_confidence(statement, telling, len(occasions)),
            identity=identity,
            valid_from=telling.event_at if telling.begins else None,
            category=statement.category,
            kind=statement.kind,
            evidence=statement.evidence,
            slot=slot,
            tellings=() if slot is None else (telling,),
            entities=_entities(statement),
            lifecycle=LifecycleState.CANDIDATE,
            **_outcome(statement, telling, slot),
        )

    def part(self, memory: SemanticMemory) -> SemanticMemory:
        """A memory of the same words, for a time that another memory came to lie between."""
        said = {"content", "tags", "importance", "is_test", "identity", "category", "slot"}
        said |= {"kind", "evidence", "metadata", "expires_at", "tellings"}
        if memory.slot is not None and ends_something(memory.slot):
            said |= {"resolution", "resolved_at"}
        where = {"id", "namespace", "user_id", "known_at", "event_at", "entities", "confidence"}
        kept = {name: getattr(memory, name) for name in said | where}
        return SemanticMemory(
            **kept,
            created_at=self.now,
            derived_at=self.now,
            provenance=self.provenance,
            source_episode_ids=memory.source_episode_ids,
            occasions=memory.occasions,
            lifecycle=LifecycleState.CANDIDATE,
        )

    def generation(self, memory: SemanticMemory, number: int) -> SemanticMemory:
        """``memory`` under the id of that generation."""
        memory_id = derived_id(self.scope, MemoryType.SEMANTIC, memory.identity, number)
        return memory.model_copy(update={"id": memory_id, "generation": number})


def _confidence(statement: Statement, telling: Telling, occasions: int) -> Confidence:
    found = bool(statement.evidence)
    return Confidence(
        # Extracted is what a quotation of the source says; the rest is inferred.
        method=ExtractionMethod.EXTRACTED if found else ExtractionMethod.INFERRED,
        extraction=statement.confidence,
        supporting_episodes=occasions,
        last_confirmed=telling.known_at,
        verification=Verification.EVIDENCE_FOUND if found else Verification.UNCHECKED,
    )


def _outcome(statement: Statement, telling: Telling, slot: Slot | None) -> dict[str, Any]:
    """How a promise ended, on what tells that it did: it is no open promise itself."""
    ending = slot is not None and ends_something(slot)
    how = statement.ended or (Resolution.FULFILLED if ending else None)
    if statement.category is not Category.COMMITMENT or how is None:
        return {}
    return {"resolution": how, "resolved_at": telling.known_at}


def _entities(statement: Statement) -> tuple[str, ...]:
    named = (e.strip()[:MAX_NAME_CHARACTERS] for e in statement.entities)
    return tuple(dict.fromkeys(e for e in named if e))[:MAX_ENTITIES]


# --- words in a turn that must survive as they were said: found by rule, few and certain

ArtifactKind: TypeAlias = Literal["code", "command", "quotation", "address"]
MOST_IN_A_TURN: Final = 8
LONGEST: Final = 8000
"""Characters. What is longer is kept by its turn alone."""
_FENCE = re.compile(r"^(?P<fence>```+|~~~+)(?P<label>[^\n`]*)$", re.M)
_INLINE = re.compile(r"(?<!`)`(?P<words>[^`\n]{4,300})`(?!`)")
# A program and at least one argument; a lone word in backticks is a name.
_COMMAND = re.compile(
    r"(?:\$ |sudo )?(?:[\w./-]+/)?(?:git|docker|kubectl|helm|npm|npx|pnpm|yarn|pip3?|pipx|uv|uvx|"
    r"python3?|cargo|go|make|cmake|ssh|scp|rsync|curl|wget|apt|apt-get|brew|dnf|systemctl|"
    r"journalctl|psql|mysql|redis-cli|aws|gcloud|az|terraform|ansible(?:-playbook)?|tar|find|grep|"
    r"sed|awk|chmod|chown|ls|cd|cp|mv|rm|mkdir|cat|tail|export|crontab|ffmpeg|openssl)\s+\S.*"
)
_QUOTED = re.compile(r"[\"“„](?P<words>[^\"“”„\n]{40,2000})[\"”“]")
_POSTAL_CODE = (
    r"(?:[A-Z]{1,2}\d[A-Z\d]? ?\d[A-Z]{2}|(?:[A-Z]{2} )?\d{5}(?:-\d{4})?|[A-Z]\d[A-Z] ?\d[A-Z]\d)"
)
# House number and street, then a town with a code, or the code first where the number is last:
# no street name alone is an address.
_POSTAL_ADDRESS = re.compile(
    rf"(?P<words>\b(?:(?:Flat|Apt\.?|Unit|Suite) ?\w+,? )?\d{{1,5}}[A-Za-z]? "
    rf"(?:[A-Z][\w'.-]+ ){{1,4}}{STREET_WORD}(?:, ?[A-Z][\w'. -]+){{1,3}},? {_POSTAL_CODE}\b"
    rf"|\b{STREET_WITH_NUMBER_LAST}, ?(?:[A-Z]{{1,2}}-)?\d{{4,5}}(?: [A-Z]{{2}})? "
    rf"[A-ZÀ-ÖØ-Þ][\w'-]+(?: [A-ZÀ-ÖØ-Þ][\w'-]+){{0,2}})"
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
    return with_test_namespace(f"artifact:{hashed}", is_test=is_test)


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
        **traits([episode], DEFAULT_IMPORTANCE, (one.kind,)),
        is_test=episode.is_test,
        provenance=at.provenance,
        source_episode_ids=(episode.id,),
        occasions=occasions_of([episode]),
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
    for start, end, words in _fenced(text):
        yield start, Verbatim(words, "code")
        # What stands in a fence is looked at once.
        rest = _blank(rest, start, end)
    for match in _INLINE.finditer(rest):
        if _COMMAND.fullmatch(match["words"]):
            yield match.start(), Verbatim(match["words"], "command")
    yield from _plain(rest)


def _fenced(text: str) -> Iterator[tuple[int, int, str]]:
    """Where fences begin and end, and the lines between; one that is never closed is none."""
    lines = list(_FENCE.finditer(text))
    closing: dict[str, list[re.Match[str]]] = {}
    for line in reversed(lines):
        if not line["label"].strip():
            closing.setdefault(line["fence"], []).append(line)
    end = 0
    for opening in lines:
        if opening.start() < end:
            continue
        ends = closing.get(opening["fence"], [])
        while ends and ends[-1].start() <= opening.start():
            ends.pop()
        if ends:
            end = ends[-1].end()
            words = text[opening.end() + 1 : ends[-1].start()]
            yield opening.start(), end, words.removesuffix("\n")


def _plain(text: str) -> Iterable[tuple[int, Verbatim]]:
    for match in _QUOTED.finditer(text):
        yield match.start(), Verbatim(match["words"], "quotation")
    for match in _POSTAL_ADDRESS.finditer(text):
        yield match.start(), Verbatim(match["words"], "address")


def _blank(text: str, start: int, end: int) -> str:
    return text[:start] + " " * (end - start) + text[end:]


# --- planning what is kept word for word beside what a batch states


def holds_artifacts(episode: Episode) -> bool:
    """Whether a person says something in it that is kept word for word."""
    return is_first_party(episode) and bool(verbatim_in(without_injected_context(episode).content))


def artifact_ids(scope: Scope, episodes: Iterable[Episode]) -> set[str]:
    """Under which ids the artifacts of these turns are kept."""
    return {
        derived_id(scope, MemoryType.SEMANTIC, artifact_identity(one.words, is_test=e.is_test), 0)
        for e in episodes
        for one in verbatim_in(without_injected_context(e).content)
    }


def keep_verbatim(
    episodes: Iterable[Episode],
    known: Mapping[str, SemanticMemory],
    actions: Sequence[Action],
    circumstances: Circumstances,
) -> list[Action]:
    """The artifacts of these turns, each linked with what the same turn states.

    Args:
        episodes: Turns of persons, oldest first.
        known: The artifacts among these that exist, by id.
        actions: What is planned for the statements of these turns.
        circumstances: Under which it is planned.
    """
    new: dict[str, SemanticMemory] = {}
    confirmed: dict[str, UpdateNote] = {}
    found: list[Action] = []
    for episode in episodes:
        for one in verbatim_in(without_injected_context(episode).content):
            made = artifact(one, episode, circumstances)
            there = known.get(made.id) or new.get(made.id)
            if there is not None and has_source(there, episode.id):
                continue
            if there is None:
                new[made.id] = made
                found.append(_create(made, one.kind))
            else:
                confirmed[made.id] = _confirm(confirmed.get(made.id), there, made)
            found += [_link(made, memory_id) for memory_id in _stated_by(episode, actions)]
    return [*found, *confirmed.values()]


def _create(made: SemanticMemory, kind: str) -> CreateArtifact:
    return CreateArtifact(
        why=f"must survive word for word: {kind}",
        reason=Reason.VERBATIM,
        eligibility=eligibility_of(made),
        memory=made,
    )


def _confirm(before: UpdateNote | None, there: SemanticMemory, made: SemanticMemory) -> UpdateNote:
    update = before or UpdateNote(
        memory_id=there.id,
        why="said again in the same words",
        reason=Reason.SAID_AGAIN,
        eligibility=eligibility_of(there),
    )
    return update.model_copy(
        update={
            "add_sources": (*update.add_sources, *made.source_episode_ids),
            "add_evidence": (*update.add_evidence, *made.evidence),
        }
    )


def _link(made: SemanticMemory, memory_id: str) -> LinkGraph:
    return LinkGraph(
        why="said in the same turn",
        reason=Reason.VERBATIM,
        eligibility=eligibility_of(made),
        first_id=made.id,
        second_id=memory_id,
        kind=LinkKind.BELONGS_TO,
    )


def _stated_by(episode: Episode, actions: Iterable[Action]) -> list[str]:
    """The memories of statements that gain this turn as a source, in order."""
    found: dict[str, None] = {}
    for action in actions:
        if isinstance(action, UpdateNote) and episode.id in action.add_sources:
            found[action.memory_id] = None
        stored = action.memory if isinstance(action, StoreNote | StoreEpisode) else None
        if stored is not None and episode.id in stored.source_episode_ids:
            found[stored.id] = None
    return list(found)
