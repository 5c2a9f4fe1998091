"""Finding the memories that answer. ``pipeline`` has all stages in the order in which they run.

Which memories count at all is decided in ``request``, which are looked at in ``search``, how they
rank in ``score``, and what becomes of the ranking after that in ``stages``.
"""
