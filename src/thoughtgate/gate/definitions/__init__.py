"""Definitions at the gate: compared with the pins, inspected, asked about and recorded."""
