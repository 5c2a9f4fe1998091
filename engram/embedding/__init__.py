"""Text to vectors, dense and sparse.

Which terms a text is found by, and what they weigh, is decided in ``bm25``; what is embedded with a
text, and under which name a store knows its embedder, in ``offline`` and ``embedder``, of which
``choice`` takes one.
"""
