"""Pure: JSON-RPC, line and SSE framing, mirrored headers, methods, revisions, canonical JSON."""
