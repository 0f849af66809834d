"""Finding, rewriting and restoring agents' own config files.

Knows the agents and their files, and nothing about policies, calls or the gate's own processes.
"""
