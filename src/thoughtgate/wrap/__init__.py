"""`thoughtgate wrap`: runs an agent with all its MCP servers behind the gate."""
