"""`thoughtgate serve`: many servers as one MCP server."""
