"""Who may do what at which address: every URL of the console, by role and method. A new URL gets a line here.

`reads` says who may GET it, `sends` who may POST to it; NOBODY where the method exists for other people, None where the
address does not take it (405). OPEN stands for everybody, signed in or not.
"""

from __future__ import annotations

from dataclasses import dataclass

SUPPORT, REVIEWER, COMPLIANCE, AUDITOR, ADMINISTRATOR = ROLES = (
    "support",
    "reviewer",
    "compliance",
    "auditor",
    "administrator",
)
OUTSIDER = "outsider"
"""Signed in, without a role."""
RAW_EDITOR = "raw editor"
"""Support, with the permission that no role contains."""
SUPERUSER = "superuser"
STRANGER = "stranger"
"""Not signed in."""

EVERYBODY = frozenset({*ROLES, OUTSIDER, RAW_EDITOR, SUPERUSER})
OPEN = EVERYBODY | {STRANGER}
NOBODY: frozenset[str] = frozenset()


def only(*roles: str) -> frozenset[str]:
    """These; the raw editor wherever support may, and a superuser everywhere."""
    return frozenset({*roles, SUPERUSER, *((RAW_EDITOR,) if SUPPORT in roles else ())})


READERS = only(SUPPORT, REVIEWER, COMPLIANCE)
REVIEWERS = only(REVIEWER, COMPLIANCE)
KEEPERS = only(SUPPORT, COMPLIANCE)
SUBJECT_VIEWERS = only(SUPPORT, REVIEWER, COMPLIANCE, ADMINISTRATOR)
STORE_VIEWERS = only(SUPPORT, COMPLIANCE, ADMINISTRATOR)
RUN_VIEWERS = only(COMPLIANCE, ADMINISTRATOR)
ADMINISTRATORS = only(ADMINISTRATOR)
PEOPLE_VIEWERS = only(AUDITOR, ADMINISTRATOR)
LOG_READERS = only(COMPLIANCE, AUDITOR)
DECIDERS = only(COMPLIANCE)
SUPERUSERS = only()
RAW_EDITORS = only() | {RAW_EDITOR}
DOOR = only(ADMINISTRATOR) | {RAW_EDITOR}
"""Whom Django admin lets in at all."""


@dataclass(frozen=True, slots=True)
class Rule:
    reads: frozenset[str] | None = None
    sends: frozenset[str] | None = None


def page(reads: frozenset[str]) -> Rule:
    return Rule(reads=reads)


def verb(sends: frozenset[str]) -> Rule:
    return Rule(sends=sends)


def form(both: frozenset[str]) -> Rule:
    return Rule(reads=both, sends=both)


def admin_of(
    model: str,
    *,
    shows: frozenset[str],
    changes: frozenset[str] = NOBODY,
    adds: frozenset[str] = NOBODY,
    deletes: frozenset[str] = NOBODY,
    history_takes_post: bool = True,
) -> dict[str, Rule]:
    """The five pages of Django admin about a model; a change form is shown read-only to whoever may only look."""
    return {
        f"admin:{model}_changelist": form(shows),
        f"admin:{model}_change": Rule(reads=shows, sends=changes),
        f"admin:{model}_add": form(adds),
        f"admin:{model}_delete": form(deletes),
        f"admin:{model}_history": form(shows) if history_takes_post else page(shows),
    }


MATRIX: dict[str, Rule] = {
    "metrics": page(OPEN),
    "policy-report": verb(OPEN),
    "palette": verb(EVERYBODY),
    # Help
    "help:tour": page(EVERYBODY),
    "help:overview": page(EVERYBODY),
    "help:area": page(EVERYBODY),
    # Accounts
    "accounts:login": form(OPEN),
    "accounts:logout": verb(OPEN),
    "mfa_authenticate": form(OPEN),
    "mfa_login_webauthn": form(OPEN),
    "openid_connect_login": page(OPEN),
    "openid_connect_callback": page(OPEN),
    "accounts:account": page(EVERYBODY),
    "accounts:session-end": verb(EVERYBODY),
    "accounts:sessions-end-others": verb(EVERYBODY),
    "accounts:times": verb(EVERYBODY),
    "accounts:confirm": form(EVERYBODY),
    "accounts:purpose": form(EVERYBODY),
    "accounts:second-factor": form(EVERYBODY),
    "accounts:second-factor-remove": verb(EVERYBODY),
    "account_change_password": form(EVERYBODY),
    "mfa_activate_totp": form(EVERYBODY),
    "mfa_add_webauthn": form(EVERYBODY),
    "mfa_view_recovery_codes": page(EVERYBODY),
    "mfa_generate_recovery_codes": verb(EVERYBODY),
    "accounts:invitation": form(OPEN),
    # People
    "people:list": form(PEOPLE_VIEWERS),
    "people:person": page(PEOPLE_VIEWERS),
    **{f"people:{name}": form(ADMINISTRATORS) for name in ("new", "off", "on", "second-factor", "link")},
    **{f"people:{name}": verb(ADMINISTRATORS) for name in ("roles", "sign-out", "session-end")},
    # System
    "system:system": page(ADMINISTRATORS),
    "system:check": verb(ADMINISTRATORS),
    # Grants
    "accounts:grants": page(EVERYBODY),
    "accounts:grant": page(EVERYBODY),
    "accounts:grant-end": verb(EVERYBODY),
    "accounts:grant-approve": verb(DECIDERS),
    "accounts:grant-refuse": verb(DECIDERS),
    "accounts:grant-review": verb(DECIDERS),
    # Role requests
    "accounts:roles": page(ADMINISTRATORS),
    "accounts:role-confirm": verb(ADMINISTRATORS),
    "accounts:role-refuse": verb(ADMINISTRATORS),
    # Requests of people
    "erasure:requests": page(DECIDERS),
    "erasure:request-new": form(DECIDERS),
    "erasure:request": page(DECIDERS),
    **{
        f"erasure:request-{name}": verb(DECIDERS)
        for name in (
            *("check", "count", "ask", "approve", "reject", "refuse", "extend", "cancel", "comment"),
            *("pause", "resume"),
        )
    },
    "erasure:request-leave-out": form(DECIDERS),
    "erasure:request-receipt": page(DECIDERS),
    "erasure:request-receipt-file": page(DECIDERS),
    **{
        f"erasure:copy-{name}": verb(DECIDERS) for name in ("build", "ask", "approve", "leave-out", "link", "hand-over")
    },
    "erasure:copy-fetch": page(DECIDERS),
    "batches:batches": page(DECIDERS),
    "batches:batch-new": form(DECIDERS),
    "batches:batch": page(DECIDERS),
    "batches:batch-broken": page(DECIDERS),
    "batches:batch-broken-file": page(DECIDERS),
    "batches:batch-outcome-file": page(DECIDERS),
    "batches:batch-correct": form(DECIDERS),
    **{
        f"batches:batch-{name}": verb(DECIDERS)
        for name in ("count", "ask", "approve", "reject", "extend", "cancel", "pause", "resume", "retry")
    },
    # Legal holds
    "sweeps:list": page(DECIDERS),
    "sweeps:run": page(DECIDERS),
    "sweeps:tables": page(DECIDERS),
    "retention:holds": page(DECIDERS),
    "retention:hold": page(DECIDERS),
    "retention:hold-preview": verb(DECIDERS),
    "retention:hold-place": verb(DECIDERS),
    "retention:hold-change": verb(DECIDERS),
    "retention:hold-request-release": verb(DECIDERS),
    "retention:hold-release": verb(DECIDERS),
    "retention:hold-reject-release": verb(DECIDERS),
    # Retention policies
    "policies:list": page(DECIDERS),
    "policies:explain": verb(DECIDERS),
    "policies:new": form(DECIDERS),
    "policies:policy": page(DECIDERS),
    "policies:change": form(DECIDERS),
    "policies:end": form(DECIDERS),
    "policies:preview-change": verb(DECIDERS),
    "policies:approve-change": verb(DECIDERS),
    "policies:stop-change": verb(DECIDERS),
    # Data map
    "data_map:map": page(LOG_READERS),
    "data_map:export-csv": page(LOG_READERS),
    "data_map:export-json": page(LOG_READERS),
    "data_map:record": page(LOG_READERS),
    "data_map:change-record": form(DECIDERS),
    # Runs
    "runs:list": page(RUN_VIEWERS),
    "runs:detail": page(RUN_VIEWERS),
    "runs:pause": verb(RUN_VIEWERS),
    "runs:resume": verb(RUN_VIEWERS),
    "runs:cancel": verb(RUN_VIEWERS),
    "runs:speed": verb(RUN_VIEWERS),
    # Audit
    "audit:list": page(LOG_READERS),
    "audit:newer": page(LOG_READERS),
    "audit:health": page(LOG_READERS),
    "audit:volume": page(LOG_READERS),
    "audit:about": verb(LOG_READERS),
    "audit:event": page(LOG_READERS),
    "audit:proof": page(LOG_READERS),
    "audit:erase-details": verb(DECIDERS),
    "audit:erase-name": verb(DECIDERS),
    "audit:export-jsonl": page(LOG_READERS),
    "audit:export-csv": page(LOG_READERS),
    "audit:export-log": page(LOG_READERS),
    "audit:verifier": page(LOG_READERS),
    "audit:verify": verb(LOG_READERS),
    # Memories
    "memories:list": page(READERS),
    "memories:table": page(READERS),
    "memories:memory": page(READERS),
    "memories:recall": form(READERS),
    "memories:search": verb(READERS),
    "memories:distillers": page(READERS),
    "memories:recall-detail": page(READERS),
    "memories:recall-place": page(READERS),
    "memories:learned-from": Rule(reads=READERS, sends=REVIEWERS),
    "memories:change": Rule(reads=REVIEWERS, sends=REVIEWERS),
    "memories:learned-by-tool": Rule(reads=READERS, sends=REVIEWERS),
    "memories:retire": verb(REVIEWERS),
    "memories:erase-version": verb(DECIDERS),
    "memories:revalidate": verb(REVIEWERS),
    "memories:feedback": form(READERS),
    "memories:withdraw-feedback": verb(READERS),
    "memories:stop-learning": verb(KEEPERS),
    "memories:allow-learning": verb(KEEPERS),
    # Sessions
    "home:notifications": page(EVERYBODY),
    "home:notifications-read": verb(EVERYBODY),
    "views:save": verb(EVERYBODY),
    "views:rename": verb(EVERYBODY),
    "views:default": verb(EVERYBODY),
    "views:delete": verb(EVERYBODY),
    "sessions:overview": page(EVERYBODY),
    "sessions:list": page(READERS),
    "sessions:all-matching": form(KEEPERS),
    "sessions:matching-count": page(KEEPERS),
    "sessions:table": page(READERS),
    "sessions:newer": page(READERS),
    "sessions:timeline": page(READERS),
    "sessions:live": page(READERS),
    "sessions:news": page(READERS),
    "sessions:find": verb(READERS),
    "sessions:find-next": page(READERS),
    "sessions:item": page(READERS),
    "sessions:reveal": verb(KEEPERS),
    "sessions:reveal-session": verb(KEEPERS),
    "sessions:redact-item": form(DECIDERS),
    "sessions:redact-session": form(DECIDERS),
    "sessions:redactions": page(DECIDERS),
    "sessions:redaction": page(DECIDERS),
    "sessions:redaction-approve": verb(DECIDERS),
    "sessions:redaction-decline": verb(DECIDERS),
    "sessions:export-jsonl": page(READERS),
    "sessions:export-markdown": page(READERS),
    "sessions:ask": form(READERS),
    "sessions:about": verb(READERS),
    "sessions:open": verb(READERS),
    "sessions:label": verb(KEEPERS),
    "sessions:unlabel": verb(KEEPERS),
    "sessions:attach": verb(KEEPERS),
    "sessions:detach": verb(KEEPERS),
    "sessions:attachment-undo": verb(KEEPERS),
    "sessions:lock": verb(DECIDERS),
    "sessions:unlock": form(DECIDERS),
    "sessions:unlock-approve": verb(DECIDERS),
    "sessions:unlock-reject": verb(DECIDERS),
    "sessions:search": form(READERS),
    "sessions:search-results": page(READERS),
    "sessions:search-messages": page(READERS),
    # Subjects
    "sessions:subjects": page(SUBJECT_VIEWERS),
    "sessions:subjects-table": page(SUBJECT_VIEWERS),
    "sessions:subject-suggest": verb(SUBJECT_VIEWERS),
    "sessions:subject": page(SUBJECT_VIEWERS),
    "sessions:redact-subject": form(DECIDERS),
    "sessions:subject-merge": verb(KEEPERS),
    "sessions:subject-undo-merge": verb(KEEPERS),
    "sessions:alias-add": verb(KEEPERS),
    "sessions:alias-remove": verb(KEEPERS),
    # Stores
    "sessions:stores": page(STORE_VIEWERS),
    "sessions:store": page(STORE_VIEWERS),
    "sessions:store-check": verb(STORE_VIEWERS),
    "sessions:store-key": verb(ADMINISTRATORS),
    "sessions:connect": page(ADMINISTRATORS),
    "sessions:connect-kind": Rule(reads=ADMINISTRATORS, sends=ADMINISTRATORS),
    "sessions:watched-look": verb(ADMINISTRATORS),
    "sessions:watched-remove": verb(ADMINISTRATORS),
    "sessions:store-discover": verb(ADMINISTRATORS),
    "sessions:store-remove": verb(ADMINISTRATORS),
    "sessions:store-register": verb(ADMINISTRATORS),
    "sessions:pattern-add": verb(ADMINISTRATORS),
    "sessions:pattern-try": verb(ADMINISTRATORS),
    "sessions:pattern-change": verb(ADMINISTRATORS),
    "sessions:pattern-try-change": verb(ADMINISTRATORS),
    "sessions:pattern-up": verb(ADMINISTRATORS),
    "sessions:pattern-delete": verb(ADMINISTRATORS),
    # Reviews
    "reviews:list": page(REVIEWERS),
    "reviews:mine": page(REVIEWERS),
    "reviews:review": page(REVIEWERS),
    "reviews:recall": form(REVIEWERS),
    "reviews:decide": verb(REVIEWERS),
    "reviews:all-matching": form(REVIEWERS),
    "reviews:matching-count": page(REVIEWERS),
    "reviews:rules": page(REVIEWERS),
    "reviews:rule-new": form(DECIDERS),
    "reviews:rule": form(DECIDERS),
    "reviews:sample": verb(REVIEWERS),
    "reviews:health": page(REVIEWERS),
    "reviews:digest": verb(REVIEWERS),
    **{
        f"reviews:{name}": verb(REVIEWERS)
        for name in ("approve", "edit", "reject", "merge", "snooze", "wake", "reopen", "accept-base", "undo", "let-go")
    },
    # Raw edits
    "admin:index": form(DOOR),
    "admin:app_list": form(DOOR),
    "admin:login": form(OPEN),
    "admin:logout": verb(DOOR),
    "admin:password_change": form(DOOR),
    "admin:password_change_done": page(DOOR),
    "admin:autocomplete": page(NOBODY),
    "admin:jsi18n": page(DOOR),
    "admin:view_on_site": form(DOOR),
    **admin_of("auth_user", shows=ADMINISTRATORS, changes=ADMINISTRATORS, adds=ADMINISTRATORS, deletes=SUPERUSERS),
    "admin:auth_user_password_change": form(ADMINISTRATORS),
    "admin:auth_user_reset_second_factor": form(ADMINISTRATORS),
    **admin_of("auth_group", shows=ADMINISTRATORS, changes=SUPERUSERS, adds=SUPERUSERS, deletes=SUPERUSERS),
    # Support may look at these two, and as raw editors they come through the door.
    **admin_of("sessions_app_subject", shows=DOOR),
    **admin_of("sessions_app_sessionstore", shows=DOOR, deletes=SUPERUSERS),
    **admin_of("sessions_app_sessionrecord", shows=ADMINISTRATORS, changes=ADMINISTRATORS),
    **admin_of(
        "sessions_app_agentmessage",
        shows=RAW_EDITORS,
        changes=RAW_EDITORS,
        deletes=RAW_EDITORS,
        history_takes_post=False,
    ),
    "admin:sessions_app_agentsession_delete": form(RAW_EDITORS),
    **admin_of("memories_app_memory", shows=RAW_EDITORS, changes=RAW_EDITORS),
    **admin_of("memories_app_evidence", shows=RAW_EDITORS, deletes=RAW_EDITORS),
    **admin_of("memories_app_signal", shows=RAW_EDITORS, deletes=RAW_EDITORS),
    **{
        url_name: rule
        for model in ("memoryversion", "review", "approvalrule", "learningstop", "recall", "distillation")
        for url_name, rule in admin_of(f"memories_app_{model}", shows=RAW_EDITORS).items()
    },
    **admin_of("procrastinate_procrastinatejob", shows=SUPERUSERS),
}

SAME = {
    "account_login": "accounts:login",
    "account_logout": "accounts:logout",
    "mfa_index": "accounts:account",
    "mfa_deactivate_totp": "accounts:account",
}
"""Names of django-allauth for addresses that have one of ours."""

LOCKED = frozenset(
    f"sessions:{name}"
    for name in (
        *("timeline", "live", "find", "find-next", "item", "reveal", "reveal-session"),
        *("export-jsonl", "export-markdown", "redact-item", "redact-session"),
    )
)
"""What is refused to everybody without a grant when the session is locked."""

FRESH_PROOF = {
    "GET": frozenset(
        {
            *("audit:export-jsonl", "audit:export-csv", "audit:export-log"),
            *("sessions:export-jsonl", "sessions:export-markdown", "erasure:copy-fetch"),
            *("sessions:table", "sessions:subjects-table", "memories:table"),
            *("mfa_activate_totp", "mfa_add_webauthn", "mfa_view_recovery_codes"),
        }
    ),
    "POST": frozenset(
        {
            *("accounts:second-factor-remove", "mfa_activate_totp", "mfa_add_webauthn", "mfa_generate_recovery_codes"),
            *(f"people:{name}" for name in ("new", "roles", "off", "on", "second-factor", "link")),
            *("accounts:grant-approve", "accounts:role-confirm", "sessions:ask", "sessions:unlock"),
            "sessions:unlock-approve",
            *("audit:erase-details", "audit:erase-name", "retention:hold-release", "policies:approve-change"),
            *("erasure:request-approve", "erasure:request-leave-out", "batches:batch-approve"),
            *("erasure:copy-build", "erasure:copy-ask", "erasure:copy-approve", "erasure:copy-link"),
            *("sessions:redact-item", "sessions:redact-session", "sessions:redact-subject"),
            "sessions:redaction-approve",
            *("sessions:reveal", "sessions:reveal-session"),
            *("sessions:subject-merge", "sessions:subject-undo-merge", "sessions:alias-add", "sessions:alias-remove"),
            *(
                "sessions:connect-kind",
                "sessions:store-key",
                "sessions:store-remove",
                "sessions:watched-look",
                "sessions:watched-remove",
            ),
            *("sessions:pattern-add", "sessions:pattern-change", "sessions:pattern-up", "sessions:pattern-delete"),
            *(f"admin:auth_{kind}_{form}" for kind in ("user", "group") for form in ("add", "change", "delete")),
            *("admin:auth_user_password_change", "admin:auth_user_reset_second_factor"),
            *("admin:sessions_app_sessionrecord_add", "admin:sessions_app_sessionrecord_change"),
            *("admin:sessions_app_agentmessage_add", "admin:sessions_app_agentmessage_change"),
            *("admin:sessions_app_agentmessage_delete", "admin:sessions_app_agentsession_delete"),
            "admin:sessions_app_sessionstore_delete",
            *("admin:memories_app_memory_change", "admin:memories_app_memory_add"),
            *("admin:memories_app_evidence_delete", "admin:memories_app_signal_delete"),
        }
    ),
}
"""What asks again who somebody is, when their last proof is more than 5 minutes old: whatever cannot be undone, decides
about people's rights or identities, shows what is masked, or takes content away. The rest shows, sorts, or can be taken
back by the same hand; a change of one's own password asks for the password itself.
"""

DECISIONS = frozenset({"accounts:grant-approve", "accounts:grant-review"})
"""What nobody does with a grant of their own."""

LEADS_ON = frozenset({"admin:<path:object_id>/", "admin:(?P<url>.*)$"})
"""Nameless addresses of Django admin, which only redirect or say that there is nothing."""
