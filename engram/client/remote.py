"""Reaching a memory over the network, with an API key."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

import httpx

from engram.client.http import AttachedEngine, Broken, HttpAnswer
from engram.logging import get_logger
from engram.settings import checked_address, checked_key

_log = get_logger("engram.client")

# Answers have no limit of time: an outage behind the owner delays an acknowledgement,
# and consolidation takes what it takes.
_PATIENT: Final = httpx.Timeout(None, connect=5.0)
_THIS_MACHINE = frozenset({"localhost", "127.0.0.1", "::1"})
_UNREACHABLE_HINT = (
    "Check the address and whether the server runs. Certificates are verified; SSL_CERT_FILE "
    "names a private authority."
)


class NetworkWire:
    """A :class:`engram.client.http.Wire` of an HTTP client, which proxies and TLS are a matter of.

    Args:
        client: Its base URL is that of the application; closed with the wire.
    """

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client

    async def send(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes | None
    ) -> HttpAnswer:
        """See :meth:`engram.client.http.Wire.send`."""
        try:
            answer = await self._client.request(method, target, content=body, headers=headers)
        except httpx.TransportError as error:
            raise Broken(type(error).__name__) from error
        return HttpAnswer(answer.status_code, answer.content)

    async def close(self) -> None:
        """Let go of the connections."""
        await self._client.aclose()


def remote_engine(url: str, api_key: str) -> AttachedEngine:
    """An engine behind an HTTP API; certificates are verified.

    Authorities are certifi's, or those that SSL_CERT_FILE or SSL_CERT_DIR name.

    Args:
        url: Where the API is.
        api_key: Opens it.

    Raises:
        InvalidSettings: the address or the key has a form that no address or key has.
    """
    api_key = checked_key(api_key, "HTTP API", "ENGRAM_API_KEY")
    client = httpx.AsyncClient(
        base_url=_checked(url),
        transport=httpx.AsyncHTTPTransport(verify=True, trust_env=True),
        timeout=_PATIENT,
        # No proxies of the environment, which would see the key where TLS does not hide it.
        trust_env=False,
        headers={"Authorization": f"Bearer {api_key}"},
    )
    return AttachedEngine(NetworkWire(client), _UNREACHABLE_HINT)


def _checked(url: str) -> str:
    address = checked_address(url, "HTTP API", "ENGRAM_URL")
    parts = urlsplit(address)
    if parts.scheme == "http" and parts.hostname not in _THIS_MACHINE:
        _log.warning("the API key travels unencrypted; use https", host=parts.hostname)
    return address
