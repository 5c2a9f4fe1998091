"""Thin Temporal activities: unpack, call the core, pack. Nothing is decided here.

One module for each workflow's activities; what they share (heartbeats, errors, accounting) is in
``runtime``. Their names and types are declared in ``engram/contracts/activities.py``.
"""
