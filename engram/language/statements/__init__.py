"""What a turn states, read by rules: clauses, predicates, objects, notes."""
