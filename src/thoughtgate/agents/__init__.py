"""Finding, rewriting and restoring agents' own config files."""
