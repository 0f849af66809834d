"""The record on disk: written, followed, verified, queried, exported."""
