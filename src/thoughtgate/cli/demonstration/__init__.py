"""``thoughtgate demo``: the gate at work, as a table or as a tutorial."""
