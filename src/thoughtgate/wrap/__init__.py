"""``thoughtgate wrap``: runs an agent with all its MCP servers behind the gate.

``install`` and ``uninstall``, which do the same permanently, are here too.
"""
