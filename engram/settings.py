"""Every tunable number and address, in one frozen object (environment prefix ``ENGRAM_``)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final, Literal
from urllib.parse import urlsplit

from pydantic import (
    BaseModel,
    Field,
    SecretStr,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_settings import BaseSettings, SettingsConfigDict, SettingsError

from engram.domain.confidence import ConfidenceWeights
from engram.domain.learning import LearningRules
from engram.domain.personal_data import PersonalDataRule
from engram.domain.rules import (
    DigestPolicy,
    HealthRules,
    LifecycleRules,
    LifecycleSettings,
    RankingFactors,
    RankingWeights,
    ReviewRules,
)
from engram.domain.scope import check_identifier
from engram.domain.values import MOST_DAYS, MOST_MINUTES
from engram.errors import InvalidSettings

VARIABLE_PREFIX: Final = "ENGRAM_"
NESTING: Final = "__"
"""Between the names of a group and of what is in it."""
_LONGEST_WAIT: Final = timedelta(days=1)
_LONGEST_PERIOD: Final = timedelta(days=3650)
RULES: Final = "rules"
"""The model that is none: the offline rules."""


class Settings(BaseSettings):
    """Read once, where a program starts; passed on from there, never read at import.

    Build it with :meth:`load`, which turns a bad value into a typed error.
    """

    model_config = SettingsConfigDict(
        env_prefix=VARIABLE_PREFIX,
        env_nested_delimiter=NESTING,
        # An empty line of an .env file is none: an empty path would be the current folder.
        env_ignore_empty=True,
        frozen=True,
        extra="ignore",
        allow_inf_nan=False,
    )

    # --- where things are
    data_dir: Path = Path("~/.engram")
    """Folder of the embedded mode; one process owns it."""
    namespace: str = "default"
    """Engram namespace of a store."""
    temporal_address: str = "localhost:7233"
    """Connected mode: host:port."""
    temporal_namespace: str = "default"
    """Temporal namespace; on Temporal Cloud `<name>.<account>`."""
    temporal_api_key: SecretStr | None = None
    """API key for Temporal, as Temporal Cloud gives them out. Turns TLS on."""
    temporal_tls: bool = False
    """Use TLS towards Temporal."""
    temporal_tls_ca_cert: Path | None = None
    """PEM of a private authority that signed Temporal's certificate."""
    temporal_tls_client_cert: Path | None = None
    """File with the client's certificate (PEM), for mTLS. Turns TLS on."""
    temporal_tls_client_key: Path | None = None
    """File with the key of that certificate (PEM); both or neither."""
    temporal_ui_url: str | None = None
    """Base URL of the Temporal UI, for links to runs."""
    qdrant_url: str = "http://localhost:6333"
    """Connected mode: URL of the Qdrant server."""
    qdrant_api_key: SecretStr | None = None
    """API key for Qdrant; one that may write."""
    qdrant_timeout: float = Field(default=10.0, gt=0, le=86_400)
    """Seconds for one Qdrant request."""
    qdrant_replication_factor: int | None = Field(default=None, ge=1, le=100)
    """Nodes of a Qdrant cluster that keep each memory, for collections that Engram makes. Unset: as
    the cluster is set to, usually one."""
    qdrant_write_consistency: int | None = Field(default=None, ge=1, le=100)
    """How many of these a write waits for, for collections that Engram makes; at most as many as
    there are. Unset: one."""
    qdrant_shards: int = Field(default=1, ge=1, le=1000)
    """Parts of each collection that Engram makes; each lies on one node and those of its copies.
    With more than one, a collection may outgrow a node, and scores are no longer exact: each part
    weighs words by how rare they are among the user's memories in it."""
    collection_prefix: str = Field(default="engram", pattern=r"^[A-Za-z0-9_-]{1,64}$")
    """Names the store: the collections are called `<prefix>_episodic` and so on. Each environment
    on one Temporal namespace needs its own; queues and ids of workflows follow from it."""
    store_queue: str = "engram-store"
    """Task queue of workflows and storing. With another prefix: `<prefix>-store`."""
    model_queue: str = "engram-model"
    """Task queue of language-model work. With another prefix: `<prefix>-model`."""
    nexus_endpoint: str | None = Field(
        default=None, pattern=r"^[A-Za-z][A-Za-z0-9-]{0,198}[A-Za-z0-9]$"
    )
    """Nexus endpoint at which workers answer workflows of other Temporal namespaces. Whoever may
    call it may act for every user of `ENGRAM_NAMESPACE`. The embedded mode makes it. Unset: none is
    answered."""
    nexus_queue: str = "engram-nexus"
    """Task queue that the endpoint leads to. With another prefix: `<prefix>-nexus`."""
    nexus_plain: bool = False
    """Whether callers at the endpoint need no encryption keys: what they send and are answered
    stands readable in their histories. Else it is encrypted as all is, with the same keys."""
    nexus_requests_per_second: int = Field(default=200, ge=0, le=1_000_000)
    """Rate limit at the endpoint for each user, in each worker; 0 for none. Nexus asks again."""

    encryption_keys: Path | None = None
    """Folder of the keys that Temporal payloads are encrypted with, the same for all clients and
    workers. Unset: the embedded mode keeps its own in the data folder, and the connected mode does
    not encrypt."""
    encryption_master_key: SecretStr | None = None
    """Wraps those keys: 32 bytes in base64; after commas, those that were used before. Unset: the
    folder holds one."""

    # --- the audit trail
    audit_days: int = Field(default=90, ge=0, le=MOST_DAYS)
    """How long it is kept who read, changed or removed what; ids only. 0: no trail is kept."""
    audit_folder: Path | None = None
    """Folder of the audit trail, the same for all clients and workers. Unset: the embedded mode
    keeps it in the data folder, and the connected mode keeps none. It needs encryption keys."""
    audit_required: bool = False
    """Whether what cannot be noted in the audit trail is refused. Else it is done, logged and
    counted."""

    # --- models
    embedder: str = "wordllama"
    """`wordllama` (offline), `fastembed:<model>`, or any embedding model that Pydantic AI knows,
    such as `openai:text-embedding-3-small`."""
    model: str = "rules"
    """`rules` (offline), or any model that Pydantic AI knows, such as `openai:gpt-5-mini`."""
    model_requests_per_second: float | None = Field(default=None, gt=0, le=1_000_000)
    """Rate limit of the model queue over all workers."""
    model_timeout: timedelta = Field(
        default=timedelta(minutes=5), gt=timedelta(0), le=_LONGEST_WAIT
    )
    """For one attempt at one request to a language model."""
    store_timeout: timedelta = Field(
        default=timedelta(seconds=30), gt=timedelta(0), le=_LONGEST_WAIT
    )
    """For one attempt at one storing activity."""

    # --- embedded mode
    temporal_port: int | None = Field(default=None, ge=1, le=65535)
    """Port of Temporal's development server. Unset: a free port."""
    temporal_ui_port: int | None = Field(default=None, ge=1, le=65535)
    """Port of the Temporal UI. Unset: a free port."""
    temporal_ui: bool = False
    """Whether the Temporal UI runs. Every user and program of this machine can open it."""
    temporal_retention: timedelta = Field(
        default=timedelta(days=90), ge=timedelta(hours=1), le=_LONGEST_PERIOD
    )
    """How long the history of a workflow that ended is kept."""
    start_timeout: timedelta = Field(
        default=timedelta(seconds=30), gt=timedelta(0), le=_LONGEST_WAIT
    )
    """How long Temporal's development server may take to answer."""
    attach_timeout: timedelta = Field(
        default=timedelta(seconds=10), gt=timedelta(0), le=_LONGEST_WAIT
    )
    """How long a process waits for the owner of the folder to answer."""
    flush_interval: timedelta = Field(
        default=timedelta(seconds=5), gt=timedelta(0), le=_LONGEST_WAIT
    )
    """Bounds what a power loss can take."""

    # --- HTTP API
    http_enabled: bool = True
    """Whether `engram up` serves the HTTP API, and MCP beside it."""
    http_host: str = "127.0.0.1"
    """Address to listen on. Anything but loopback needs an API key to exist."""
    http_port: int = Field(default=8745, ge=1, le=65535)
    """Port to listen on."""
    http_allowed_hosts: tuple[str, ...] = ()
    """Host names, without port, that requests may name, beside those of loopback. Empty: on
    loopback no others, elsewhere any."""
    http_requests_per_second: int = Field(default=200, ge=0, le=1_000_000)
    """Rate limit of each API key, in each process; 0 for none."""
    http_max_body_bytes: int = Field(default=8 * 1024 * 1024, ge=64 * 1024, le=32 * 1024 * 1024)
    """Largest body of a request with an API key; a larger one is refused before it is read."""
    http_connections: int = Field(default=1000, ge=1, le=1_000_000)
    """Connections with a request that is being answered, at the same time in each process; further
    requests are answered 503. A key has three quarters of them at most; what is more is 429."""
    keys_file: Path | None = None
    """File of API keys; *unset*: `keys.json` in the data folder."""
    url: str | None = None
    """HTTP API that commands and `engram.connect` use, such as `https://memory.example.org`."""
    api_key: SecretStr | None = None
    """API key for it."""

    # --- writing
    max_turn_bytes: int = Field(default=32 * 1024, ge=1, le=256 * 1024)
    """Largest content of a turn, and largest query, in bytes of UTF-8."""
    max_batch_bytes: int = Field(default=512 * 1024, ge=1024, le=1024 * 1024)
    """Bytes of turns that one update to a session carries."""
    max_turns_per_update: int = Field(default=64, ge=1, le=500)
    """Turns that one update to a session carries."""
    max_turns_per_call: int = Field(default=1000, ge=1, le=5000)
    """Turns that one `encode` takes; an import takes any number."""
    max_running_sessions: int = Field(default=1000, ge=1, le=1_000_000)
    """Sessions of one user that run at the same time, as each process counts them."""
    max_running_imports: int = Field(default=20, ge=1, le=1_000_000)
    """Imports of one user that were begun and are not finished, as each process counts them."""
    working_memory_turns: int = Field(default=50, ge=1, le=500)
    """Turns that the working memory of a session holds."""
    working_memory_bytes: int = Field(default=256 * 1024, ge=1024, le=256 * 1024)
    """Bytes of content that the working memory of a session holds."""
    buffer_turns: int = Field(default=10, ge=1, le=1_000_000)
    """N: extract when so many turns wait."""
    buffer_minutes: float = Field(default=5.0, gt=0, le=MOST_MINUTES)
    """T: extract when one waits so long."""
    session_idle_minutes: float = Field(default=30.0, gt=0, le=MOST_MINUTES)
    """A session ends when nothing came for so long; also how long consolidation waits for more
    before it links what is left over."""
    updates_per_run: int = Field(default=500, ge=1, le=1500)
    """Updates after which a session goes on in a new run (continue-as-new)."""
    encode_timeout: timedelta = Field(
        default=timedelta(minutes=5), gt=timedelta(0), le=_LONGEST_WAIT
    )
    """How long a client waits for an acknowledgement, for a Temporal that cannot be reached, and
    for a worker that takes its work up."""
    phone_region: str = Field(default="US", pattern=r"^[A-Z]{2}$")
    """Country of phone numbers that are written without a country code."""

    personal_data: PersonalDataRule = "off"
    """E-mail addresses, telephone, card and account numbers, keys and the like in turns: `mark`
    notes their kinds on the turn, `mask` puts a token in their place before anything leaves the
    client or the API. Clients, API and workers need the same."""
    personal_data_by_namespace: dict[str, PersonalDataRule] = {}
    """The same for single namespaces: `{"clinic": "mask"}`."""

    # --- consolidating
    consolidate_every: int = Field(default=3, ge=1, le=1_000_000)
    """Extractions before a linking pass, at least: of a backlog, one step may make ten."""
    extraction_batch_turns: int = Field(default=20, ge=1, le=100)
    """Turns that one extraction reads."""
    extraction_batch_bytes: int = Field(default=48 * 1024, ge=1024, le=256 * 1024)
    """Bytes of content that one extraction reads."""
    pass_episodes: int = Field(default=2000, ge=1, le=20_000)
    """Episodes a pass selects at once, until none is due."""
    candidates_per_memory: int = Field(default=8, ge=1, le=50)
    """Similar memories that are offered for linking with each new one."""
    learning_by_namespace: dict[str, LearningRules] = {}
    """What single namespaces ask of extraction and linking, where a language model does them:
    `{"clinic": {"instructions": "...", "categories": [], "entity_types": [], "examples": [],
    "links": []}}`. Workers read it."""
    confidence_weights: ConfidenceWeights = ConfidenceWeights()
    reviews: ReviewRules = ReviewRules()
    digests: DigestPolicy = DigestPolicy()

    # --- fading and hardening
    lifecycle: LifecycleSettings = LifecycleSettings()
    access_flush_interval: timedelta = Field(
        default=timedelta(seconds=5), gt=timedelta(0), le=_LONGEST_PERIOD
    )
    """How often recalls are noted on memories."""
    access_flush_memories: int = Field(default=500, ge=1, le=1_000_000)
    """Recalled memories that wait at most before they are noted."""

    # --- passes and their schedules
    schedules: bool = True
    """Whether Temporal Schedules run the passes over all users. Off: they are removed when a worker
    or `engram up` starts."""
    consolidation_interval: timedelta = Field(
        default=timedelta(minutes=60), ge=timedelta(seconds=1), le=_LONGEST_PERIOD
    )
    """How often users with unconsolidated turns are consolidated."""
    promotion_interval: timedelta = Field(
        default=timedelta(minutes=10), ge=timedelta(seconds=1), le=_LONGEST_PERIOD
    )
    """How often a promotion pass over all users runs."""
    decay_interval: timedelta = Field(
        default=timedelta(minutes=60), ge=timedelta(seconds=1), le=_LONGEST_PERIOD
    )
    """How often a decay pass over all users runs."""
    schedule_jitter: timedelta = Field(
        default=timedelta(seconds=30), ge=timedelta(0), le=_LONGEST_PERIOD
    )
    """Scheduled passes begin so much later at most, by chance."""
    schedule_catchup: timedelta = Field(
        default=timedelta(days=1), gt=timedelta(0), le=_LONGEST_PERIOD
    )
    """A scheduled pass that was missed, because nothing ran, is made up for once if it is no
    older."""
    promotion_batch: int = Field(default=10, ge=1, le=1000)
    """Memories that a promotion pass considers at once."""
    decay_batch: int = Field(default=100, ge=1, le=1000)
    """Memories that a decay pass writes at once."""
    pass_users: int = Field(default=10, ge=1, le=100)
    """Users whose passes run at the same time."""
    health: HealthRules = HealthRules()
    briefing_candidates: int = Field(default=1000, ge=1, le=1_000_000)
    """Memories of each type that a briefing chooses from."""

    # --- recalling
    recall_candidates: int = Field(default=40, ge=1, le=1000)
    """Candidates per memory type and vector side, compared but not read."""
    recall_pool: int = Field(default=32, ge=1, le=1000)
    """How many of the candidates are read and weighed."""
    recall_weights: RankingWeights = RankingWeights()
    recall_factors: RankingFactors = RankingFactors()
    reranker: str | None = None
    """Looks at the best answers again: `fastembed:<cross-encoder>`, any Pydantic AI model, or
    none."""
    rerank_candidates: int = Field(default=20, ge=2, le=200)
    """How many answers the reranker is shown."""
    rerank_timeout: timedelta = Field(
        default=timedelta(seconds=10), gt=timedelta(0), le=_LONGEST_WAIT
    )
    """How long a recall waits for the reranker; then its answers stay in the order they had."""
    recall_max_limit: int = Field(default=200, ge=1, le=1000)
    """Largest `limit` that recall accepts."""

    # --- logging
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """From which level on lines are written. Unset, commands that answer and end write warnings and
    errors only."""
    log_format: Literal["console", "json"] = "console"
    """console for people, json for machines; both on standard error."""

    @model_validator(mode="before")
    @classmethod
    def _queues_of_the_store(cls, given: dict[str, Any]) -> dict[str, Any]:
        """Workers of one store must not be handed the work of another."""
        if (prefix := given.get("collection_prefix")) is None:
            return given
        queues = {f"{what}_queue": f"{prefix}-{what}" for what in ("store", "model", "nexus")}
        return queues | given

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

    @field_validator(
        *("data_dir", "encryption_keys", "audit_folder", "keys_file"),
        *("temporal_tls_ca_cert", "temporal_tls_client_cert", "temporal_tls_client_key"),
    )
    @classmethod
    def _expand(cls, value: Path | None) -> Path | None:
        return None if value is None else value.expanduser()

    @property
    def master_key(self) -> str | None:
        """The master key, and after commas those before it; None where the folder holds it."""
        given = self.encryption_master_key
        return None if given is None else given.get_secret_value()

    @property
    def keys_path(self) -> Path:
        """Where API keys are kept."""
        return self.keys_file or self.data_dir / "keys.json"

    @property
    def lifecycle_rules(self) -> LifecycleRules:
        """Everything that decisions about a memory's life depend on, as one value."""
        return LifecycleRules.of(self.lifecycle, self.confidence_weights)

    @field_validator("personal_data_by_namespace", "learning_by_namespace")
    @classmethod
    def _of_namespaces(cls, value: dict[str, Any]) -> dict[str, Any]:
        # Of a misspelt one nobody would notice that its rule holds for nothing.
        for name in value:
            check_identifier(name, "namespace")
        return value

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
    return VARIABLE_PREFIX + name.replace(".", NESTING).upper()


def wrong_settings(error: ValidationError | SettingsError) -> dict[str, str]:
    """What is wrong, by dotted name, without the values: one of them may be a secret."""
    if isinstance(error, ValidationError):
        return {
            ".".join(str(part) for part in found["loc"]): (
                _no_setting(found["loc"]) if found["type"] == "extra_forbidden" else found["msg"]
            )
            for found in error.errors(include_input=False, include_url=False)
        }
    # It names the field in words only: 'error parsing value for field "health" from source ...'.
    quoted = str(error).split('"')
    name = quoted[1] if len(quoted) > 1 else "settings"
    return {name: "is no JSON"}


def _no_setting(place: Sequence[int | str]) -> str:
    """What is to be said of a name that a group of settings has not: what it has that is like it.

    A name outside groups is ignored, as variables of other programs may begin alike.
    """
    *path, name = map(str, place)
    group: Any = Settings
    for part in path:
        group = group.model_fields[part].annotation if part in _names_in(group) else None
    names = _names_in(group)
    alike = get_close_matches(name, names, n=3) or names
    them = ", ".join(variable_of(".".join((*path, one))) for one in alike)
    return f"is no setting, or not any more; there are {them}" if them else "is no setting"


def _names_in(group: Any) -> list[str]:
    is_group = isinstance(group, type) and issubclass(group, BaseModel)
    return list(group.model_fields) if is_group else []


# --- addresses and keys, checked where they are used: arguments name them, too, not settings alone


def checked_address(url: str, whose: str, setting: str) -> str:
    """The address of a server, without a slash at its end.

    Args:
        url: Is given.
        whose: The server, in words for the message, which repeats nothing of the address: people
            paste addresses with keys in them.
        setting: The variable that names it.

    Raises:
        InvalidSettings: nothing can be asked at such an address.
    """
    url = url.strip()
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        usable = False
    spaced = not url.isprintable() or " " in url
    if not usable or spaced or parts.query or parts.fragment or parts.username or parts.password:
        raise InvalidSettings(
            f"The address of the {whose} is not usable.",
            allowed="http:// or https://, a host, a port where it is not the usual one, and a path "
            "where a proxy adds one",
            hint=f"Check {setting}.",
        )
    return url.rstrip("/")


def checked_key(key: str, whose: str, setting: str) -> str:
    """A key as a header carries it, without the line end with which a mounted secret may end.

    Args:
        key: Is given; never shown.
        whose: The server that it opens, in words for the message.
        setting: The variable that names it.

    Raises:
        InvalidSettings: no header can carry it.
    """
    key = key.strip()
    if not key.isascii() or not key.isprintable():
        raise InvalidSettings(
            f"The API key for the {whose} is not usable.",
            allowed="printable ASCII characters",
            hint=f"Check {setting}.",
        )
    return key
