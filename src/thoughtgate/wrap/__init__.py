"""`thoughtgate wrap`: an agent run with every server behind the gate."""
