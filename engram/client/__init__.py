"""What applications hold."""
