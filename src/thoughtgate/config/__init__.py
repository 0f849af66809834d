"""Config text to frozen settings, without I/O; every complaint names its key."""
