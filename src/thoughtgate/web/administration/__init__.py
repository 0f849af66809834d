"""Pages about what the gates run: servers, people and grants, gates, settings."""
