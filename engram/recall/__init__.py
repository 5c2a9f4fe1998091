"""Finding the memories that answer."""
