"""``thoughtgate completion``: completing commands and options in people's shells."""
