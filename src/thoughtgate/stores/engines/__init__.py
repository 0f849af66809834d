"""The engines of the stores: SQLite for one machine, PostgreSQL for several, and their schema."""
