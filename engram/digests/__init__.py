"""What is composed from memories without a model: profiles, topics, boxes, guidelines."""
