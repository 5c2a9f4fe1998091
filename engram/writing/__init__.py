"""Storing turns and applying plans: insert-only, conditional, repeatable."""
