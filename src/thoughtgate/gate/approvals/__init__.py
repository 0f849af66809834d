"""Approvals: the queue of held calls, the channels, the prompts."""
