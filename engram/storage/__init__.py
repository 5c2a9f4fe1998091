"""Where memories are kept: one port, two engines."""
