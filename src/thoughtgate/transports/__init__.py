"""Bytes over stdio, HTTP and TLS, on both sides of the gate. Knows framing, not MCP or policies."""
