"""Pages on which people read and decide approval requests."""
