"""Pages about recorded calls."""
