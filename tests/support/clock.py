"""The present of tests."""

from __future__ import annotations

from datetime import UTC, datetime

NOW = datetime(2026, 3, 11, 9, 30, tzinfo=UTC)
"""A Wednesday."""
