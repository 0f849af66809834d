"""Pages about the policy in force and about candidates for it."""
