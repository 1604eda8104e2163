"""Raw edits: admin pages of the registry and, with the permission for it, of the agents' own rows."""

from sessions_app.admin import agents, registry

__all__ = ["agents", "registry"]
