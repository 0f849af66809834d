"""``thoughtgate shim``: one stdio server behind the gate.

Agents start one shim per server, so its memory and its time to start decide what is imported.
"""
