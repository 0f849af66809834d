"""The wire format without I/O: JSON-RPC, line and SSE framing, headers, methods, revisions."""
