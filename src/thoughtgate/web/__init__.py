"""The console and the admin API."""
