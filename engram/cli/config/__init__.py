"""What can be set, what is set, and where that comes from."""
