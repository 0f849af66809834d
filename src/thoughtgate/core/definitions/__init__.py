"""What servers say about their tools: pinned, compared and weighed."""
