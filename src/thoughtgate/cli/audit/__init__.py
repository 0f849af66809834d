"""``thoughtgate audit``: one file per subcommand."""
