"""``thoughtgate policy``: one file per subcommand."""
