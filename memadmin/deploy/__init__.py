"""Putting memadmin into operation: the database's roles, and what an operator forgot."""
