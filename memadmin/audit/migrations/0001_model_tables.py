import uuid

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.functions import RandomUUID
from django.contrib.postgres.indexes import GinIndex
from django.db import migrations, models
from django.db.models import DO_NOTHING, CheckConstraint, F, Index, Q, UniqueConstraint, Value
from django.db.models.functions import Length, Now
from django.db.models.lookups import Exact

from memadmin.audit.models import IsPlain, NumberOfConnection, Uuid7
from memadmin.migrating import RunFile

KINDS = [
    ("person", "person"),
    ("agent", "agent"),
    ("job", "background job"),
    ("command", "command"),
    ("database", "database role"),
    ("system", "system"),
]
NEWEST = (F("at").desc(), F("number").desc())


class Migration(migrations.Migration):
    """The tables of the log, with the functions that they and the triggers of governed tables call."""

    initial = True

    dependencies = []

    operations = [
        RunFile("audit", "ids.sql"),
        RunFile("audit", "proofs.sql"),
        RunFile("audit", "actors.sql"),
        RunFile("audit", "events.sql"),
        RunFile("audit", "note_rows.sql"),
        RunFile("audit", "our_rights.sql"),
        RunFile("audit", "erase.sql"),
        migrations.CreateModel(
            name="AuditEvent",
            fields=[
                ("number", models.BigAutoField(primary_key=True, serialize=False)),
                ("id", models.UUIDField(db_default=Uuid7(), editable=False, unique=True)),
                ("type", models.CharField(max_length=64)),
                ("at", models.DateTimeField()),
                ("actor_kind", models.CharField(choices=KINDS, max_length=16)),
                ("actor_ref", models.UUIDField()),
                ("role_ref", models.UUIDField()),
                ("object_kind", models.CharField(max_length=80, null=True)),
                ("object_ref", models.UUIDField(null=True)),
                ("subject_ref", models.UUIDField(null=True)),
                ("shown", ArrayField(models.UUIDField(), db_default=Value("{}"))),
                (
                    "outcome",
                    models.CharField(
                        choices=[("succeeded", "succeeded"), ("denied", "denied"), ("failed", "failed")],
                        db_default="succeeded",
                        max_length=16,
                    ),
                ),
                ("reason_code", models.CharField(db_default="", max_length=40)),
                ("counters", models.JSONField(db_default=Value("{}"))),
                ("cause", models.UUIDField(null=True)),
                ("commitment", models.BinaryField(null=True)),
                (
                    "request_id",
                    models.BigIntegerField(db_default=NumberOfConnection(Value("memadmin.request_id")), null=True),
                ),
                ("job_id", models.BigIntegerField(db_default=NumberOfConnection(Value("memadmin.job_id")), null=True)),
            ],
            options={
                "db_table": "audit_event",
                "permissions": [
                    ("view_auditevent", "Can read the audit log"),
                    ("export_log", "Can download the audit log"),
                    ("verify_log", "Can verify the audit log"),
                    ("erase_beside_log", "Can erase event details and the names of people in the audit log"),
                ],
                "default_permissions": (),
                "indexes": [
                    Index(
                        *NEWEST,
                        condition=Q(("actor_kind__in", ("agent", "job")), _negated=True),
                        name="audit_event_people_newest",
                    ),
                    Index(*NEWEST, condition=Q(("actor_kind__in", ("agent", "job"))), name="audit_event_busy_newest"),
                    Index("actor_ref", *NEWEST, name="audit_event_actor_newest"),
                    Index("type", *NEWEST, name="audit_event_type_newest"),
                    Index(
                        "object_ref",
                        *NEWEST,
                        condition=Q(("object_ref__isnull", False)),
                        name="audit_event_object_newest",
                    ),
                    Index(
                        "subject_ref",
                        *NEWEST,
                        condition=Q(("subject_ref__isnull", False)),
                        name="audit_event_subject_newest",
                    ),
                    Index(
                        "outcome",
                        *NEWEST,
                        condition=Q(("outcome", "succeeded"), _negated=True),
                        name="audit_event_outcome_newest",
                    ),
                    Index(
                        *NEWEST,
                        condition=Q(("actor_kind", "database"), ("cause__isnull", True)),
                        name="audit_event_outside_newest",
                    ),
                    Index("cause", "number", condition=Q(("cause__isnull", False)), name="audit_event_by_cause"),
                    Index(
                        "request_id",
                        *NEWEST,
                        condition=Q(("request_id__isnull", False)),
                        name="audit_event_request_newest",
                    ),
                    Index("job_id", *NEWEST, condition=Q(("job_id__isnull", False)), name="audit_event_job_newest"),
                    GinIndex(condition=Q(("shown", []), _negated=True), fields=["shown"], name="audit_event_shown_ids"),
                ],
                "constraints": [
                    CheckConstraint(
                        condition=IsPlain(
                            "id",
                            "type",
                            "actor_kind",
                            "object_kind",
                            "object_ref",
                            "shown",
                            "outcome",
                            "reason_code",
                            "counters",
                            "commitment",
                        ),
                        name="audit_event_is_plain",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="AuditLeaf",
            fields=[
                ("index", models.BigIntegerField(primary_key=True, serialize=False)),
                ("event_number", models.BigIntegerField(unique=True)),
                ("hash", models.BinaryField()),
            ],
            options={
                "db_table": "audit_leaf",
                "default_permissions": (),
                "constraints": [
                    CheckConstraint(condition=Q(("index__gte", 0)), name="audit_leaf_index"),
                    CheckConstraint(condition=Exact(Length("hash"), 32), name="audit_leaf_hash"),
                ],
            },
        ),
        migrations.CreateModel(
            name="AuditNode",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "level", "index", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("level", models.SmallIntegerField()),
                ("index", models.BigIntegerField()),
                ("hash", models.BinaryField()),
            ],
            options={
                "db_table": "audit_node",
                "default_permissions": (),
                "constraints": [CheckConstraint(condition=Exact(Length("hash"), 32), name="audit_node_hash")],
            },
        ),
        migrations.CreateModel(
            name="AuditPending",
            fields=[("number", models.BigIntegerField(primary_key=True, serialize=False))],
            options={"db_table": "audit_pending", "default_permissions": ()},
        ),
        migrations.CreateModel(
            name="AuditVerdict",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("at", models.DateTimeField(db_default=Now())),
                ("verdict", models.CharField(max_length=16)),
                ("size", models.BigIntegerField()),
                ("root", models.BinaryField(null=True)),
                ("findings", models.JSONField(db_default=Value("[]"))),
            ],
            options={"db_table": "audit_verdict", "get_latest_by": "at", "default_permissions": ()},
        ),
        migrations.CreateModel(
            name="AuditActor",
            fields=[
                (
                    "ref",
                    models.UUIDField(
                        db_default=RandomUUID(), default=uuid.uuid4, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("kind", models.CharField(choices=KINDS, max_length=16)),
                ("label", models.CharField(max_length=200)),
                ("user_id", models.BigIntegerField(null=True)),
                ("first_seen_at", models.DateTimeField(db_default=Now())),
            ],
            options={
                "db_table": "audit_actor",
                "default_permissions": (),
                "constraints": [
                    UniqueConstraint(fields=("kind", "user_id"), name="audit_actor_of_user"),
                    UniqueConstraint(
                        condition=Q(("user_id__isnull", True)), fields=("kind", "label"), name="audit_actor_of_label"
                    ),
                    CheckConstraint(
                        condition=Q(("kind__in", ["person", "agent", "job", "command", "database", "system"])),
                        name="audit_actor_kind",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="AuditAnchor",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("checkpoint_size", models.BigIntegerField()),
                ("sink", models.CharField(max_length=64)),
                ("at", models.DateTimeField(db_default=Now())),
                ("outcome", models.CharField(max_length=16)),
                ("receipt", models.TextField(db_default="")),
            ],
            options={
                "db_table": "audit_anchor",
                "default_permissions": (),
                "indexes": [Index("sink", F("checkpoint_size").desc(), name="audit_anchor_by_sink")],
            },
        ),
        migrations.CreateModel(
            name="AuditCheckpoint",
            fields=[
                ("size", models.BigIntegerField(primary_key=True, serialize=False)),
                ("root", models.BinaryField()),
                ("at", models.DateTimeField()),
                ("key_id", models.CharField(max_length=64)),
                ("note", models.TextField()),
            ],
            options={
                "db_table": "audit_checkpoint",
                "default_permissions": (),
                "constraints": [CheckConstraint(condition=Exact(Length("root"), 32), name="audit_checkpoint_root")],
            },
        ),
        migrations.CreateModel(
            name="AuditDetail",
            fields=[
                (
                    "event",
                    models.OneToOneField(
                        "audit.auditevent",
                        DO_NOTHING,
                        db_constraint=False,
                        primary_key=True,
                        related_name="detail",
                        serialize=False,
                        to_field="id",
                    ),
                ),
                ("salt", models.BinaryField()),
                ("details", models.TextField()),
            ],
            options={
                "db_table": "audit_detail",
                "default_permissions": (),
                "constraints": [CheckConstraint(condition=Exact(Length("salt"), 32), name="audit_detail_salt")],
            },
        ),
    ]
