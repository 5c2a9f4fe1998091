"""Every setting with its variable, default, range and meaning."""

from __future__ import annotations

import json
import types
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt
from pydantic import BaseModel, SecretStr, TypeAdapter
from pydantic.fields import FieldInfo

from engram.settings import Settings

# --- what settings are for, where their field says nothing or too little

_KINDS = ("episodic", "factual", "semantic", "procedural", "negation")

MEANINGS = {
    "embedder": "`wordllama` (offline), `fastembed:<model>`, or any embedding model that "
    "Pydantic AI knows, such as `openai:text-embedding-3-small`.",
    "model": "`rules` (offline), or any model that Pydantic AI knows, such as `openai:gpt-5-mini`.",
    "temporal_port": "Port of Temporal's development server. Unset: a free port.",
    "temporal_namespace": "Temporal namespace; on Temporal Cloud `<name>.<account>`.",
    "temporal_api_key": "API key for Temporal, as Temporal Cloud gives them out. Turns TLS on.",
    "temporal_tls_client_cert": "File with the client's certificate (PEM), for mTLS. Turns TLS on.",
    "temporal_tls_client_key": "File with the key of that certificate (PEM); both or neither.",
    "qdrant_url": "Connected mode: URL of the Qdrant server.",
    "qdrant_api_key": "API key for Qdrant; one that may write.",
    "collection_prefix": "The collections are called `<prefix>_episodic` and so on.",
    "model_timeout": "For one attempt at one request to a language model.",
    "store_timeout": "For one attempt at one storing activity.",
    "temporal_ui_port": "Port of the Temporal UI. Unset: a free port.",
    "schedules": "Whether Temporal Schedules run the passes over all users. Off: they are "
    "removed when a worker or `engram up` starts.",
    "consolidation_interval": "How often users with unconsolidated turns are consolidated.",
    "promotion_interval": "How often a promotion pass over all users runs.",
    "decay_interval": "How often a decay pass over all users runs.",
    "schedule_jitter": "Scheduled passes begin so much later at most, by chance.",
    "schedule_catchup": "A scheduled pass that was missed, because nothing ran, is made up for "
    "once if it is no older.",
    "promotion_batch": "Memories that a promotion pass considers at once.",
    "decay_batch": "Memories that a decay pass writes at once.",
    "health.enough": "`engram health`: memories below which shares say nothing.",
    "health.promoted_share": "Share of all that is promoted, above which everything is.",
    "health.settled_days": "Age from which something that is ready should have been promoted.",
    "health.young_days": "Age up to which memories should not leave.",
    "health.young_left_share": "Share of young memories that may have left.",
    "temporal_ui": "Whether the Temporal UI runs.",
    "temporal_retention": "How long the history of a workflow that ended is kept.",
    "start_timeout": "How long Temporal's development server may take to answer.",
    "attach_timeout": "How long a process waits for the owner of the folder to answer.",
    "max_turn_bytes": "Largest content of a turn, and largest query, in bytes of UTF-8.",
    "max_batch_bytes": "Bytes of turns that one update to a session carries.",
    "max_turns_per_update": "Turns that one update to a session carries.",
    "working_memory_turns": "Turns that the working memory of a session holds.",
    "working_memory_bytes": "Bytes of content that the working memory of a session holds.",
    "session_idle_minutes": "A session ends when nothing came for so long; also how long "
    "consolidation waits for more before it links what is left over.",
    "updates_per_run": "Updates after which a session goes on in a new run (continue-as-new).",
    "phone_region": "Country of phone numbers that are written without a country code.",
    "extraction_batch_turns": "Turns that one extraction reads.",
    "extraction_batch_bytes": "Bytes of content that one extraction reads.",
    "candidates_per_memory": "Similar memories that are offered for linking with each new one.",
    "recall_candidates": "Candidates per memory type and vector side, compared but not read.",
    "recall_pool": "How many of the candidates are read and weighed.",
    "recall_weights.sparse": "Share of the score: words in common (BM25).",
    "recall_weights.dense": "Share of the score: nearness in meaning.",
    "recall_weights.around": "Share of the score: how well the best of the same session match.",
    "recall_weights.subject": "Share of the score: the question names who speaks or is spoken of.",
    "recall_weights.substance": "Share of the score: a turn of many words.",
    "recall_weights.cue": "Share of the score: holds a time, number or name, as asked for.",
    "recall_weights.period": "Share of the score: from the time that the question names.",
    "recall_weights.asking": "Taken from the score of a turn that itself only asks.",
    "recall_factors.validated": "Factor for what is confirmed or in use.",
    "recall_factors.candidate": "Factor for what was concluded once and not used since, or is "
    "disputed.",
    "recall_factors.stale": "Factor for what was unused for long.",
    "recall_factors.disputed": "Further factor for what was spoken against.",
    "recall_factors.unsure": "Factor at confidence 0; in proportion above.",
    "recall_factors.faded": "Factor for a turn that has wholly faded; in proportion before.",
    "recall_factors.cold": "Factor of what is kept cold, where placement is switched on.",
    "recall_factors.unimportant": "Factor at importance 0; 1 from 0.5 on.",
    "recall_factors.outdated": "Factor for a turn all of whose conclusions were replaced.",
    "recall_factors.negated": "Factor for a turn that a later negation speaks against.",
    "reranker": "Looks at the best answers again: `fastembed:<cross-encoder>`, any Pydantic AI "
    "model, or none.",
    "rerank_candidates": "How many answers the reranker is shown.",
    "recall_max_limit": "Largest `limit` that recall accepts.",
    "log_level": "From which level on lines are written. Unset, commands that answer and end "
    "write warnings and errors only.",
    "log_format": "console for people, json for machines; both on standard error.",
    "confidence_weights.extraction": "Weight of how it was extracted. The four sum to 1.",
    "confidence_weights.corroboration": "Weight of how many episodes say so.",
    "confidence_weights.recency": "Weight of when it was last confirmed.",
    "confidence_weights.verification": "Weight of what checking found.",
    "lifecycle.decay_policy": "How memories fade: see [lifecycle](lifecycle.md).",
    "lifecycle.energy_namespaces": "Namespaces that go by energy whatever the default is.",
    "lifecycle.retention_namespaces": "Namespaces that go by retention whatever the default is.",
    "lifecycle.retention.base": "Retention score of a fresh memory of importance 1.",
    "lifecycle.retention.access_bonus": "What each recall adds to the factor of the score.",
    "lifecycle.retention.archive_below": "Retention score below which a memory is archived.",
    **{
        f"lifecycle.retention.{kind}_days": "Days without use after which "
        f"36.8 % of the score of {kind} memories remains."
        for kind in _KINDS
    },
    "lifecycle.energy.start": "Energy of a new memory.",
    "lifecycle.energy.per_access": "What each recall, or confirmation, adds.",
    "lifecycle.energy.working_decay": "Decay per hour in the working tier.",
    "lifecycle.energy.short_term_decay": "Decay per hour in the short-term tier.",
    "lifecycle.energy.long_term_decay": "Decay per hour in the long-term tier.",
    "lifecycle.energy.to_short_term": "Energy that lifts a memory from the working to the "
    "short-term tier.",
    "lifecycle.energy.to_long_term": "Energy that lifts a memory from the short-term to the "
    "long-term tier.",
    "lifecycle.energy.at_session_end": "The first of these thresholds, when the session ends.",
    "lifecycle.energy.expire_below": "Energy below which a memory expires.",
    "lifecycle.energy.episode_tier": "Tier in which turns begin.",
    "lifecycle.energy.conclusion_tier": "Tier in which facts, knowledge, habits and negations "
    "begin.",
    **{
        f"lifecycle.time_to_live.{kind}_days": "Days after which "
        f"{kind} memories expire, since they were last told. 0: never."
        for kind in _KINDS
    },
    "lifecycle.expiry.speculative_below": "Extraction confidence below which a conclusion is "
    "speculative.",
    "lifecycle.expiry.speculative_days": "Days after which a speculative conclusion expires "
    "that nothing confirmed.",
    "lifecycle.expiry.commitment_days": "Days after which a resolved commitment is archived.",
    "lifecycle.expiry.demote_below": "Effective confidence below which an old, never recalled "
    "conclusion is archived.",
    "lifecycle.expiry.demote_days": "How old it must be for that, in days.",
    "lifecycle.expiry.erase_after_days": "Days after which what was archived, expired or "
    "superseded is **erased for good**. 0: never.",
    "lifecycle.archival.enabled": "Whether old, unimportant, hardly used knowledge is archived.",
    "lifecycle.archival.age_days": "How old it must be for that, in days.",
    "lifecycle.archival.importance_below": "How unimportant.",
    "lifecycle.archival.most_accesses": "How often it may have been recalled.",
    "lifecycle.archival.protected_categories": "Categories that this spares; corrections are "
    "always spared.",
    **{
        f"lifecycle.value.{kind}_weight": f"Salience of {kind} memories of importance 1."
        for kind in _KINDS
    },
    "lifecycle.value.half_life_days": "Days without use after which the recency part of "
    "quality halves.",
    "lifecycle.value.stale_at": "Decay score from which a memory is stale.",
    "lifecycle.placement.enabled": "Whether memories move between hot and cold.",
    "lifecycle.placement.cold_after_days": "Age, in days, before which nothing becomes cold.",
    "lifecycle.placement.cold_at": "Placement value at which a memory becomes cold.",
    "lifecycle.placement.hot_at": "Placement value at which it becomes hot again; above the "
    "former.",
    "lifecycle.placement.disputed_factor": "What a dispute multiplies the placement value with.",
    "lifecycle.placement.correction_bonus": "What a correction gains in placement value.",
    "lifecycle.placement.confirmed_bonus": "What being confirmed by the user gains in "
    "placement value.",
    "lifecycle.promotion.selectivity": "Selectivity from which knowledge can become a habit.",
    "lifecycle.promotion.passes": "Linking passes it must have survived for that.",
    "lifecycle.promotion.confidence": "Composite confidence it must have for that.",
    "lifecycle.edges.reinforcement": "What finding a link again adds to its confidence.",
    "lifecycle.edges.grace_days": "Days for which a link keeps its confidence.",
    "lifecycle.edges.window_days": "Then it loses a step each time so many days have passed.",
    "lifecycle.edges.per_window": "That step.",
    "lifecycle.edges.floor": "What its confidence never falls below.",
    "lifecycle.edges.coactivations": "Common recalls from which two memories are linked.",
    "lifecycle.edges.similarity": "Cosine similarity from which new knowledge reinforces old.",
    "confidence_weights.decay_days": "Days without confirmation after which recency is 36.8 %.",
    "digests.enabled": "Whether passes end by rebuilding profiles, topics, boxes and guidance.",
    "digests.profile_lines": "Lines of a profile at most.",
    "digests.profile_bytes": "Past so many bytes, lesser lines of a profile are folded into "
    "summarising ones, until it fits.",
    "digests.profile_memories": "Memories that one profile is composed from at most.",
    "digests.profile_reads": "Memories that are read anew for one profile.",
    "digests.topics": "Topics that are kept at most.",
    "digests.topic_members": "Memories that make a topic.",
    "digests.box_overlap": "A box is sealed when the topic overlap with the next turn falls below.",
    "digests.box_idle_minutes": "A box is sealed when nothing came for so long.",
    "digests.box_turns": "Turns that a box holds at most.",
    "digests.box_smoothing": "Content words that a turn shares with its box in any case.",
    "digests.guidance_evidence": "Memories of one kind before guidance is drawn from them.",
    "digests.guidance_share": "Share of them that must have come to nothing.",
    "digests.soon_days": "A memory that is replaced within so many days was replaced soon.",
}


# --- every setting with its variable, default, range and meaning, as the documentation tells it

PREFIX = str(Settings.model_config["env_prefix"])
NESTING = str(Settings.model_config["env_nested_delimiter"])

# The first setting of each section.
SECTIONS = {
    "data_dir": "Where things are",
    "embedder": "Models",
    "temporal_port": "Embedded mode",
    "http_enabled": "HTTP API",
    "max_turn_bytes": "Writing",
    "consolidate_every": "Consolidating",
    "lifecycle.decay_policy": "Fading and hardening",
    "schedules": "Passes and their schedules",
    "recall_candidates": "Recalling",
    "log_level": "Logging",
}


def settings_of(
    model: type[BaseModel] = Settings, path: str = ""
) -> Iterator[tuple[str, FieldInfo]]:
    """Every setting with its dotted name, nested ones taken apart."""
    for name, field in model.model_fields.items():
        dotted = f"{path}{name}"
        inner = field.annotation
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            yield from settings_of(inner, f"{dotted}.")
        else:
            yield dotted, field


def variable(name: str) -> str:
    """The environment variable of a setting."""
    return PREFIX + name.replace(".", NESTING).upper()


def meaning(name: str, field: FieldInfo) -> str:
    """What a setting is for."""
    return MEANINGS.get(name) or field.description or ""


def _options(annotation: Any) -> tuple[Any, ...]:
    """The types a value may have, without None."""
    if get_origin(annotation) in (Union, types.UnionType):
        return tuple(option for option in get_args(annotation) if option is not types.NoneType)
    return (annotation,)


def values(field: FieldInfo) -> str:
    """What is allowed, as type and range."""
    (kind,) = _options(field.annotation)
    if get_origin(kind) is Literal:
        return ", ".join(f"`{option}`" for option in get_args(kind))
    if get_origin(kind) is tuple:
        return "JSON list of " + values(FieldInfo(annotation=get_args(kind)[0]))
    names = {
        SecretStr: "secret",
        timedelta: "duration",
        Path: "path",
        str: "text",
        bool: "`true` or `false`",
        int: "whole number",
        float: "number",
    }
    return ", ".join([names[kind], *_bounds(field)])


def _bounds(field: FieldInfo) -> Iterator[str]:
    for limit in field.metadata:
        if isinstance(limit, Ge):
            yield f"≥ {limit.ge}"
        elif isinstance(limit, Gt):
            yield f"> {limit.gt}"
        elif isinstance(limit, Le):
            yield f"≤ {limit.le}"
        elif isinstance(limit, Lt):
            yield f"< {limit.lt}"
        elif pattern := getattr(limit, "pattern", None):
            yield f"form `{pattern}`"


def default(field: FieldInfo) -> str:
    """The default, as one would write it in the environment."""
    value = field.default
    if value is None:
        return "*unset*"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, tuple):
        return f"`{json.dumps(value)}`"
    if isinstance(value, timedelta):
        value = TypeAdapter(timedelta).dump_python(value, mode="json")
    return f"`{value}`"
