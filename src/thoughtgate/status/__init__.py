"""Status of the running gates and the recorded calls, for the CLI, the console and the TUI."""
