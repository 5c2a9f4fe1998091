"""The base of what is stored, and of what stays in histories."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class StoredValue(BaseModel):
    """Never changed, only replaced.

    A newer version may have written more: that is passed over, and does not make the
    rest unreadable.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")
