"""How well recall finds the turns that answer, over conversations in LoCoMo's format.

``uv run python -m tests.benchmarks.locomo FILE`` encodes every turn with its
speaker and the date of its session, recalls every question, and prints how much of
the evidence came back and where. The conversations themselves are no part of this
project. A shared picture becomes part of its turn's words, as an application that
shows pictures would hand it over: ``I did it! [shares a photo: a cat on a wall]``.
"""
