"""Bytes to messages and back: stdio and Streamable HTTP, on both sides of the gate."""
