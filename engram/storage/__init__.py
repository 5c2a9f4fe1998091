"""Where memories are kept: one port (``engram/ports.py``), two engines, ``edge`` and ``server``.

What both do alike, scopes included, is in ``base``; which fields can be asked for is decided in
``payload`` and ``filters``. Whoever changes a memory does so through ``updates``. What stays
forgotten is in ``ledger``, who did what in ``trail``.
"""
