"""How a client of servers reaches Temporal, seen where the SDK is asked to connect."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from temporalio.service import TLSConfig

from engram.errors import InvalidSettings, TemporalUnavailable
from engram.settings import Settings
from engram.temporal import connection
from tests.support.temporal_without_database import temporal_without_database


async def test_a_private_authority_is_trusted_where_a_setting_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its PEM file reaches the SDK, and turns TLS on by itself; without it there is none."""
    authority = tmp_path / "authority.pem"
    authority.write_bytes(b"-----BEGIN CERTIFICATE-----")
    asked: list[Any] = []

    async def connect(*_: Any, tls: bool | TLSConfig, **__: Any) -> None:
        asked.append(tls)
        raise OSError

    monkeypatch.setattr(connection, "connect_client", connect)
    for named in (authority, None):
        settings = Settings.load(temporal_tls_ca_cert=named, encryption_keys=None)
        with pytest.raises(TemporalUnavailable):
            await connection.connect_temporal(settings)
    trusting, plain = asked
    assert trusting.server_root_ca_cert == authority.read_bytes()
    assert plain is False


async def test_a_key_that_no_header_carries_is_no_server_that_is_away() -> None:
    """It is refused at once, by the name of its variable and without being shown."""
    settings = Settings.load(temporal_api_key="schlüssel")
    with pytest.raises(InvalidSettings, match="ENGRAM_TEMPORAL_API_KEY") as refused:
        await connection.connect_temporal(settings)
    assert "schlüssel" not in str(refused.value)


@pytest.mark.long
async def test_a_server_whose_database_is_away_is_not_called_absent() -> None:
    """It listens and cannot serve: the error says so, and not that one is to be started."""
    with (
        temporal_without_database() as (address, _),
        pytest.raises(TemporalUnavailable, match="its database may be away") as refused,
    ):
        await connection.connect_temporal(Settings.load(temporal_address=address))
    assert refused.value.message.endswith(f"at {address} cannot answer now (unavailable).")
    assert "No Temporal server" not in str(refused.value)
