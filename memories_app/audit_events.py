"""What the log tells about memories: who proposed, decided and changed them, and who read them."""

from __future__ import annotations

from django.db.models import TextChoices

from memadmin.accounts.purposes import Purpose
from memadmin.audit import declare

MEMORY = "memories_app.memory"
SUBJECT = "sessions_app.subject"
RULE = "memories_app.approvalrule"
RECALL = "memories_app.recall"
SESSION = "sessions_app.sessionrecord"


class RejectReason(TextChoices):
    WRONG = "wrong", "it is wrong, or was misunderstood"
    NOT_LASTING = "not_lasting", "it was true for that conversation only"
    NOT_NEEDED = "not_needed", "agents do not need it"
    SENSITIVE = "sensitive", "it is too personal to be kept"
    INSTRUCTION = "instruction", "it tells agents what to do, and nobody who may said so"
    DUPLICATE = "duplicate", "it is known already"
    UNCLEAR = "unclear", "nobody can tell what it means"


class RetireReason(TextChoices):
    WRONG = "wrong", "it is wrong, or not true any more"
    POISONED = "poisoned", "it came from somewhere that cannot be trusted"
    HARMFUL = "harmful", "agents did the wrong thing because of it"
    SUBJECT_REQUEST = "subject_request", "the person asked for it"
    NOT_NEEDED = "not_needed", "agents do not need it"


class EraseReason(TextChoices):
    PERSONAL = "personal", "it says more about the person than anybody needs"
    SECRET = "secret", "a secret is in it"
    SUBJECT_REQUEST = "subject_request", "the person asked for it"
    WRONG = "wrong", "it was wrong, and must not be read on"


class ExpiryReason(TextChoices):
    OVER = "over", "it was to be valid until then"
    UNUSED = "unused", "uncertain, approved by a rule alone, and no run was ever told of it"


MEMORIES_LISTED = declare("memory.listed", "Somebody saw a list of memories.", counters=("memories",))
MEMORY_VIEWED = declare(
    "memory.viewed",
    "Somebody opened a memory, with what it came from.",
    object=MEMORY,
    counters=("evidence",),
    reasons=Purpose.values,
)
RECALL_PREVIEWED = declare(
    "recall.previewed", "Somebody looked at what an agent would be told.", counters=("memories",)
)
RECALL_VIEWED = declare(
    "recall.viewed", "Somebody looked at what an agent was told in a run.", object=RECALL, counters=("memories",)
)
MEMORY_PROPOSED = declare("memory.proposed", "Somebody proposed a memory.", object=MEMORY)
MEMORY_EDITED = declare("memory.edited", "A reviewer changed the text of a proposal.", object=MEMORY)
MEMORY_APPROVED = declare(
    "memory.approved",
    "Somebody approved the text of a proposal; agents recall it once all who must have approved it.",
    object=MEMORY,
    counters=("edited", "waits_for_second"),
)
MEMORY_REJECTED = declare(
    "memory.rejected", "A reviewer rejected a proposal.", object=MEMORY, reasons=RejectReason.values
)
MEMORY_MERGED = declare("memory.merged", "A reviewer merged a proposal into a memory.", object=MEMORY)
MEMORY_SNOOZED = declare(
    "memory.snoozed",
    "A reviewer put a decision off, or ended that.",
    object=MEMORY,
    counters=("ended",),
)
BASE_ACCEPTED = declare(
    "memory.base_accepted",
    "A reviewer held a proposal against the memory as it is now, which had changed.",
    object=MEMORY,
)
RULE_SAVED = declare(
    "approval_rule.saved", "Somebody made or changed a rule that approves by itself.", object=RULE, counters=("active",)
)
SAMPLE_JUDGED = declare(
    "memory.sample_judged",
    "Somebody looked at what a rule had approved, and agreed or sent it back to the queue.",
    object=MEMORY,
    counters=("agreed",),
)
DECISION_UNDONE = declare("memory.decision_undone", "A reviewer undid a decision of the last minute.", object=MEMORY)
MEMORY_RETIRED = declare(
    "memory.retired", "Somebody stopped agents from recalling a memory.", object=MEMORY, reasons=RetireReason.values
)
TOOL_RETIRED = declare(
    "memory.tool_retired",
    "Somebody began to stop agents from recalling all that a tool may be behind; each memory is an event of its own.",
    counters=("memories",),
    reasons=RetireReason.values,
)
REVALIDATION_ASKED = declare("memory.revalidation_asked", "A memory went back to the review queue.", object=MEMORY)
MEMORIES_IMPORTED = declare(
    "memory.imported",
    "Somebody had memories of another system proposed; each proposal is an event of its own.",
    counters=("proposed", "known", "refused"),
)
MEMORIES_EXPORTED = declare(
    "memory.exported", "Somebody wrote memories of a subject, or of all, to a file.", counters=("memories",)
)
SESSION_DISTILLED = declare(
    "session.distilled",
    "A distiller read a session for what agents could remember; the reason says how that ended, the counters what came"
    " of it and what it cost.",
    object=SESSION,
    counters=("proposed", "known", "left_out", "model_calls", "input_tokens", "output_tokens"),
    reasons=("done", "nonsense", "timed_out", "failed", "refused"),
)
FEEDBACK_GIVEN = declare(
    "feedback.given",
    "Somebody said whether an item of a session was right, or wrote a note about it for those who learn from it.",
    object=SESSION,
    counters=("up", "down", "with_note"),
)
LEARNING_STOPPED = declare(
    "learning.stopped", "Somebody said that nothing is to be learned from a subject.", object=SUBJECT
)
LEARNING_ALLOWED = declare("learning.allowed", "Somebody allowed learning from a subject again.", object=SUBJECT)
VERSION_ERASED = declare(
    "memory.version_erased",
    "Somebody erased the text of an older version of a memory; which one is the counter.",
    object=MEMORY,
    counters=("version",),
    reasons=EraseReason.values,
)
MEMORY_REDACTED = declare(
    "memory.redacted",
    "What was redacted in sessions went from a memory, too: from its quotes, versions, notes, and its own words.",
    object=MEMORY,
    counters=("quotes", "versions", "notes", "changed"),
)
SIGNALS_REDACTED = declare(
    "signal.redacted", "What was redacted in sessions went from signals, too.", counters=("signals",)
)
MEMORY_EXPIRED = declare(
    "memory.expired",
    "An approved memory came to its end; agents do not recall it any more.",
    object=MEMORY,
    reasons=ExpiryReason.values,
)
PROPOSAL_LAPSED = declare(
    "memory.lapsed",
    "A proposal that nobody decided about was over; agents never recalled it.",
    object=MEMORY,
    counters=("days",),
)
PROPOSAL_REOPENED = declare(
    "memory.reopened", "Somebody put a proposal back into the queue that was over.", object=MEMORY
)
DIGEST_SENT = declare(
    "digest.sent",
    "Reviewers were told how many proposals wait; the reason says by which way.",
    counters=("addresses", "waiting", "late", "expiring"),
    reasons=("mail", "webhook"),
)
MEMORY_MARKED = declare(
    "memory.marked",
    "A proposal was marked, or no more, as saying what another memory says or the opposite of one: 1 for each way.",
    object=MEMORY,
    counters=("duplicate", "near_duplicate", "contradiction"),
)
