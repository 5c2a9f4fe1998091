"""Readers of other programs' files: pure, streaming where the format lets them."""
