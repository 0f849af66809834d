"""Pure: text in, frozen settings out. Every complaint names its key."""
