"""Towards agents: the HTTP listener, authentication, sessions, posts, batches."""
