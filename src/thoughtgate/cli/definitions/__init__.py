"""``thoughtgate tools`` and ``thoughtgate scan``: definitions of tools, and changes to them."""
