"""Engram inside other people's frameworks: Pydantic AI, and Temporal programs of one's own.

Only what they need to reach a memory store; what is remembered and recalled is decided behind it.
"""
