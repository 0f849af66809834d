"""The file formats of agents' configs, each edited in place."""
