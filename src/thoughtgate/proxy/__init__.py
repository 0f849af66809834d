"""`thoughtgate proxy`: puts one server transparently behind the gate."""
