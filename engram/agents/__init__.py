"""Pydantic AI agents: their requests, output types and instructions, and the models they ask.

What of a model's answer is believed is decided in ``extraction`` (:func:`read`) and ``linking``;
which failure of a provider means what, in ``models``. ``asking`` tells who answers; ``rules`` ask
nobody.
"""
