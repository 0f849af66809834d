"""Shipped fakes: playbook, memory transport, fake clock, sample servers."""
