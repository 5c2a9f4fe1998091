"""Connecting to a Temporal server or Temporal Cloud by settings."""

from __future__ import annotations

from pathlib import Path

from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
from temporalio.client import Client
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.service import RPCError, TLSConfig

from engram.client.failures import typed
from engram.errors import InvalidSettings, TemporalNotSetUp, TemporalUnavailable
from engram.settings import Settings


async def connect_temporal(settings: Settings) -> Client:
    """A connected client with the pydantic data converter.

    Raises:
        TemporalNotSetUp: the namespace does not exist.
        TemporalUnavailable: nothing that speaks Temporal answers at the address.
        InvalidSettings: certificate settings that do not fit together.
    """
    key = settings.temporal_api_key
    try:
        client = await Client.connect(
            settings.temporal_address,
            namespace=settings.temporal_namespace,
            api_key=key.get_secret_value() if key is not None else None,
            tls=_tls(settings),
            data_converter=pydantic_data_converter,
        )
        await client.workflow_service.describe_namespace(
            DescribeNamespaceRequest(namespace=settings.temporal_namespace), retry=True
        )
    except (RPCError, RuntimeError, OSError) as error:
        if isinstance(error, RPCError) and isinstance(found := typed(error), TemporalNotSetUp):
            raise found from error
        raise TemporalUnavailable(
            f"No Temporal server answers at {settings.temporal_address}.",
            hint=(
                "Start one, set ENGRAM_TEMPORAL_ADDRESS (and ENGRAM_TEMPORAL_TLS, "
                "ENGRAM_TEMPORAL_API_KEY for Temporal Cloud), or use engram.open, "
                "which brings its own."
            ),
        ) from error
    return client


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
