"""Where agents keep sessions: one file per kind, one protocol (`base`)."""

from sessions_app.stores.kinds import backend_for

__all__ = ["backend_for"]
