"""Deployment: the database's roles, and checks for errors and risks."""
