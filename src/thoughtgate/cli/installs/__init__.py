"""The commands that put agents' servers behind the gate for good, and what others say about that."""
