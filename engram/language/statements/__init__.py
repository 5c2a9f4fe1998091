"""What a turn states, read by rules.

``clauses`` decides in what the speaker states something at all. What is said of the speaker is read
by ``reading`` (with ``patterns``, ``objects``, ``predicates``), of anybody and anything by
``declared`` and ``changes``, what takes back or keeps what was said before by ``corrections`` and
``promises``.
"""
