"""Inspection of what servers send, as part of a session."""
