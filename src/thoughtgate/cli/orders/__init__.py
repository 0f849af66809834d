"""The commands that stop and resume gates, and show and clear facts."""
