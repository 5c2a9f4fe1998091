"""Bringing memory in from files of other programs, and taking all of it out again.

What a file is, is decided in ``source`` and ``readers``; what of it becomes turns, in ``accept``;
what is refused where it is stored, in ``gate``. ``store`` stores, ``export`` writes and reads back.
"""
