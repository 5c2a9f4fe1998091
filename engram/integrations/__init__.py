"""Engram inside other people's frameworks."""
