"""The agent-facing side: the HTTP listener, authentication, sessions, posts and batches."""
