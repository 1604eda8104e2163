"""Client for agents' own processes. Imports no Django, and nothing of memadmin above it."""
