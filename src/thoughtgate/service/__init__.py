"""The governance service, which judges the calls of all shims of one ``wrap``."""
