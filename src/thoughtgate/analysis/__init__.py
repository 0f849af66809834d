"""Pure: what policies would decide: compare, learn, replay, lint."""
