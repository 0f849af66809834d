"""`thoughtgate shim`: one stdio server behind the gate."""
