"""Bringing memory in from files of other programs, and taking all of it out again."""
