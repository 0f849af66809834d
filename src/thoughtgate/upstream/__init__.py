"""The server-facing side: HTTP and stdio clients, handshake and supervision."""
