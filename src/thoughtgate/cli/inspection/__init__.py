"""``thoughtgate inspect``: what the content checks say."""
