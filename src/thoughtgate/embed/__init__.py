"""ThoughtGate inside another Python program: what ``import thoughtgate`` offers."""
