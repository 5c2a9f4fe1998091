"""How good recall is, measured on conversations and questions whose evidence is known."""
