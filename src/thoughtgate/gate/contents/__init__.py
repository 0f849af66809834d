"""Inspection of what servers send to agents."""
