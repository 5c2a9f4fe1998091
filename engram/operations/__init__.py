"""What a memory store can do beyond reading and writing turns, one operation each.

An operation is named once, with the types of its question and its answer.
Handlers answer it in process; the HTTP application offers it, and an attached
process asks for it, from the same description.
"""
