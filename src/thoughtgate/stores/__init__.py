"""What outlives a process: the record, approvals, tasks, limits, pins, the ledger."""
