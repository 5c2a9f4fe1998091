"""What crosses Temporal: names, inputs and outputs. Compatibility data.

Histories hold it: fields are only added, with defaults, and nothing is ever renamed (``names``).
``activities`` says which activity takes and gives what; ``published`` is what others may start.
"""
