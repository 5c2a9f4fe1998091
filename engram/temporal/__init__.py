"""Everything that talks to Temporal from outside a workflow.

Turns, sessions and consolidations are reached through ``gateway``, passes through ``passes``, with
``schedules`` for those of everybody. How long a caller waits, and which error it gets, is decided
in ``retry``; what of a payload can be read, and by whom, in ``encryption`` and ``keys``.
"""
