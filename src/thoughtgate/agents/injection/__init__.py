"""Giving governed servers to an agent at its start, without touching its files."""
