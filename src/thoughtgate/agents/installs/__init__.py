"""Config files of agents whose servers are behind the gate for good."""
