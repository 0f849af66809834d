"""Evaluation of policies without I/O: visibility, rules, Cedar, limits and redaction."""
