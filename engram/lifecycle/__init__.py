"""How memories fade, harden and leave: pure decisions, and the passes that apply them."""
