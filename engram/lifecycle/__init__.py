"""How memories fade, harden and leave: pure decisions, and the passes that apply them.

What can happen to a memory is the table in ``table``, run by ``decisions``; when it happens follows
in ``windows`` and is stamped by ``due``. How fast memories fade is decided in ``policies``, what
becomes a habit in ``promotion``. ``review`` and ``promotion_pass`` apply it.
"""
