"""The terminal interface. Only ``tui`` imports it, because it needs an optional dependency."""
