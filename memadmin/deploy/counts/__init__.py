"""Counts of the web processes: what they answered, and how they use the database connections."""
