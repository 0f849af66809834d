"""``thoughtgate install`` and ``uninstall``: put agents' servers behind the gate permanently."""
