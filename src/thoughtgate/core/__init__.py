"""Pure: sessions, the gate chain, approval and task lifecycles, audit records."""
