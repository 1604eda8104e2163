import uuid

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.functions import RandomUUID
from django.db import migrations, models
from django.db.models import CASCADE, PROTECT, SET_NULL, CheckConstraint, F, Index, Q, UniqueConstraint, Value
from django.db.models.functions import Now

USER = settings.AUTH_USER_MODEL
GROUNDS = [
    ("not_needed", "no longer needed, article 17(1)(a)"),
    ("consent", "consent withdrawn, article 17(1)(b)"),
    ("objection", "objection, article 17(1)(c)"),
    ("unlawful", "processed unlawfully, article 17(1)(d)"),
    ("legal_duty", "legal duty to erase, article 17(1)(e)"),
    ("child", "data of a child, article 17(1)(f)"),
]
SECOND_PERSON = Q(
    ("approved_by__isnull", True),
    ("requested_by__isnull", True),
    Q(("approved_by", F("requested_by")), _negated=True),
    _connector="OR",
)


class Migration(migrations.Migration):
    """Requests of people, with their steps, batches and copies; the suppression ledger and the record of processing."""

    initial = True

    dependencies = [
        migrations.swappable_dependency(USER),
        ("runs", "0001_model_tables"),
        ("sessions_app", "0001_model_tables"),
    ]

    operations = [
        migrations.CreateModel(
            name="RequestBatch",
            fields=[
                ("number", models.BigAutoField(primary_key=True, serialize=False)),
                ("id", models.UUIDField(db_default=RandomUUID(), default=uuid.uuid4, editable=False, unique=True)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("uploaded", "uploaded"),
                            ("awaiting", "awaiting approval"),
                            ("approved", "approved"),
                            ("running", "running"),
                            ("complete", "complete"),
                            ("exceptions", "complete with exceptions"),
                            ("cancelled", "cancelled"),
                        ],
                        db_default="uploaded",
                        default="uploaded",
                        max_length=12,
                    ),
                ),
                ("file_name", models.CharField(max_length=80)),
                ("file_size", models.PositiveIntegerField()),
                ("file_sha256", models.CharField(max_length=64)),
                ("ground", models.CharField(choices=GROUNDS, max_length=12)),
                ("note", models.TextField(blank=True, db_default="", default="", max_length=2000)),
                ("received_on", models.DateField()),
                ("due_on", models.DateField()),
                ("reminded", models.PositiveSmallIntegerField(db_default=0, default=0)),
                ("uploaded_at", models.DateTimeField(db_default=Now())),
                ("preview", models.JSONField(db_default=Value({}, models.JSONField()), default=dict)),
                ("previewed_at", models.DateTimeField(null=True)),
                ("requested_at", models.DateTimeField(null=True)),
                ("approved_at", models.DateTimeField(null=True)),
                ("starts_at", models.DateTimeField(help_text="until then it can be cancelled", null=True)),
                ("started_at", models.DateTimeField(help_text="first case that was opened", null=True)),
                ("closed_at", models.DateTimeField(null=True)),
                ("approved_by", models.ForeignKey(USER, SET_NULL, null=True, related_name="+")),
                ("preview_run", models.OneToOneField("runs.run", PROTECT, null=True, related_name="previewed_batch")),
                ("requested_by", models.ForeignKey(USER, SET_NULL, null=True, related_name="+")),
                ("run", models.OneToOneField("runs.run", PROTECT, null=True, related_name="request_batch")),
                ("uploaded_by", models.ForeignKey(USER, SET_NULL, null=True, related_name="+")),
            ],
            options={
                "ordering": ["-number"],
                "default_permissions": (),
                "constraints": [
                    UniqueConstraint(
                        condition=Q(("closed_at__isnull", True)),
                        fields=("file_sha256",),
                        name="batch_open_once_per_file",
                    ),
                    CheckConstraint(
                        condition=Q(
                            Q(
                                ("closed_at__isnull", True),
                                ("state__in", ["uploaded", "awaiting", "approved", "running"]),
                            ),
                            Q(("closed_at__isnull", False), ("state__in", ["complete", "exceptions", "cancelled"])),
                            _connector="OR",
                        ),
                        name="batch_state_says_whether_it_is_closed",
                    ),
                    CheckConstraint(condition=SECOND_PERSON, name="batch_approved_by_a_second_person"),
                ],
            },
        ),
        migrations.CreateModel(
            name="SubjectRequest",
            fields=[
                ("number", models.BigAutoField(primary_key=True, serialize=False)),
                ("id", models.UUIDField(db_default=RandomUUID(), default=uuid.uuid4, editable=False, unique=True)),
                (
                    "kind",
                    models.CharField(
                        choices=[("erasure", "erasure"), ("access", "access"), ("restriction", "restriction")],
                        max_length=12,
                    ),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("received", "received"),
                            ("checked", "identity checked"),
                            ("awaiting", "awaiting approval"),
                            ("approved", "approved"),
                            ("running", "running"),
                            ("scanning", "scanning"),
                            ("complete", "complete"),
                            ("exceptions", "complete with exceptions"),
                            ("failed", "failed"),
                            ("refused", "refused"),
                            ("cancelled", "cancelled"),
                        ],
                        db_default="received",
                        default="received",
                        max_length=12,
                    ),
                ),
                ("ground", models.CharField(blank=True, choices=GROUNDS, db_default="", default="", max_length=12)),
                (
                    "channel",
                    models.CharField(
                        choices=[
                            ("form", "web form"),
                            ("letter", "letter"),
                            ("email", "e-mail"),
                            ("phone", "telephone"),
                            ("person", "in person"),
                            ("command", "command"),
                            ("file", "CSV file"),
                            ("replay", "repeated after a restore"),
                        ],
                        max_length=8,
                    ),
                ),
                ("received_on", models.DateField()),
                ("due_on", models.DateField()),
                ("first_due_on", models.DateField(null=True)),
                ("reminded", models.PositiveSmallIntegerField(db_default=0, default=0)),
                ("opened_at", models.DateTimeField(db_default=Now())),
                ("identity_checked_at", models.DateTimeField(null=True)),
                ("preview", models.JSONField(db_default=Value({}, models.JSONField()), default=dict)),
                ("previewed_at", models.DateTimeField(null=True)),
                ("requested_at", models.DateTimeField(null=True)),
                ("approved_at", models.DateTimeField(null=True)),
                ("starts_at", models.DateTimeField(help_text="until then it can be cancelled", null=True)),
                ("started_at", models.DateTimeField(help_text="first change that cannot be undone", null=True)),
                (
                    "refusal",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("identity", "identity not proved, article 12(6)"),
                            ("unfounded", "manifestly unfounded or excessive, article 12(5)"),
                            ("expression", "freedom of expression, article 17(3)(a)"),
                            ("legal_duty", "legal duty to keep, article 17(3)(b)"),
                            ("public_health", "public health, article 17(3)(c)"),
                            ("archive", "archiving or research, article 17(3)(d)"),
                            ("legal_claim", "legal claims, article 17(3)(e)"),
                        ],
                        db_default="",
                        default="",
                        max_length=16,
                    ),
                ),
                ("closed_at", models.DateTimeField(null=True)),
                ("locators", models.BinaryField(db_default=b"", default=b"")),
                ("scans", models.JSONField(db_default=Value([], models.JSONField()), default=list)),
                ("pending_scan", models.JSONField(db_default=Value({}, models.JSONField()), default=dict)),
                ("receipt", models.TextField(blank=True, db_default="", default="")),
                ("approved_by", models.ForeignKey(USER, SET_NULL, null=True, related_name="+")),
                ("identity_checked_by", models.ForeignKey(USER, SET_NULL, null=True, related_name="+")),
                ("opened_by", models.ForeignKey(USER, SET_NULL, null=True, related_name="+")),
                ("requested_by", models.ForeignKey(USER, SET_NULL, null=True, related_name="+")),
                ("run", models.OneToOneField("runs.run", PROTECT, null=True, related_name="subject_request")),
                ("scanned_by", models.ForeignKey("runs.run", PROTECT, null=True, related_name="scanned_requests")),
                ("subject", models.ForeignKey("sessions_app.subject", PROTECT, related_name="requests")),
            ],
            options={
                "permissions": [
                    ("view_request", "Can see data-subject requests"),
                    ("handle_request", "Can open and handle data-subject requests"),
                    ("approve_request", "Can approve erasures that another person requested"),
                ],
                "default_permissions": (),
                "indexes": [
                    Index("due_on", "number", condition=Q(("closed_at__isnull", True)), name="request_open_by_due"),
                    Index(F("closed_at").desc(), F("number").desc(), name="request_closed_newest"),
                    Index("subject", F("number").desc(), name="request_of_subject"),
                ],
                "constraints": [
                    UniqueConstraint(
                        condition=Q(("closed_at__isnull", True)), fields=("subject", "kind"), name="request_open_once"
                    ),
                    CheckConstraint(
                        condition=Q(
                            Q(("closed_at__isnull", True), ("state__in", ["received", "checked", "awaiting"])),
                            Q(("closed_at__isnull", True), ("state__in", ["approved", "running", "scanning"])),
                            Q(
                                ("closed_at__isnull", False),
                                ("state__in", ["complete", "exceptions", "failed", "refused", "cancelled"]),
                            ),
                            _connector="OR",
                        ),
                        name="request_state_says_whether_it_is_closed",
                    ),
                    CheckConstraint(condition=SECOND_PERSON, name="request_approved_by_a_second_person"),
                    CheckConstraint(
                        condition=Q(("closed_at__isnull", True), ("locators", b""), _connector="OR"),
                        name="closed_request_has_no_locators",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="RequestNote",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("at", models.DateTimeField(db_default=Now())),
                (
                    "code",
                    models.CharField(
                        choices=[
                            ("received", "Received"),
                            ("joined", "The same request was received again"),
                            ("comment", "Comment"),
                            ("checked", "Identity checked"),
                            ("previewed", "Preview made"),
                            ("requested", "Approval requested"),
                            ("sent_back", "Sent back"),
                            ("approved", "Approved"),
                            ("extended", "Time extended"),
                            ("reminded", "Reminder sent"),
                            ("alerted", "Alert sent"),
                            ("cancelled", "Cancelled"),
                            ("refused", "Refused"),
                            ("started", "Started"),
                            ("stopped", "Stopped"),
                            ("left_out", "Left out by decision"),
                            ("scanned", "Scanned"),
                            ("found", "The scan found data"),
                            ("copy_built", "Copy built"),
                            ("copy_fetched", "Copy downloaded"),
                            ("copy_deleted", "Copy deleted"),
                            ("handed_over", "Copy handed over"),
                            ("closed", "Closed"),
                            ("reopened", "Opened again"),
                        ],
                        max_length=12,
                    ),
                ),
                ("text", models.TextField(blank=True, db_default="", default="", max_length=2000)),
                ("by", models.ForeignKey(USER, SET_NULL, null=True, related_name="+")),
                ("request", models.ForeignKey("erasure.subjectrequest", CASCADE, related_name="notes")),
            ],
            options={"ordering": ["-pk"], "default_permissions": ()},
        ),
        migrations.CreateModel(
            name="ErasureStep",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("name", models.CharField(max_length=40)),
                ("place", models.CharField(blank=True, db_default="", default="", max_length=64)),
                ("position", models.PositiveSmallIntegerField()),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("to_do", "to do"),
                            ("running", "running"),
                            ("waiting", "waiting"),
                            ("done", "done"),
                            ("left_out", "left out"),
                        ],
                        db_default="to_do",
                        default="to_do",
                        max_length=8,
                    ),
                ),
                ("cursor", models.CharField(blank=True, db_default="", default="")),
                ("expected", models.PositiveBigIntegerField(db_default=0, default=0, help_text="rows at the approval")),
                ("erased", models.PositiveBigIntegerField(db_default=0, default=0)),
                ("held", models.PositiveBigIntegerField(db_default=0, default=0, help_text="rows kept by legal holds")),
                ("exceptions", models.JSONField(db_default=Value({}, models.JSONField()), default=dict)),
                ("reason", models.CharField(blank=True, db_default="", default="", max_length=400)),
                ("started_at", models.DateTimeField(null=True)),
                ("ended_at", models.DateTimeField(null=True)),
                ("changed_at", models.DateTimeField(db_default=Now())),
                ("request", models.ForeignKey("erasure.subjectrequest", CASCADE, related_name="steps")),
            ],
            options={
                "ordering": ["position", "place", "pk"],
                "default_permissions": (),
                "constraints": [UniqueConstraint(fields=("request", "name", "place"), name="step_of_request_once")],
            },
        ),
        migrations.CreateModel(
            name="BatchLine",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("number", models.PositiveIntegerField()),
                ("sealed", models.BinaryField(db_default=b"", default=b"")),
                (
                    "problem",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("missing", "The key is missing."),
                            ("too_long", "The key or the note is too long, or contains a NUL."),
                            ("separators", "Two separators, 3 columns expected."),
                            ("wrong_kind", "The kind is not user, project or tenant."),
                            ("unknown", "Unknown subject."),
                            ("duplicate", "Duplicate of another line."),
                            ("merged", "Merged into another subject; erase the merged subject by its own request."),
                            ("open", "Another erasure of this subject is open; this line would join it."),
                            ("held", "On hold: left out."),
                        ],
                        db_default="",
                        default="",
                        max_length=12,
                    ),
                ),
                ("other", models.BigIntegerField(null=True)),
                ("subject", models.ForeignKey("sessions_app.subject", PROTECT, null=True, related_name="+")),
                ("batch", models.ForeignKey("erasure.requestbatch", CASCADE, related_name="lines")),
                (
                    "request",
                    models.ForeignKey("erasure.subjectrequest", PROTECT, null=True, related_name="batch_lines"),
                ),
            ],
            options={
                "ordering": ["number"],
                "default_permissions": (),
                "constraints": [
                    UniqueConstraint(fields=("batch", "number"), name="line_of_batch_once"),
                    UniqueConstraint(
                        condition=Q(("problem", "")), fields=("batch", "subject"), name="subject_of_batch_once"
                    ),
                    CheckConstraint(
                        condition=Q(Q(("problem", ""), _negated=True), ("subject__isnull", False), _connector="OR"),
                        name="accepted_line_has_its_subject",
                    ),
                    CheckConstraint(
                        condition=Q(("problem", ""), ("request__isnull", True), _connector="OR"),
                        name="broken_line_has_no_request",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="AccessCopy",
            fields=[
                ("id", models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                (
                    "state",
                    models.CharField(
                        choices=[("building", "being built"), ("ready", "ready"), ("deleted", "deleted")],
                        db_default="building",
                        default="building",
                        max_length=8,
                    ),
                ),
                ("key", models.BinaryField(db_default=b"", default=b"")),
                ("file_name", models.CharField(blank=True, db_default="", default="", max_length=80)),
                ("size", models.BigIntegerField(null=True)),
                ("sha256", models.CharField(blank=True, db_default="", default="", max_length=64)),
                ("waits_for", ArrayField(models.CharField(), blank=True, db_default=Value("{}"), default=list)),
                ("left_out", ArrayField(models.CharField(), blank=True, db_default=Value("{}"), default=list)),
                ("created_at", models.DateTimeField(db_default=Now())),
                ("ready_at", models.DateTimeField(null=True)),
                ("expires_at", models.DateTimeField()),
                ("token_digest", models.CharField(blank=True, db_default="", default="", max_length=64)),
                ("token_until", models.DateTimeField(null=True)),
                ("fetched_at", models.DateTimeField(help_text="last download", null=True)),
                ("deleted_at", models.DateTimeField(null=True)),
                ("fetched_by", models.ForeignKey(USER, SET_NULL, null=True, related_name="+")),
                ("run", models.OneToOneField("runs.run", PROTECT, related_name="access_copy")),
                ("request", models.ForeignKey("erasure.subjectrequest", CASCADE, related_name="copies")),
            ],
            options={
                "ordering": ["-created_at", "-pk"],
                "default_permissions": (),
                "indexes": [
                    Index("expires_at", condition=Q(("deleted_at__isnull", True)), name="access_copy_expiring")
                ],
                "constraints": [
                    UniqueConstraint(
                        condition=Q(("state__in", ["building", "ready"])), fields=("request",), name="access_copy_once"
                    ),
                    CheckConstraint(
                        condition=Q(
                            Q(("deleted_at__isnull", False), ("key", b""), ("state", "deleted"), ("token_digest", "")),
                            Q(
                                ("deleted_at__isnull", True),
                                ("state", "ready"),
                                Q(("key", b""), _negated=True),
                                Q(("file_name", ""), _negated=True),
                            ),
                            Q(
                                ("deleted_at__isnull", True),
                                ("state", "building"),
                                ("token_digest", ""),
                                Q(("key", b""), _negated=True),
                            ),
                            _connector="OR",
                        ),
                        name="access_copy_deleted_has_no_key",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="SuppressionEntry",
            fields=[
                ("number", models.BigIntegerField(primary_key=True, serialize=False)),
                ("request_id", models.UUIDField()),
                ("entered_at", models.DateTimeField()),
            ],
            options={
                "default_permissions": (),
                "constraints": [CheckConstraint(condition=Q(("number__gt", 0)), name="suppression_number")],
            },
        ),
        migrations.CreateModel(
            name="ProcessingRecord",
            fields=[
                ("id", models.SmallIntegerField(default=1, editable=False, primary_key=True, serialize=False)),
                ("controller", models.TextField(max_length=2000, verbose_name="Controller")),
                ("contact", models.TextField(max_length=2000, verbose_name="Contact")),
                ("purpose", models.TextField(max_length=2000, verbose_name="Purpose")),
                ("subjects", models.TextField(max_length=2000, verbose_name="Subjects")),
                ("recipients", models.TextField(max_length=2000, verbose_name="Recipients")),
                ("third_countries", models.TextField(max_length=2000, verbose_name="Third countries")),
                ("security", models.TextField(max_length=2000, verbose_name="Security")),
                ("changed_at", models.DateTimeField(db_default=Now())),
                ("changed_by", models.ForeignKey(USER, SET_NULL, null=True, related_name="+")),
            ],
            options={
                "permissions": [
                    ("view_data_map", "Can see the data map and download the record of processing"),
                    ("change_processing_record", "Can change the head of the record of processing"),
                ],
                "default_permissions": (),
                "constraints": [CheckConstraint(condition=Q(("id", 1)), name="one_processing_record")],
            },
        ),
    ]
