"""``thoughtgate login`` and ``logout``: sign in to remote servers that need it."""
