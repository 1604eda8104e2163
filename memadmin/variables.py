"""Registry of the environment variables: name, default, unit and meaning, each stated once.

`memadmin.environment` takes the defaults from here when it reads a value, and the settings page of the documentation is
made from it. A test compares the registry with what is read.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Variable:
    """An environment variable. Texts are Markdown; `meaning` may link to pages of docs/."""

    name: str
    meaning: str
    default: str = ""
    """The value used when the variable is empty or not set, in the form in which it would be set."""
    unit: str = ""
    unset: str = ""
    """Behaviour without a value, if `default` cannot express it."""


SECTIONS: dict[str, tuple[Variable, ...]] = {
    "Database": (
        Variable(
            "DATABASE_URL",
            "PostgreSQL with the agents' tables, as `postgres://role:password@host:5432/database`. memadmin keeps its"
            " own tables in the same database. Connect the web server as `memadmin_web`, and `migrate` as"
            " `memadmin_migrator`: see [database roles](database-roles.md).",
            unset="the embedded PostgreSQL",
        ),
        Variable(
            "MEMADMIN_DATABASE_ROLE",
            "Role under which to connect to the embedded PostgreSQL. Refused together with `DATABASE_URL`, which"
            " contains the role.",
            unset="its administrator",
        ),
        Variable("MEMADMIN_POOL_SIZE", "Database connections of one web process.", "8", "connections"),
        Variable("MEMADMIN_CONNECT_TIMEOUT_SECONDS", "Time limit for opening a database connection.", "5", "seconds"),
        Variable(
            "MEMADMIN_WORKER_DATABASE_URL",
            "The worker's own connection, as `memadmin_worker`. It has to bypass a transaction pooler, because the"
            " worker listens for notifications.",
            unset="`DATABASE_URL`",
        ),
        Variable(
            "MEMADMIN_REPLICA_URL",
            "A streaming replica of the database, from which lists, searches and reports are read while it shows"
            " everything that the primary does: see [more than one machine](scaling.md). The same for web servers and"
            " workers: an erasure is complete only when the replica has replayed it.",
            unset="everything is read from the primary",
        ),
        Variable("MEMADMIN_WORKER_CONCURRENCY", "Jobs that one worker runs at the same time.", "4", "jobs"),
        Variable(
            "MEMADMIN_DATA_DIR",
            "Folder of the embedded database, the generated keys and the collected static files.",
            unset="`.memadmin` in a checkout, the user's data folder when installed",
        ),
    ),
    "Stores": (
        Variable(
            "AGENT_SESSIONS_TABLE", "The SDK's table of sessions, as `table` or `schema.table`.", "agent_sessions"
        ),
        Variable("AGENT_MESSAGES_TABLE", "The SDK's table of items, as `table` or `schema.table`.", "agent_messages"),
        Variable(
            "AGENT_TIMEZONE", "IANA time zone of the agents' `CURRENT_TIMESTAMP` in columns without a zone.", "UTC"
        ),
        Variable(
            "MEMADMIN_STORE_KINDS",
            "Kinds of stores of your own, as dotted paths separated by commas: see [stores](stores.md).",
        ),
        Variable(
            "MEMADMIN_KEYRING",
            "Names of the keys with which agents encrypt their sessions, separated by commas: small letters, digits and"
            " hyphens. See [encrypted sessions](encryption.md).",
        ),
        Variable(
            "MEMADMIN_SESSION_KEY_*",
            "One key of the keyring, exactly as agents give it to `EncryptedSession`: `vault-2026` of the keyring is"
            " read from `MEMADMIN_SESSION_KEY_VAULT_2026`. A key that is missing or unusable does not stop the start.",
        ),
        Variable(
            "MEMADMIN_SUBJECT_KEYS_DIR",
            "Folder of the keys with which agents encrypt sessions of single subjects, shared with the agents and in no"
            " backup of content: see [keys of subjects](encryption.md#keys-of-subjects).",
            unset="embedded PostgreSQL: `subject-keys` in the data folder, if it exists; otherwise no folder",
        ),
        Variable("MEMADMIN_SEARCH_SCAN_SECONDS", "Time limit of one search that reads items.", "3", "seconds"),
        Variable("MEMADMIN_SEARCH_HOURS", "Lifetime of the address of a search.", "24", "hours"),
    ),
    "Requests of people": (
        Variable(
            "MEMADMIN_CANCEL_MINUTES", "Time in which an approved erasure can still be cancelled.", "240", "minutes"
        ),
        Variable(
            "MEMADMIN_REDACT_ALONE_PLACES",
            "Places that one person may redact. A redaction of more, or of sessions that the preview could not show,"
            " needs the approval of a second person.",
            "100",
            "places",
        ),
        Variable(
            "MEMADMIN_RESCAN_MINUTES",
            "Time after the first scan of an erasure until the second. Longer than any run of an agent.",
            "1440",
            "minutes",
        ),
        Variable(
            "MEMADMIN_RETENTION_GRACE_HOURS",
            "Time between the approval of a change of a retention policy and its effect.",
            "24",
            "hours",
        ),
        Variable("MEMADMIN_RETENTION_HOUR", "Hour at which the nightly retention run begins.", "2", "o'clock UTC"),
        Variable(
            "MEMADMIN_RETENTION_WINDOW_HOURS",
            "Hours of the night: a large retention run takes half of them, and begins in no other.",
            "4",
            "hours",
        ),
        Variable(
            "MEMADMIN_RETENTION_REPLICA_SECONDS",
            "A retention run waits while a streaming replica is further behind; 0 for never, for instance where a"
            " replica is delayed on purpose.",
            "5",
            "seconds",
        ),
        Variable(
            "MEMADMIN_RETENTION_DEAD_ROWS",
            "A retention run vacuums a table, or waits for autovacuum, when it has more dead rows than this and than a"
            " fifth of its rows; 0 for never.",
            "1000000",
            "rows",
        ),
        Variable(
            "MEMADMIN_SUPPRESSION_LEDGER",
            "File that lists erasures by keyed digests, outside of the database and of its backups: after a restore"
            " they are repeated by `replay_suppressions`, and before that no page is shown.",
            unset="`suppressions.jsonl` in `MEMADMIN_DATA_DIR` with a generated signing key, else none",
        ),
        Variable(
            "MEMADMIN_BACKUP_DAYS",
            "Days after which backups and write-ahead logs of the databases are deleted: receipts of erasures state"
            " the day.",
            "30",
            "days",
        ),
        Variable(
            "MEMADMIN_ACCESS_COPY_DAYS",
            "Days after which the file with a copy of a person's data is deleted.",
            "14",
            "days",
        ),
    ),
    "Web server": (
        Variable(
            "MEMADMIN_ALLOWED_HOSTS",
            "Host names under which the console is reached, separated by commas, without scheme and port. Health checks"
            " answer under any name.",
            "localhost, 127.0.0.1, [::1]",
        ),
        Variable("MEMADMIN_HTTPS", "Secure cookies, HSTS and redirects to HTTPS.", "no"),
        Variable(
            "MEMADMIN_HSTS_SUBDOMAINS",
            "HSTS also for all subdomains of the console's host: browsers then refuse each that has no HTTPS.",
            "no",
        ),
        Variable(
            "MEMADMIN_HSTS_PRELOAD",
            "Consent to the browsers' lists of HTTPS sites, from which a domain is removed only after months. Requires"
            " `MEMADMIN_HSTS_SUBDOMAINS`.",
            "no",
        ),
        Variable(
            "MEMADMIN_BEHIND_PROXY",
            "Trust `X-Forwarded-Proto` and the last entry of `X-Forwarded-For`. The proxy must set the first header"
            " and append to the second.",
            "no",
        ),
        Variable(
            "MEMADMIN_TRUSTED_ORIGINS", "Trusted origins of submitted forms, such as `https://memadmin.example.org`."
        ),
        Variable("MEMADMIN_URL", "Address of the console for links in mail. Required with `MEMADMIN_MAIL_URL`."),
        Variable(
            "MEMADMIN_SECRET_KEY",
            "Signs session cookies and page links, and encrypts the secrets of second factors. At least 32 characters.",
            unset="generated once, kept in the data folder",
        ),
        Variable(
            "MEMADMIN_OLD_SECRET_KEYS",
            "Earlier secret keys, separated by commas: values made with them remain readable.",
        ),
        Variable("MEMADMIN_DEBUG", "Django's debug mode, for development only.", "no"),
    ),
    "Sign-in": (
        Variable(
            "MEMADMIN_SECOND_FACTOR", "`optional` lets users without a second factor in, as the demo does.", "required"
        ),
        Variable("MEMADMIN_IDLE_MINUTES", "Idle time after which a user is signed out.", "15", "minutes"),
        Variable("MEMADMIN_SESSION_HOURS", "Time after which a user is signed out in any case.", "8", "hours"),
        Variable(
            "MEMADMIN_OIDC_ISSUER",
            "Issuer of the company's OpenID Connect sign-in: see [security](security.md).",
            unset="no company sign-in",
        ),
        Variable("MEMADMIN_OIDC_CLIENT_ID", "Client id at the issuer. Required with `MEMADMIN_OIDC_ISSUER`."),
        Variable("MEMADMIN_OIDC_CLIENT_SECRET", "Client secret at the issuer. Required with `MEMADMIN_OIDC_ISSUER`."),
        Variable("MEMADMIN_OIDC_NAME", "Label of the company's sign-in button.", "Company account"),
        Variable(
            "MEMADMIN_OIDC_DOMAINS",
            "E-mail domains, separated by commas, whose people get an account without a role at their first sign-in.",
        ),
    ),
    "Access to content": (
        Variable(
            "MEMADMIN_PURPOSE",
            "`optional` shows conversation content without a stated purpose, as the demo does.",
            "required",
        ),
        Variable("MEMADMIN_PURPOSE_HOURS", "Time for which a stated purpose is valid.", "4", "hours"),
        Variable(
            "MEMADMIN_READ_NOTICE",
            "Sessions that one user may open within an hour before the log and a mail report it; at most"
            " `MEMADMIN_READ_LIMIT`.",
            "100",
            "sessions per hour",
        ),
        Variable(
            "MEMADMIN_READ_LIMIT",
            "Sessions that one user may open within an hour; further ones are refused.",
            "300",
            "sessions per hour",
        ),
        Variable(
            "MEMADMIN_GRANTS_WITHOUT_APPROVAL",
            "Open grants for locked sessions, unlock these, and build copies for persons with them, without a second"
            " person.",
            "no",
        ),
        Variable(
            "MEMADMIN_PHONE_REGIONS",
            "Countries, such as `DE, US`, whose phone numbers are masked without a country code too.",
        ),
    ),
    "Memories and reviews": (
        Variable(
            "MEMADMIN_REVIEW_AFTER_MILLISECONDS",
            "Time for which a proposal must have been on screen before a decision about it counts.",
            "700",
            "milliseconds",
        ),
        Variable("MEMADMIN_REVIEW_HOURS", "Review target: older proposals are late.", "48", "hours"),
        Variable(
            "MEMADMIN_PROPOSAL_DAYS",
            "Time after which an undecided proposal expires unreviewed; 0 for never. A memory that was approved once is"
            " not affected.",
            "30",
            "days",
        ),
        Variable("MEMADMIN_DIGEST_HOUR", "Hour from which the daily digest for reviewers is sent.", "7", "hour, UTC"),
        Variable(
            "MEMADMIN_DIGEST_TO",
            "E-mail addresses that get the digest: see [reviews](reviews.md).",
            unset="verified addresses of all reviewers",
        ),
        Variable("MEMADMIN_DIGEST_URL", "HTTPS receiver of the digest as a signed webhook."),
        Variable(
            "MEMADMIN_DIGEST_SECRET",
            "Key that signs the webhook: 24 to 64 random bytes in base64. Required with `MEMADMIN_DIGEST_URL`.",
        ),
        Variable(
            "MEMADMIN_EMBEDDER",
            "Embedding model of memories: `wordllama` works offline, `openai:MODEL` calls OpenAI, `none` retrieves by"
            " words alone.",
            "wordllama",
        ),
        Variable(
            "MEMADMIN_VECTOR_INDEX",
            "Index for vector search: `pgvector`, or `qdrant:https://HOST:6333` with `pip install memadmin[qdrant]`."
            " See [recall](recall.md).",
            "pgvector",
        ),
        Variable("MEMADMIN_VECTOR_INDEX_KEY", "The worker's API key of that index."),
        Variable(
            "MEMADMIN_DISTILLER",
            "Proposes memories from quiet sessions: `rules` runs locally, `agent:MODEL` sends conversation content to a"
            " model of the SDK, `none` is off.",
            "rules",
        ),
        Variable(
            "MEMADMIN_DISTIL_AFTER_MINUTES",
            "Idle time after which a session counts as quiet and is distilled.",
            "10",
            "minutes",
        ),
        Variable("MEMADMIN_DISTIL_LOCKED", "Also distil locked and encrypted sessions.", "no"),
    ),
    "Audit log": (
        Variable(
            "MEMADMIN_SIGNING_KEY",
            "Ed25519 private key that signs checkpoints, in base64 or PEM; only workers need it. See [the audit"
            " log](audit.md).",
            unset="embedded PostgreSQL: generated once, kept in the data folder; otherwise checkpoints are not signed",
        ),
        Variable("MEMADMIN_SIGNING_KEY_BEFORE", "The previous signing key, during a rotation: it signs the new key."),
        Variable(
            "MEMADMIN_TRUSTED_KEYS",
            "More trusted public keys, separated by commas: after the loss of a signing key, the lost and the new one.",
        ),
        Variable(
            "MEMADMIN_ANCHOR_PATH",
            "File for checkpoints, best on another volume; `none` for no file.",
            unset="embedded PostgreSQL: a file in the data folder; otherwise no file",
        ),
        Variable("MEMADMIN_ANCHOR_URL", "HTTPS receiver of checkpoints."),
        Variable("MEMADMIN_ANCHOR_TOKEN", "Bearer token for that receiver."),
        Variable(
            "MEMADMIN_ANCHOR_BUCKET",
            "S3 bucket with object lock for checkpoints, as `bucket/prefix` (`pip install memadmin[s3]`).",
        ),
        Variable("MEMADMIN_ANCHOR_KEEP_DAYS", "Object lock of a checkpoint in the bucket.", "3650", "days"),
        Variable(
            "MEMADMIN_VERIFY_LOG_HOURS",
            "The worker verifies the whole log when the last verification is older.",
            "24",
            "hours",
        ),
    ),
    "Mail": (
        Variable(
            "MEMADMIN_MAIL_URL",
            "Mail server, as `smtp+tls://name:password@host:587`; `filemail:////folder` writes files.",
            unset="no mail",
        ),
        Variable("MEMADMIN_MAIL_FROM", "Sender of mails.", "memadmin@localhost"),
        Variable(
            "MEMADMIN_NOTICES_TO",
            "E-mail addresses that are notified of grants: requested, opened without a second person, due for review.",
            unset="verified addresses of all who may decide on grants",
        ),
    ),
    "Monitoring": (
        Variable(
            "MEMADMIN_LOG_FORMAT",
            "`json` writes each entry of the log as one line of JSON: see [monitoring](monitoring.md#logs).",
            "text",
        ),
        Variable("MEMADMIN_LOG_LEVEL", "`info` also writes a line for each request, `error` only faults.", "warning"),
        Variable(
            "MEMADMIN_METRICS_TOKEN",
            "Bearer token with which Prometheus reads `/metrics` of web server and workers, at least 20 characters: see"
            " [monitoring](monitoring.md).",
            unset="no metrics",
        ),
        Variable(
            "MEMADMIN_METRICS_DIR",
            "Folder in which the processes of one web server add up their counts. It may be in memory: counts begin at"
            " zero with each start of the web server.",
            unset="`metrics` in the data folder",
        ),
    ),
    "Demo": (
        Variable("MEMADMIN_PORT", "Port of the demo's web server.", "8000"),
        Variable("MEMADMIN_DEMO_PASSWORD", "Password of the demo's accounts.", unset="`memadmin-demo`"),
        Variable(
            "OPENAI_API_KEY", "Lets the demo's agents talk to a real model.", unset="the demo's agents are scripted"
        ),
    ),
}

VARIABLES = {variable.name: variable for section in SECTIONS.values() for variable in section}


def default_of(name: str) -> str:
    """The default of a variable; empty for a name that the operator chose."""
    return VARIABLES[name].default if name in VARIABLES else ""
