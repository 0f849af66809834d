"""Where a person is asked: console, terminal, Slack, webhook, the agent itself."""
