"""Where agents keep sessions: one protocol (`base`), a folder per kind."""

from sessions_app.stores.kinds import backend_for

__all__ = ["backend_for"]
