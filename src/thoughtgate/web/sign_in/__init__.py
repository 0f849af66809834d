"""How people sign in to the console, and the sessions that follow."""
