"""Carries out the core's commands: shim, governance service, wrap, proxy, hub."""
