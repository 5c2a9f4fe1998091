"""What crosses Temporal: names, inputs and outputs. Compatibility data."""
