"""Everything that reads English without a language model: rules and word lists."""
