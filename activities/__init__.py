"""Thin Temporal activities: unpack, call the core, pack."""
