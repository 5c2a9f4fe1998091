"""Pydantic AI agents: their requests, output types and instructions."""
