"""A chat in the terminal that remembers you from one run to the next.

    uv run python examples/chat_loop.py

Type a line, press Enter; Ctrl-D ends. Start it again and ask about what you said. It needs no
language model: without one it answers with what it remembers, word for word. With one, the model
answers, and Engram consolidates with it too:

    ENGRAM_MODEL=openai:gpt-5-mini OPENAI_API_KEY=... uv run python examples/chat_loop.py
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart

import engram
from engram import Turn

USER = "ada"  # In an application: whoever has signed in.


def main() -> None:
    """Chat until the input ends."""
    settings = engram.Settings.load()  # Everything tunable, from ENGRAM_... variables.
    agent = None if settings.model == "rules" else Agent(settings.model)
    # A session is one conversation. What it says becomes knowledge of the user, not of the session.
    session = time.strftime("chat-%Y%m%d-%H%M%S")

    # In ENGRAM_DATA_DIR, or ~/.engram. The first process that opens the folder runs everything;
    # a second chat beside this one attaches to it.
    with engram.open_sync(user_id=USER, settings=settings) as memory:
        # What matters most about the user, however long ago it was said.
        for known in memory.briefing(limit=5):
            print(f"  I know: {known.memory.content}")

        for said in typed_lines():
            # Recall first, encode afterwards: else the question itself would be the best match.
            hits = memory.recall(said, limit=3)
            for hit in hits:
                print(f"  {hit.score:.2f} {hit.memory.known_at:%Y-%m-%d} {hit.memory.content}")

            if agent is None:
                answer = quote(said, [hit.memory.content for hit in hits])
            else:
                # The memories as a dated, fenced block, and the turns of this conversation.
                block = memory.context(said, tokens=500)
                earlier = [(turn.role, turn.content) for turn in memory.working_memory(session)]
                answer = ask(agent, said, block, earlier)
            print(f"engram> {answer}")

            # When this returns, both turns are stored and survive the death of any process.
            turns = [Turn(content=said), Turn(role="assistant", content=answer)]
            memory.encode(turns, session_id=session)

        # Both would happen by themselves, after a while or at the next start. A chat that is over
        # can say so, and wait to see what came of it.
        memory.end_session(session)
        memory.consolidate()
        for known in memory.briefing(limit=5):
            print(f"  I know: {known.memory.content}")


def typed_lines() -> Iterator[str]:
    """What the user types, until Ctrl-D or Ctrl-C."""
    while True:
        try:
            line = input("you> ").strip()
        except (EOFError, KeyboardInterrupt):
            print()
            return
        if line:
            yield line


def quote(said: str, remembered: Sequence[str]) -> str:
    """An answer without a language model: the best of what is remembered, as it stands."""
    if said.endswith("?") and remembered:
        return f"I remember: {remembered[0]}"
    return "I have nothing about that." if said.endswith("?") else "Noted."


def ask(agent: Agent[None, str], said: str, block: str, earlier: Sequence[tuple[str, str]]) -> str:
    """A language model's answer, from what is remembered and what was said before."""
    history: list[ModelMessage] = [
        ModelRequest.user_text_prompt(content)
        if role == "user"
        else ModelResponse(parts=[TextPart(content)])
        for role, content in earlier
    ]
    # The block goes with the question only, so that old ones do not pile up in the history. Words
    # that come back inside it teach Engram nothing: no memory becomes its own evidence.
    return agent.run_sync(f"{block}\n\n{said}", message_history=history).output


if __name__ == "__main__":
    main()
