"""Giving governed servers to an agent when it starts, without touching its files."""
