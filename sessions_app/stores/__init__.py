"""Stores of agents' sessions: one protocol (`base`), and a folder for each kind."""

from sessions_app.stores.kinds import backend_for

__all__ = ["backend_for"]
