"""Django's own admin with its defaults over the agents' tables: what a team has without the console."""
