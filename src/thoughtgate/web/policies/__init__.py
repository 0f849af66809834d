"""Pages about the policy in force, and for trying candidate policies."""
