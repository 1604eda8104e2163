"""The audit log: who saw and who changed what, written in the same transaction as the change itself.

Upper rooms use the names of this module; `models` holds the tables, and `types` the register of event types.
"""

from memadmin.audit.actors import NOBODY, Actor, acting, current_actor, name_for_triggers, person
from memadmin.audit.governing import govern
from memadmin.audit.reasons import UNSAID, EditReason, Why
from memadmin.audit.recording import (
    NotInTransaction,
    Recording,
    Unavailable,
    before_showing,
    record,
    record_alone,
    recording,
)
from memadmin.audit.types import EventType, Undeclared, declare

__all__ = [
    "NOBODY",
    "UNSAID",
    "Actor",
    "EditReason",
    "EventType",
    "NotInTransaction",
    "Recording",
    "Unavailable",
    "Undeclared",
    "Why",
    "acting",
    "before_showing",
    "current_actor",
    "declare",
    "govern",
    "name_for_triggers",
    "person",
    "record",
    "record_alone",
    "recording",
]
