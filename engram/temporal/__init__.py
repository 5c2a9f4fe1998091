"""Everything that talks to Temporal from outside a workflow."""
