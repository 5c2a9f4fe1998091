"""Finding the memories that answer. ``pipeline`` has all stages in the order in which they run.

Which memories count at all is decided in ``request``, which are looked at in ``search``, how they
rank in ``score``, what is denied in ``denials``, and what else becomes of the ranking in
``stages``.
"""
