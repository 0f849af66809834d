"""The command line in people's shells."""
