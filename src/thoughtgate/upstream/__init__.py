"""Towards servers: HTTP and stdio clients, handshake, supervision."""
