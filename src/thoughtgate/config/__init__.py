"""Reads a config text into frozen settings, without I/O; every problem names its key."""
