"""What `thoughtgate install` keeps in the state directory for its shims."""
