"""Approval channels: console, terminal, Slack, webhook and the agent's own prompt."""
