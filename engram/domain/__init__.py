"""The vocabulary that all rooms share, pure: no clock, no randomness, no I/O.

``memories`` has what is stored, ``turns`` what is told, ``plan`` what consolidation will do. What
makes two values exclude each other is decided in ``slots``, when two memories are one in
``identity``, how sure one is in ``confidence``; ``rules`` has every number that decisions take.
"""
