"""How good recall is: figures over questions whose evidence is known."""
