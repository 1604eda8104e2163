"""Groups of event types, for the filter and the chart of the log. Each type is in one group."""

from __future__ import annotations

from django.db.models import TextChoices

from memadmin.audit.log import event_names


class EventGroup(TextChoices):
    READING = "reading", "reading"
    SESSIONS = "sessions", "sessions and subjects"
    MEMORIES = "memories", "memories"
    ERASURE = "erasure", "requests and erasure"
    RETENTION = "retention", "retention and holds"
    SIGN_IN = "sign_in", "sign-in"
    RIGHTS = "rights", "roles and access"
    STORES = "stores", "stores"
    LOG = "log", "audit log"
    SETTINGS = "settings", "settings and runs"


_groups: dict[str, EventGroup] = {}


def assign(group: EventGroup, *names: str) -> None:
    """Puts event types into a group: all of a noun, or a single one by its whole name, which counts more.

    Reads of content are in the group of reads, whatever their noun; reads of the log stay with the log.
    """
    _groups.update(dict.fromkeys(names, group))


def is_assigned(event_type: str) -> bool:
    return event_type in _groups or event_names.noun_of(event_type) in _groups


def group_of(event_type: str) -> EventGroup:
    """The group of a type; of one that nothing assigned, also one that is no longer declared, the settings."""
    group = _groups.get(event_type) or _groups.get(event_names.noun_of(event_type), EventGroup.SETTINGS)
    return EventGroup.READING if event_names.is_read(event_type) and group != EventGroup.LOG else group
