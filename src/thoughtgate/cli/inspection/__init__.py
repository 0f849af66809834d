"""``thoughtgate inspect``, and the search for secrets in pasted server entries."""
