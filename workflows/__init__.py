"""Temporal workflows: in which order things happen, and what happens when one of them fails.

What each step does is decided in ``engram``. A conversation is in ``session``, what is concluded
from it in ``consolidation`` and ``consolidation_pass``, the lives of memories in ``lifecycle``,
erasing and forgetting in ``removal``; retries, limits and queues are in ``support``.
"""
