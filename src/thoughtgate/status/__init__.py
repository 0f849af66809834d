"""What runs and what happened, read for people."""
