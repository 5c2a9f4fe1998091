"""How memories fade, harden and leave: pure decisions over stored facts (rows D1 to D14).

Nothing is imported here: memories themselves are made of :mod:`.states`.
"""
