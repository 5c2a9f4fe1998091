"""Every tunable number and address, in one frozen object (environment prefix ``ENGRAM_``)."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, SecretStr, ValidationError, ValidationInfo, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict, SettingsError

from engram.domain.confidence import ConfidenceWeights
from engram.domain.rules import (
    DigestPolicy,
    HealthRules,
    LifecycleRules,
    LifecycleSettings,
    RankingFactors,
    RankingWeights,
)
from engram.errors import InvalidSettings


class Settings(BaseSettings):
    """Read once, where a program starts; passed on from there, never read at import.

    Build it with :meth:`load`, which turns a bad value into a typed error.
    """

    model_config = SettingsConfigDict(
        env_prefix="ENGRAM_", env_nested_delimiter="__", frozen=True, extra="ignore"
    )

    # --- where things are
    data_dir: Path = Field(
        default=Path("~/.engram"), description="Folder of the embedded mode; one process owns it."
    )
    namespace: str = Field(default="default", description="Engram namespace of a store.")
    temporal_address: str = Field(
        default="localhost:7233", description="Connected mode: host:port."
    )
    temporal_namespace: str = "default"
    temporal_api_key: SecretStr | None = None
    temporal_tls: bool = Field(default=False, description="Use TLS towards Temporal.")
    temporal_tls_ca_cert: Path | None = Field(
        default=None, description="PEM of a private authority that signed Temporal's certificate."
    )
    temporal_tls_client_cert: Path | None = None
    temporal_tls_client_key: Path | None = None
    temporal_ui_url: str | None = Field(
        default=None, description="Base URL of the Temporal UI, for links to runs."
    )
    qdrant_url: str = "http://localhost:6333"
    qdrant_api_key: SecretStr | None = None
    qdrant_timeout: float = Field(default=10.0, gt=0, description="Seconds for one Qdrant request.")
    collection_prefix: str = Field(default="engram", pattern=r"^[A-Za-z0-9_-]{1,64}$")
    store_queue: str = Field(
        default="engram-store", description="Task queue of workflows and storing."
    )
    model_queue: str = Field(
        default="engram-model", description="Task queue of language-model work."
    )

    # --- models
    embedder: str = Field(
        default="wordllama",
        description="wordllama, fastembed:<model>, or any Pydantic AI embedding model string.",
    )
    model: str = Field(
        default="rules", description="rules (offline), or any Pydantic AI model string."
    )
    model_requests_per_second: float | None = Field(
        default=None, gt=0, description="Rate limit of the model queue over all workers."
    )
    model_timeout: timedelta = timedelta(minutes=5)
    store_timeout: timedelta = timedelta(seconds=30)

    # --- embedded mode
    temporal_port: int | None = Field(
        default=None, ge=1, le=65535, description="None: a free port."
    )
    temporal_ui_port: int | None = Field(default=None, ge=1, le=65535)
    temporal_ui: bool = True
    temporal_retention: timedelta = timedelta(days=90)
    start_timeout: timedelta = timedelta(seconds=30)
    attach_timeout: timedelta = timedelta(seconds=10)
    flush_interval: timedelta = Field(
        default=timedelta(seconds=5), description="Bounds what a power loss can take."
    )

    # --- HTTP API
    http_enabled: bool = Field(
        default=True, description="Whether `engram up` serves the HTTP API, and MCP beside it."
    )
    http_host: str = Field(
        default="127.0.0.1",
        description="Address to listen on. Anything but loopback needs an API key to exist.",
    )
    http_port: int = Field(default=8745, ge=1, le=65535, description="Port to listen on.")
    http_allowed_hosts: tuple[str, ...] = Field(
        default=(),
        description="Host names, without port, that requests may name, beside those of "
        "loopback. Empty: on loopback no others, elsewhere any.",
    )
    http_requests_per_second: int | None = Field(
        default=None, ge=1, description="Rate limit of each API key, in each process."
    )
    keys_file: Path | None = Field(
        default=None, description="File of API keys; *unset*: `keys.json` in the data folder."
    )
    url: str | None = Field(
        default=None,
        description="HTTP API that commands and `engram.connect` use, such as "
        "`https://memory.example.org`.",
    )
    api_key: SecretStr | None = Field(default=None, description="API key for it.")

    # --- writing
    max_turn_bytes: int = Field(default=32 * 1024, ge=1, le=256 * 1024)
    max_batch_bytes: int = Field(default=512 * 1024, ge=1024, le=1024 * 1024)
    max_turns_per_update: int = Field(default=64, ge=1, le=500)
    working_memory_turns: int = Field(default=50, ge=1, le=500)
    working_memory_bytes: int = Field(default=256 * 1024, ge=1024, le=256 * 1024)
    buffer_turns: int = Field(default=10, ge=1, description="N: extract when so many turns wait.")
    buffer_minutes: float = Field(
        default=5.0, gt=0, description="T: extract when one waits so long."
    )
    session_idle_minutes: float = Field(default=30.0, gt=0)
    updates_per_run: int = Field(default=500, ge=1, le=1500)
    encode_timeout: timedelta = Field(
        default=timedelta(minutes=5), description="How long a client waits for an acknowledgement."
    )
    phone_region: str = Field(default="US", pattern=r"^[A-Z]{2}$")

    # --- consolidating
    consolidate_every: int = Field(
        default=3, ge=1, description="Extractions before a linking pass."
    )
    extraction_batch_turns: int = Field(default=20, ge=1, le=100)
    extraction_batch_bytes: int = Field(default=48 * 1024, ge=1024, le=256 * 1024)
    pass_episodes: int = Field(
        default=2000, ge=1, description="Episodes a pass selects at once, until none is due."
    )
    candidates_per_memory: int = Field(default=8, ge=1, le=50)
    confidence_weights: ConfidenceWeights = ConfidenceWeights()
    digests: DigestPolicy = DigestPolicy()

    # --- fading and hardening
    lifecycle: LifecycleSettings = LifecycleSettings()
    access_flush_interval: timedelta = Field(
        default=timedelta(seconds=5), description="How often recalls are noted on memories."
    )
    access_flush_memories: int = Field(
        default=500, ge=1, description="Recalled memories that wait at most before they are noted."
    )

    # --- passes and their schedules
    schedules: bool = Field(
        default=True, description="Whether Temporal Schedules run the passes over all users."
    )
    consolidation_interval: timedelta = timedelta(minutes=60)
    promotion_interval: timedelta = timedelta(minutes=10)
    decay_interval: timedelta = timedelta(minutes=60)
    schedule_jitter: timedelta = timedelta(seconds=30)
    schedule_catchup: timedelta = timedelta(days=1)
    promotion_batch: int = Field(default=10, ge=1, le=1000)
    decay_batch: int = Field(default=100, ge=1, le=1000)
    pass_users: int = Field(
        default=10, ge=1, le=100, description="Users whose passes run at the same time."
    )
    health: HealthRules = HealthRules()
    briefing_candidates: int = Field(
        default=1000, ge=1, description="Memories of each type that a briefing chooses from."
    )

    # --- recalling
    recall_candidates: int = Field(
        default=40, ge=1, le=1000, description="Matches per type and side, not read yet."
    )
    recall_pool: int = Field(
        default=32, ge=1, le=1000, description="How many of them are read and weighed."
    )
    recall_weights: RankingWeights = RankingWeights()
    recall_factors: RankingFactors = RankingFactors()
    reranker: str | None = Field(
        default=None,
        description="None, fastembed:<cross-encoder>, or any Pydantic AI model string.",
    )
    rerank_candidates: int = Field(
        default=20, ge=2, le=200, description="How many answers the reranker is shown."
    )
    recall_max_limit: int = Field(default=200, ge=1, le=1000)

    # --- logging
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    log_format: Literal["console", "json"] = "console"

    @field_validator("*", mode="before")
    @classmethod
    def _plain_seconds(cls, value: Any, info: ValidationInfo) -> Any:
        """A duration may be given in plain seconds: 300 is PT5M."""
        field = cls.model_fields.get(info.field_name or "")
        if field is None or field.annotation is not timedelta or not isinstance(value, str):
            return value
        try:
            return timedelta(seconds=float(value))
        except (ValueError, OverflowError):
            return value

    @field_validator("data_dir")
    @classmethod
    def _expand(cls, value: Path) -> Path:
        return value.expanduser()

    @property
    def keys_path(self) -> Path:
        """Where API keys are kept."""
        return (self.keys_file or self.data_dir / "keys.json").expanduser()

    @property
    def lifecycle_rules(self) -> LifecycleRules:
        """Everything that decisions about a memory's life depend on, as one value."""
        return LifecycleRules.of(self.lifecycle, self.confidence_weights)

    @classmethod
    def load(cls, **values: Any) -> Settings:
        """Settings from the environment, overridden by ``values``.

        Raises:
            InvalidSettings: naming each setting that is out of range.
        """
        try:
            return cls(**values)
        except (ValidationError, SettingsError) as error:
            wrong = "; ".join(
                f"{variable_of(name)}: {what}" for name, what in wrong_settings(error).items()
            )
            raise InvalidSettings(
                f"Settings cannot be used: {wrong}.",
                hint="`engram config NAME` and docs/settings.md say what is allowed.",
            ) from error


def variable_of(name: str) -> str:
    """The environment variable of a setting with this dotted name."""
    return "ENGRAM_" + name.replace(".", "__").upper()


def wrong_settings(error: ValidationError | SettingsError) -> dict[str, str]:
    """What is wrong, by dotted name, without the values: one of them may be a secret."""
    if isinstance(error, ValidationError):
        return {
            ".".join(str(part) for part in found["loc"]): found["msg"]
            for found in error.errors(include_input=False, include_url=False)
        }
    # It names the field in words only: 'error parsing value for field "health" from source ...'.
    quoted = str(error).split('"')
    name = quoted[1] if len(quoted) > 1 else "settings"
    return {name: "is no JSON"}
