"""Workers in programs that make warnings errors."""

from __future__ import annotations

import warnings

import pytest
from temporalio.client import Client

from tests.support.remembering import remembering


async def test_a_late_cancellation_is_no_error(temporal_client: Client) -> None:
    """What the SDK warns of when a cancellation comes too late ends no worker; the rest stays."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        async with remembering(temporal_client):
            warnings.warn("Cannot find activity to cancel for token b'\\x0a'", stacklevel=1)
            with pytest.raises(UserWarning, match="something else"):
                warnings.warn("something else", stacklevel=1)
