"""Config files of agents whose servers are permanently behind the gate, by ``thoughtgate install``."""
