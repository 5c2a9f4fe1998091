"""From what was said to what is known: store turns, reconcile, apply plans."""
