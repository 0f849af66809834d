"""Analysis of policies without I/O: comparing, learning, replaying and linting them."""
