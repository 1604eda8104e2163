"""The audit log: reads and changes with their actors, written in the same transaction as the change itself.

Upper packages use the names of this module; `models` contains the tables, `log.types` the register of event types.
"""

from memadmin.audit.log.actors import NOT_SIGNED_IN, Actor, acting, current_actor, person, settings_for_triggers
from memadmin.audit.log.reasons import UNSAID, EditReason, Why
from memadmin.audit.log.recording import (
    AuditUnavailable,
    Columns,
    NotInTransaction,
    Recording,
    before_showing,
    prove,
    record,
    record_alone,
    record_each,
    recording,
)
from memadmin.audit.log.row_triggers import govern
from memadmin.audit.log.triggers import by_proven
from memadmin.audit.log.types import EventType, Undeclared, declare

__all__ = [
    "NOT_SIGNED_IN",
    "UNSAID",
    "Actor",
    "AuditUnavailable",
    "Columns",
    "EditReason",
    "EventType",
    "NotInTransaction",
    "Recording",
    "Undeclared",
    "Why",
    "acting",
    "before_showing",
    "by_proven",
    "current_actor",
    "declare",
    "govern",
    "person",
    "prove",
    "record",
    "record_alone",
    "record_each",
    "recording",
    "settings_for_triggers",
]
