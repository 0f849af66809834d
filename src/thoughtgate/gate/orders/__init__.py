"""What an operator orders while gates run."""
