import uuid

import django.contrib.postgres.functions
import django.db.models.deletion
import django.db.models.functions.datetime
import pgtrigger.compiler
import pgtrigger.migrations
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    """Requests of people, their notes, and the steps of erasures."""

    initial = True

    dependencies = [
        ("runs", "0001_tables"),
        ("sessions_app", "0008_state_of_stores"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="SubjectRequest",
            fields=[
                ("number", models.BigAutoField(primary_key=True, serialize=False)),
                (
                    "id",
                    models.UUIDField(
                        db_default=django.contrib.postgres.functions.RandomUUID(),
                        default=uuid.uuid4,
                        editable=False,
                        unique=True,
                    ),
                ),
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
                (
                    "ground",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("not_needed", "no longer needed, article 17(1)(a)"),
                            ("consent", "consent withdrawn, article 17(1)(b)"),
                            ("objection", "objection, article 17(1)(c)"),
                            ("unlawful", "processed unlawfully, article 17(1)(d)"),
                            ("legal_duty", "legal duty to erase, article 17(1)(e)"),
                            ("child", "data of a child, article 17(1)(f)"),
                        ],
                        db_default="",
                        default="",
                        max_length=12,
                    ),
                ),
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
                ("opened_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("identity_checked_at", models.DateTimeField(null=True)),
                ("preview", models.JSONField(db_default=models.Value({}, models.JSONField()), default=dict)),
                ("previewed_at", models.DateTimeField(null=True)),
                ("requested_at", models.DateTimeField(null=True)),
                ("approved_at", models.DateTimeField(null=True)),
                (
                    "starts_at",
                    models.DateTimeField(help_text="until then it can be cancelled", null=True),
                ),
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
                ("scans", models.JSONField(db_default=models.Value([], models.JSONField()), default=list)),
                ("receipt", models.TextField(blank=True, db_default="", default="")),
                (
                    "approved_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "identity_checked_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "opened_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "requested_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "run",
                    models.OneToOneField(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="subject_request",
                        to="runs.run",
                    ),
                ),
                (
                    "subject",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="requests", to="sessions_app.subject"
                    ),
                ),
            ],
            options={
                "permissions": [
                    ("view_request", "Can see data-subject requests"),
                    ("handle_request", "Can open and handle data-subject requests"),
                    ("approve_request", "Can approve erasures that another person requested"),
                ],
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="RequestNote",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
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
                            ("cancelled", "Cancelled"),
                            ("refused", "Refused"),
                            ("started", "Started"),
                            ("stopped", "Stopped"),
                            ("left_out", "Left out by decision"),
                            ("scanned", "Scanned"),
                            ("found", "The scan found data"),
                            ("closed", "Closed"),
                            ("reopened", "Opened again"),
                        ],
                        max_length=12,
                    ),
                ),
                ("text", models.TextField(blank=True, db_default="", default="", max_length=2000)),
                (
                    "by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "request",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="notes", to="erasure.subjectrequest"
                    ),
                ),
            ],
            options={
                "ordering": ["-pk"],
                "default_permissions": (),
            },
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
                ("exceptions", models.JSONField(db_default=models.Value({}, models.JSONField()), default=dict)),
                ("reason", models.CharField(blank=True, db_default="", default="", max_length=400)),
                ("started_at", models.DateTimeField(null=True)),
                ("ended_at", models.DateTimeField(null=True)),
                ("changed_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                (
                    "request",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="steps", to="erasure.subjectrequest"
                    ),
                ),
            ],
            options={
                "ordering": ["position", "place", "pk"],
                "default_permissions": (),
            },
        ),
        migrations.AddIndex(
            model_name="subjectrequest",
            index=models.Index(
                models.F("due_on"),
                models.F("number"),
                condition=models.Q(("closed_at__isnull", True)),
                name="request_open_by_due",
            ),
        ),
        migrations.AddIndex(
            model_name="subjectrequest",
            index=models.Index(
                models.OrderBy(models.F("closed_at"), descending=True),
                models.OrderBy(models.F("number"), descending=True),
                name="request_closed_newest",
            ),
        ),
        migrations.AddIndex(
            model_name="subjectrequest",
            index=models.Index(
                models.F("subject"), models.OrderBy(models.F("number"), descending=True), name="request_of_subject"
            ),
        ),
        migrations.AddConstraint(
            model_name="subjectrequest",
            constraint=models.UniqueConstraint(
                condition=models.Q(("closed_at__isnull", True)), fields=("subject", "kind"), name="request_open_once"
            ),
        ),
        migrations.AddConstraint(
            model_name="subjectrequest",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("closed_at__isnull", True), ("state__in", ["received", "checked", "awaiting"])),
                    models.Q(("closed_at__isnull", True), ("state__in", ["approved", "running", "scanning"])),
                    models.Q(
                        ("closed_at__isnull", False),
                        ("state__in", ["complete", "exceptions", "failed", "refused", "cancelled"]),
                    ),
                    _connector="OR",
                ),
                name="request_state_says_whether_it_is_closed",
            ),
        ),
        migrations.AddConstraint(
            model_name="subjectrequest",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("approved_by__isnull", True),
                    ("requested_by__isnull", True),
                    models.Q(("approved_by", models.F("requested_by")), _negated=True),
                    _connector="OR",
                ),
                name="request_approved_by_a_second_person",
            ),
        ),
        migrations.AddConstraint(
            model_name="subjectrequest",
            constraint=models.CheckConstraint(
                condition=models.Q(("closed_at__isnull", True), ("locators", b""), _connector="OR"),
                name="closed_request_has_no_locators",
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="subjectrequest",
            trigger=pgtrigger.compiler.Trigger(
                name="note_insert",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    execute="memadmin_note_rows('request', 'erasure.subjectrequest', 'number', 'ref', 'subject_id', 'kind,state,subject_id,ground,channel,received_on,due_on,first_due_on,identity_checked_by_id,requested_by_id,approved_by_id,starts_at,refusal,closed_at', '')",
                    func="RETURN NULL;",
                    hash="fd6e9b0cf3db233570db492fdf8e9b28878d6c0e",
                    level="STATEMENT",
                    operation="INSERT",
                    pgid="pgtrigger_note_insert_44a2a",
                    referencing="REFERENCING NEW TABLE AS new_rows ",
                    table="erasure_subjectrequest",
                    when="AFTER",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="subjectrequest",
            trigger=pgtrigger.compiler.Trigger(
                name="note_update",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    execute="memadmin_note_rows('request', 'erasure.subjectrequest', 'number', 'ref', 'subject_id', 'kind,state,subject_id,ground,channel,received_on,due_on,first_due_on,identity_checked_by_id,requested_by_id,approved_by_id,starts_at,refusal,closed_at', '')",
                    func="RETURN NULL;",
                    hash="ffda155102898364885a6f3d898c106c39f74599",
                    level="STATEMENT",
                    operation="UPDATE",
                    pgid="pgtrigger_note_update_526b0",
                    referencing="REFERENCING OLD TABLE AS old_rows  NEW TABLE AS new_rows ",
                    table="erasure_subjectrequest",
                    when="AFTER",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="subjectrequest",
            trigger=pgtrigger.compiler.Trigger(
                name="note_delete",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    execute="memadmin_note_rows('request', 'erasure.subjectrequest', 'number', 'ref', 'subject_id', 'kind,state,subject_id,ground,channel,received_on,due_on,first_due_on,identity_checked_by_id,requested_by_id,approved_by_id,starts_at,refusal,closed_at', '')",
                    func="RETURN NULL;",
                    hash="2f98c0a09f8d840eda5f91335c4040843ff83931",
                    level="STATEMENT",
                    operation="DELETE",
                    pgid="pgtrigger_note_delete_58eec",
                    referencing="REFERENCING OLD TABLE AS old_rows ",
                    table="erasure_subjectrequest",
                    when="AFTER",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="subjectrequest",
            trigger=pgtrigger.compiler.Trigger(
                name="note_truncate",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    execute="memadmin_note_rows('request', 'erasure.subjectrequest', 'number', 'ref', 'subject_id', 'kind,state,subject_id,ground,channel,received_on,due_on,first_due_on,identity_checked_by_id,requested_by_id,approved_by_id,starts_at,refusal,closed_at', '')",
                    func="RETURN NULL;",
                    hash="df931a176549e2116e7b397bef7ca01e36962b02",
                    level="STATEMENT",
                    operation="TRUNCATE",
                    pgid="pgtrigger_note_truncate_248d5",
                    table="erasure_subjectrequest",
                    when="AFTER",
                ),
            ),
        ),
        migrations.AddConstraint(
            model_name="erasurestep",
            constraint=models.UniqueConstraint(fields=("request", "name", "place"), name="step_of_request_once"),
        ),
    ]
