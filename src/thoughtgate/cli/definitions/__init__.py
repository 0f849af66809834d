"""``thoughtgate tools`` and ``thoughtgate scan``: what servers say about their tools."""
