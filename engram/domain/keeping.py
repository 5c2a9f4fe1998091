"""Planning what is kept word for word beside what a batch states."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from engram.domain.artifacts import artifact, artifact_identity, verbatim_in
from engram.domain.circumstances import Circumstances
from engram.domain.identity import derived_id
from engram.domain.memories import Episode, LinkKind, MemoryType, SemanticMemory
from engram.domain.plan import (
    Action,
    CreateArtifact,
    LinkGraph,
    Reason,
    StoreEpisode,
    StoreNote,
    UpdateNote,
    eligibility_of,
)
from engram.domain.scope import Scope
from engram.domain.sources import has_source
from engram.domain.witnesses import own_words, testifies


def holds_artifacts(episode: Episode) -> bool:
    """Whether a person says something in it that is kept word for word."""
    return testifies(episode) and bool(verbatim_in(own_words(episode).content))


def artifact_ids(scope: Scope, episodes: Iterable[Episode]) -> set[str]:
    """Under which ids the artifacts of these turns are kept."""
    return {
        derived_id(scope, MemoryType.SEMANTIC, artifact_identity(one.words, is_test=e.is_test), 0)
        for e in episodes
        for one in verbatim_in(own_words(e).content)
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
        for one in verbatim_in(own_words(episode).content):
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
