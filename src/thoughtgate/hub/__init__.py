"""The hub behind `thoughtgate serve`: many servers offered as one MCP server."""
