"""Raw edits: the registry, and the agents' own rows for whoever has the permission to edit them."""

from sessions_app.admin import agents, registry

__all__ = ["agents", "registry"]
