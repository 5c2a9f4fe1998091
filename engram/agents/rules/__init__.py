"""A model made of language rules: answers the agents' requests offline, the same way every time."""
