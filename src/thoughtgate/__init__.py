"""ThoughtGate: the gate between AI agents and the MCP tools they use."""

__version__ = "0.1.0"
