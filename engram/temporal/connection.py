"""Connecting to a Temporal server, and what Engram asks of its namespace."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

from google.protobuf.duration_pb2 import Duration
from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.namespace.v1 import NamespaceConfig
from temporalio.api.nexus.v1 import EndpointSpec, EndpointTarget
from temporalio.api.operatorservice.v1 import (
    AddSearchAttributesRequest,
    CreateNexusEndpointRequest,
    ListNexusEndpointsRequest,
    ListSearchAttributesRequest,
    UpdateNexusEndpointRequest,
)
from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest, UpdateNamespaceRequest
from temporalio.client import Client
from temporalio.runtime import LoggingConfig, Runtime, TelemetryConfig, TelemetryFilter
from temporalio.service import RPCError, RPCStatusCode, TLSConfig

from engram.contracts.names import SEARCH_ATTRIBUTES
from engram.errors import (
    EmbeddedStartFailed,
    InvalidSettings,
    TemporalNotSetUp,
    TemporalUnavailable,
)
from engram.ports import KeyStore
from engram.settings import Settings, checked_key
from engram.system import new_secret
from engram.temporal.encryption import EncryptionCodec, data_converter
from engram.temporal.keys import FolderKeyStore
from engram.temporal.retry import typed

# --- what Temporal's SDK says by itself, kept out of the standard output of our programs


@cache
def quiet_runtime() -> Runtime:
    """The SDK's runtime for the embedded mode and for commands, one a process.

    The SDK's core writes its log to standard output, where commands print what they
    answer. Its warnings are about outages, which we say ourselves where they matter, and
    about work that was cancelled.
    Handing its log to Python instead has its threads call into an interpreter that
    is perhaps just ending.
    """
    only_errors = TelemetryFilter(core_level="ERROR", other_level="ERROR")
    return Runtime(telemetry=TelemetryConfig(logging=LoggingConfig(filter=only_errors)))


# --- the one place where clients are made


async def connect_client(
    address: str, namespace: str, keys: KeyStore | None, **options: Any
) -> Client:
    """A client whose payloads are encrypted.

    Args:
        address: host:port of the server.
        namespace: Of Temporal.
        keys: What with; None leaves payloads readable.
        options: Others of :meth:`temporalio.client.Client.connect`.

    Raises:
        RuntimeError: nobody answers.
    """
    codec = None if keys is None else EncryptionCodec(keys)
    client = await Client.connect(
        address, namespace=namespace, data_converter=data_converter(codec), **options
    )
    if codec is not None:
        codec.ask(_Runs(client))
    return client


class _Runs:
    """Knows when runs began: the server says it, and nobody who starts one can choose it."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def began(self, workflow_id: str) -> datetime | None:
        try:
            return (await self._client.get_workflow_handle(workflow_id).describe()).start_time
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                return None
            raise


# --- connecting to a Temporal server or Temporal Cloud by settings


def key_store(settings: Settings) -> FolderKeyStore | None:
    """The keys that settings of the connected mode name; None where they name none.

    Raises:
        EncryptionKeysUnusable: there are no keys in the folder.
        InvalidSettings: the master key is none.
    """
    if settings.encryption_keys is None:
        return None
    return FolderKeyStore(
        settings.encryption_keys, new_secret=new_secret, master=settings.master_key
    )


async def connect_temporal(settings: Settings, keys: KeyStore | None = None) -> Client:
    """A connected client with the pydantic data converter.

    Args:
        settings: Say where the server is, and where the keys are.
        keys: Those of :func:`key_store`, where the caller needs them too.

    Raises:
        EncryptionKeysUnusable: the settings name keys that are not there.
        TemporalNotSetUp: the namespace does not exist.
        TemporalUnavailable: nothing that speaks Temporal answers at the address, or what
            answers there cannot serve now, such as a server whose database is away.
        InvalidSettings: certificate settings that do not fit together, or a key that is none.
    """
    try:
        client = await connect_client(
            settings.temporal_address,
            settings.temporal_namespace,
            keys or key_store(settings),
            api_key=_key(settings),
            tls=_tls(settings),
        )
        await client.workflow_service.describe_namespace(
            DescribeNamespaceRequest(namespace=settings.temporal_namespace), retry=True
        )
    except (RPCError, RuntimeError, OSError) as error:
        if isinstance(error, RPCError):
            found = typed(error)
            if isinstance(found, TemporalNotSetUp):
                raise found from error
            if isinstance(found, TemporalUnavailable):
                raise TemporalUnavailable(
                    f"The Temporal server at {settings.temporal_address} cannot answer now "
                    f"({error.status.name.lower()}).",
                    hint="It may be starting, or its database may be away; its log says which.",
                ) from error
        raise TemporalUnavailable(
            f"No Temporal server answers at {settings.temporal_address}.",
            hint=(
                "Start one, set ENGRAM_TEMPORAL_ADDRESS (and ENGRAM_TEMPORAL_TLS, "
                "ENGRAM_TEMPORAL_API_KEY for Temporal Cloud), or use engram.open, "
                "which brings its own."
            ),
        ) from error
    return client


def _key(settings: Settings) -> str | None:
    given = settings.temporal_api_key
    if given is None:
        return None
    return checked_key(given.get_secret_value(), "Temporal server", "ENGRAM_TEMPORAL_API_KEY")


def _tls(settings: Settings) -> bool | TLSConfig:
    authority = settings.temporal_tls_ca_cert
    cert, key = settings.temporal_tls_client_cert, settings.temporal_tls_client_key
    if (cert is None) is not (key is None):
        raise InvalidSettings(
            "Only one half of the TLS client identity is set.",
            allowed="both ENGRAM_TEMPORAL_TLS_CLIENT_CERT and ENGRAM_TEMPORAL_TLS_CLIENT_KEY",
        )
    if authority is None and cert is None:
        return settings.temporal_tls or settings.temporal_api_key is not None
    return TLSConfig(
        server_root_ca_cert=_pem(authority), client_cert=_pem(cert), client_private_key=_pem(key)
    )


def _pem(path: Path | None) -> bytes | None:
    try:
        return path.read_bytes() if path is not None else None
    except OSError as error:
        raise InvalidSettings(
            f"The certificate file {path} cannot be read.", allowed="a readable PEM file"
        ) from error


# --- what Engram asks of a Temporal namespace: how long runs are kept, how they are found


async def prepare_namespace(client: Client, retention: timedelta) -> None:
    """Set retention and register search attributes where they are not so yet.

    Raises:
        EmbeddedStartFailed: the server kept another retention than it was told.
        temporalio.service.RPCError: the server refused.
    """
    if await _retention(client) != retention:
        kept = Duration()
        kept.FromTimedelta(retention)
        await client.workflow_service.update_namespace(
            UpdateNamespaceRequest(
                namespace=client.namespace,
                config=NamespaceConfig(workflow_execution_retention_ttl=kept),
            )
        )
        if (found := await _retention(client)) != retention:
            raise EmbeddedStartFailed(
                f"Temporal keeps runs for {found}, not for {retention} as it was told.",
                hint="Choose another ENGRAM_TEMPORAL_RETENTION.",
            )
    listed = await client.operator_service.list_search_attributes(
        ListSearchAttributesRequest(namespace=client.namespace)
    )
    missing = [name for name in SEARCH_ATTRIBUTES if name not in listed.custom_attributes]
    if missing:
        # A folder of an earlier version of Engram: the server registers attributes
        # by itself only when it makes the database.
        await client.operator_service.add_search_attributes(
            AddSearchAttributesRequest(
                namespace=client.namespace,
                search_attributes=dict.fromkeys(
                    missing, IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD
                ),
            )
        )


async def prepare_endpoint(client: Client, name: str, task_queue: str) -> None:
    """Let a Nexus endpoint lead to a queue of the client's namespace; made where there is none.

    Raises:
        temporalio.service.RPCError: the server refused.
    """
    worker = EndpointTarget.Worker(namespace=client.namespace, task_queue=task_queue)
    wanted = EndpointSpec(name=name, target=EndpointTarget(worker=worker))
    operator = client.operator_service
    listed = await operator.list_nexus_endpoints(ListNexusEndpointsRequest(name=name))
    if not listed.endpoints:
        await operator.create_nexus_endpoint(CreateNexusEndpointRequest(spec=wanted))
        return
    found = listed.endpoints[0]
    if found.spec.target != wanted.target:
        await operator.update_nexus_endpoint(
            UpdateNexusEndpointRequest(id=found.id, version=found.version, spec=wanted)
        )


async def _retention(client: Client) -> timedelta:
    answer = await client.workflow_service.describe_namespace(
        DescribeNamespaceRequest(namespace=client.namespace)
    )
    return answer.config.workflow_execution_retention_ttl.ToTimedelta()
