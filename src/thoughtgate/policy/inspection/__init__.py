"""Inspection of what servers say and what calls carry: definitions, arguments and results.

Pure and deterministic: the same value always has the same findings. Imported only where it is
needed, because the automaton and its word lists cost a few megabytes.
"""
