"""Deterministic language rules: signals, pattern facts, negations."""
