"""The suite, run against the wheel."""
