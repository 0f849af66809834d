"""The record on disk: writing, following, verifying, querying and exporting it."""
