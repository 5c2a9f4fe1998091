"""The methods of a memory store, by what they are about."""
