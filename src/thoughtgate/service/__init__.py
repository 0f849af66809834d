"""The governance service: what the shims of one `wrap` ask."""
