"""Audit events of memories: proposals, decisions, changes and reads."""

from __future__ import annotations

from django.db.models import TextChoices

from memadmin.accounts.purposes import Purpose
from memadmin.audit import declare
from memadmin.audit.log.groups import EventGroup, assign

assign(
    EventGroup.MEMORIES,
    "memory",
    "memory_version",
    "evidence",
    "review",
    "signal",
    "recall",
    "recalled_memory",
    "approval_rule",
    "learning",
    "learning_stop",
    "feedback",
    "digest",
)

MEMORY = "memories_app.memory"
SUBJECT = "sessions_app.subject"
RULE = "memories_app.approvalrule"
RECALL = "memories_app.recall"
SESSION = "sessions_app.sessionrecord"


class RejectReason(TextChoices):
    WRONG = "wrong", "wrong or misunderstood"
    NOT_LASTING = "not_lasting", "true for that conversation only"
    NOT_NEEDED = "not_needed", "not needed by agents"
    SENSITIVE = "sensitive", "too personal to keep"
    INSTRUCTION = "instruction", "unauthorised instruction to agents"
    DUPLICATE = "duplicate", "duplicate of another memory"
    UNCLEAR = "unclear", "unclear meaning"


class RetireReason(TextChoices):
    WRONG = "wrong", "wrong or no longer true"
    POISONED = "poisoned", "untrusted source"
    HARMFUL = "harmful", "caused wrong agent behaviour"
    SUBJECT_REQUEST = "subject_request", "request of the person"
    NOT_NEEDED = "not_needed", "not needed by agents"


class EraseReason(TextChoices):
    PERSONAL = "personal", "more personal data than needed"
    SECRET = "secret", "contains a secret"
    SUBJECT_REQUEST = "subject_request", "request of the person"
    WRONG = "wrong", "wrong and must not be read any more"


class ExpiryReason(TextChoices):
    OVER = "over", "end of its validity"
    UNUSED = "unused", "low confidence, approved only by a rule, never used in a run"


MEMORIES_LISTED = declare(
    "memory.listed",
    "A person viewed a list of memories.",
    sentence="{actor} viewed a list of {memories}",
    counters=("memories",),
)
MEMORY_TABLE_EXPORTED = declare(
    "memory.table_exported",
    "A person downloaded a list of memories as a table; the filter is in the details, and `statements` is 1 if the"
    " table contains the texts.",
    sentence="{actor} downloaded a list of {memories}[ about {subject}]",
    counters=("memories", "statements"),
    reasons=Purpose,
)
MEMORY_VIEWED = declare(
    "memory.viewed",
    "A person viewed a memory with its evidence.",
    sentence="{actor} read {object}",
    object=MEMORY,
    counters=("evidence",),
    reasons=Purpose,
)
EVIDENCE_READ = declare(
    "evidence.read",
    "A person viewed messages of a session around evidence of a memory.",
    sentence="{actor} read messages of {object} around evidence of a memory",
    object=SESSION,
    counters=("messages",),
    reasons=Purpose,
)
RECALL_PREVIEWED = declare(
    "recall.previewed",
    "A person previewed the memories an agent would recall.",
    sentence="{actor} previewed a recall[ for {subject}][ with {memories}]",
    counters=("memories",),
)
RECALL_VIEWED = declare(
    "recall.viewed",
    "A person viewed the memories an agent used in a run.",
    sentence="{actor} viewed {object}[ with {memories}]",
    object=RECALL,
    counters=("memories",),
)
MEMORY_PROPOSED = declare(
    "memory.proposed", "A memory was proposed.", sentence="{actor} proposed {object}", object=MEMORY
)
MEMORY_EDITED = declare(
    "memory.edited",
    "A reviewer changed the text of a proposal.",
    sentence="{actor} edited the proposal {object}",
    object=MEMORY,
)
MEMORY_APPROVED = declare(
    "memory.approved",
    "A proposal was approved by a person, the second of two where it takes two, or by a rule; agents recall it.",
    sentence="{actor} approved {object}",
    object=MEMORY,
    counters=("edited",),
)
MEMORY_REJECTED = declare(
    "memory.rejected",
    "A reviewer rejected a proposal.",
    sentence="{actor} rejected {object}",
    object=MEMORY,
    reasons=RejectReason,
)
MEMORY_MERGED = declare(
    "memory.merged",
    "A reviewer merged a proposal into a memory.",
    sentence="{actor} merged {object} into another memory",
    object=MEMORY,
)
MEMORY_SNOOZED = declare(
    "memory.snoozed",
    "A reviewer snoozed a proposal, or ended the snooze.",
    sentence="{actor} snoozed {object}, or ended its snooze",
    object=MEMORY,
    counters=("ended",),
)
BASE_ACCEPTED = declare(
    "memory.base_accepted",
    "A reviewer compared a proposal with the current version of the memory, which had changed since.",
    sentence="{actor} compared {object} with the current version of the memory",
    object=MEMORY,
)
RULE_SAVED = declare(
    "approval_rule.saved",
    "A person created or changed an automatic approval rule.",
    sentence="{actor} saved the approval {object}",
    object=RULE,
    counters=("active",),
)
SAMPLE_JUDGED = declare(
    "memory.sample_judged",
    "A person checked a memory approved by a rule, and agreed or returned it to the queue.",
    sentence="{actor} checked {object}, which a rule had approved",
    object=MEMORY,
    counters=("agreed",),
)
DECISION_UNDONE = declare(
    "memory.decision_undone",
    "A reviewer undid a decision of the last minute.",
    sentence="{actor} undid a decision on {object}",
    object=MEMORY,
)
MEMORY_RETIRED = declare(
    "memory.retired",
    "A person retired a memory: agents no longer recall it.",
    sentence="{actor} retired {object}",
    object=MEMORY,
    reasons=RetireReason,
)
TOOL_RETIRED = declare(
    "memory.tool_retired",
    "A person began to retire all memories that may come from a tool; each memory has its own event.",
    sentence="{actor} began to retire {memories} from a tool",
    counters=("memories",),
    reasons=RetireReason,
)
REVALIDATION_ASKED = declare(
    "memory.revalidation_asked",
    "A memory was returned to the review queue.",
    sentence="{actor} returned {object} to the review queue",
    object=MEMORY,
)
MEMORIES_IMPORTED = declare(
    "memory.imported",
    "A person imported memories from another system as proposals; each proposal has its own event.",
    sentence="{actor} imported memories[: {proposed}]",
    counters=("proposed", "known", "refused"),
)
MEMORIES_EXPORTED = declare(
    "memory.exported",
    "A person exported the memories of a subject, or all memories, to a file.",
    sentence="{actor} exported {memories}[ of {subject}]",
    counters=("memories",),
)
SESSION_DISTILLED = declare(
    "session.distilled",
    "A distiller read a session to propose memories; the reason code is the outcome, the counters are proposals "
    "and cost.",
    sentence="{actor} read {object} to propose memories",
    object=SESSION,
    counters=("proposed", "known", "left_out", "model_calls", "input_tokens", "output_tokens"),
    reasons=("done", "nonsense", "timed_out", "failed", "refused"),
)
FEEDBACK_GIVEN = declare(
    "feedback.given",
    "A person rated an item of a session as right or wrong, or wrote a note about it.",
    sentence="{actor} gave feedback on an item of {object}",
    object=SESSION,
    counters=("up", "down", "with_note", "replaced"),
)
FEEDBACK_WITHDRAWN = declare(
    "feedback.withdrawn",
    "A person withdrew their feedback on an item.",
    sentence="{actor} withdrew feedback on an item of {object}",
    object=SESSION,
)
LEARNING_STOPPED = declare(
    "learning.stopped",
    "A person stopped learning about a subject.",
    sentence="{actor} stopped learning about {object}",
    object=SUBJECT,
)
LEARNING_ALLOWED = declare(
    "learning.allowed",
    "A person allowed learning about a subject again.",
    sentence="{actor} allowed learning about {object}",
    object=SUBJECT,
)
VERSION_ERASED = declare(
    "memory.version_erased",
    "A person erased the text of an older version of a memory; the counter is the version number.",
    sentence="{actor} erased the text of an older version of {object}",
    object=MEMORY,
    counters=("version",),
    reasons=EraseReason,
)
MEMORY_REDACTED = declare(
    "memory.redacted",
    "A text redacted in sessions was also removed from a memory: its quotes, versions, notes or statement.",
    sentence="{actor} redacted {object}",
    object=MEMORY,
    counters=("quotes", "versions", "notes", "changed"),
)
SIGNALS_REDACTED = declare(
    "signal.redacted",
    "A text redacted in sessions was also removed from signals.",
    sentence="{actor} redacted {signals}",
    counters=("signals",),
)
MEMORY_EXPIRED = declare(
    "memory.expired",
    "An approved memory expired; agents no longer recall it.",
    sentence="{object} expired",
    object=MEMORY,
    reasons=ExpiryReason,
)
PROPOSAL_LAPSED = declare(
    "memory.lapsed",
    "A proposal expired without a decision; agents never recalled it.",
    sentence="{object} expired without a decision",
    object=MEMORY,
    counters=("days",),
)
PROPOSAL_REOPENED = declare(
    "memory.reopened",
    "A person returned an expired proposal to the queue.",
    sentence="{actor} returned the expired proposal {object} to the queue",
    object=MEMORY,
)
DIGEST_SENT = declare(
    "digest.sent",
    "The daily digest of waiting proposals was sent to reviewers; the reason code is the channel.",
    sentence="The daily digest of proposals was sent to {addresses}",
    counters=("addresses", "waiting", "late", "expiring"),
    reasons=("mail", "webhook"),
)
MEMORY_MARKED = declare(
    "memory.marked",
    "The duplicate or contradiction marks of a proposal changed; a counter of 1 stands for each mark.",
    sentence="{actor} marked {object}",
    object=MEMORY,
    counters=("duplicate", "near_duplicate", "contradiction"),
)
