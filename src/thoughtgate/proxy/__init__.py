"""`thoughtgate proxy`: one server behind the gate, transparent."""
