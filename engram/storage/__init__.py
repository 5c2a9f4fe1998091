"""Where memories are kept: one port (``engram/ports.py``), two engines, ``edge`` and ``server``.

What both do alike, scopes included, is in ``base``; which fields can be asked for is decided in
``payload`` and ``filters``. Whoever changes a memory does so through ``updates``. What stays
forgotten is in ``ledger``, who did what in ``trail``.

Callers name a scope; that nothing leaves it is seen to in three doors which every call passes:
filters get their tenant in ``filters`` (``Translator.within``), what is written gets it in
``payload`` (``encode``), and what is read by id is looked at in ``base`` (``_fetch``).
"""
