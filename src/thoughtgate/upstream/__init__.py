"""The server-facing side: MCP over HTTP and stdio, handshake, supervision and logins.

Calls were judged before they get here; nothing here knows rules.
"""
