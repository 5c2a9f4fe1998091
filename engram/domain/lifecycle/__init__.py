"""How memories fade, harden and leave: pure decisions over stored facts.

Nothing is imported here: memories themselves are made of :mod:`.states`.
"""
