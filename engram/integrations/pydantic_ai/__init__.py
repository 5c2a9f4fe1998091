"""Memory for Pydantic AI agents, in one line.

``Agent(model, capabilities=[EngramMemory(memory)])``
"""

from engram.integrations.pydantic_ai.capability import EngramMemory

__all__ = ["EngramMemory"]
