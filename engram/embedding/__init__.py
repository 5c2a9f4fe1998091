"""Text to vectors, dense and sparse."""
