"""The demo: a conversation over eight months, remembered before your eyes."""
