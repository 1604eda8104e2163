import uuid

from django.conf import settings
from django.contrib.postgres.functions import RandomUUID
from django.db import migrations, models
from django.db.models import CASCADE, PROTECT, SET_NULL, CheckConstraint, F, Index, Q, UniqueConstraint
from django.db.models.functions import Now

USER = settings.AUTH_USER_MODEL


class Migration(migrations.Migration):
    """Legal holds, retention policies and the results of their runs."""

    initial = True

    dependencies = [
        migrations.swappable_dependency(USER),
        ("runs", "0001_model_tables"),
        ("sessions_app", "0001_model_tables"),
    ]

    operations = [
        migrations.CreateModel(
            name="HoldLock",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("last_number", models.BigIntegerField(db_default=0)),
            ],
            options={"default_permissions": ()},
        ),
        migrations.CreateModel(
            name="RetentionPolicy",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        db_default=RandomUUID(), default=uuid.uuid4, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("name", models.CharField(max_length=80, unique=True)),
                ("is_default", models.BooleanField(db_default=False, default=False, editable=False)),
                ("created_at", models.DateTimeField(db_default=Now(), editable=False)),
            ],
            options={
                "verbose_name_plural": "retention policies",
                "permissions": [
                    ("view_policy", "Can see retention policies and their runs"),
                    ("change_policy", "Can propose and cancel changes of retention policies"),
                    ("approve_policy", "Can approve changes of retention policies"),
                ],
                "default_permissions": (),
                "constraints": [
                    UniqueConstraint(
                        condition=Q(("is_default", True)), fields=("is_default",), name="one_default_policy"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="PolicyVersion",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        db_default=RandomUUID(), default=uuid.uuid4, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("number", models.PositiveIntegerField()),
                ("target", models.CharField(max_length=20)),
                ("store", models.CharField(blank=True, db_default="", default="", max_length=64)),
                ("session_pattern", models.CharField(blank=True, db_default="", default="", max_length=300)),
                ("agent", models.CharField(blank=True, db_default="", default="", max_length=200)),
                ("label", models.CharField(blank=True, db_default="", default="", max_length=50)),
                ("subject_kind", models.CharField(blank=True, db_default="", default="", max_length=16)),
                ("is_encrypted", models.BooleanField(blank=True, null=True)),
                ("kind", models.CharField(blank=True, db_default="", default="", max_length=20)),
                ("status", models.CharField(blank=True, db_default="", default="", max_length=20)),
                ("clock", models.CharField(max_length=20)),
                (
                    "action",
                    models.CharField(
                        choices=[
                            ("keep", "keep"),
                            ("delete", "delete"),
                            ("redact", "redact"),
                            ("expire", "expire"),
                            ("revalidate", "send to re-validation"),
                        ],
                        max_length=12,
                    ),
                ),
                ("length_count", models.PositiveIntegerField(blank=True, null=True)),
                (
                    "length_unit",
                    models.CharField(
                        blank=True,
                        choices=[("days", "days"), ("months", "months"), ("years", "years")],
                        db_default="",
                        default="",
                        max_length=6,
                    ),
                ),
                ("minimum_count", models.PositiveIntegerField(blank=True, null=True)),
                (
                    "minimum_unit",
                    models.CharField(
                        blank=True,
                        choices=[("days", "days"), ("months", "months"), ("years", "years")],
                        db_default="",
                        default="",
                        max_length=6,
                    ),
                ),
                ("minimum_reference", models.CharField(blank=True, db_default="", default="", max_length=300)),
                ("note", models.CharField(blank=True, db_default="", default="", max_length=500)),
                ("is_end", models.BooleanField(db_default=False, default=False)),
                ("reason", models.CharField(blank=True, db_default="", default="", max_length=500)),
                ("proposed_at", models.DateTimeField(db_default=Now())),
                ("preview", models.JSONField(db_default={}, default=dict)),
                ("needs_approval", models.BooleanField(db_default=True, default=True)),
                ("approved_at", models.DateTimeField(null=True)),
                ("starts_at", models.DateTimeField(null=True)),
                (
                    "closed_as",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("withdrawn", "withdrawn"),
                            ("rejected", "rejected"),
                            ("cancelled", "cancelled in the grace period"),
                        ],
                        db_default="",
                        default="",
                        max_length=12,
                    ),
                ),
                ("closed_at", models.DateTimeField(null=True)),
                ("closing_reason", models.CharField(blank=True, db_default="", default="", max_length=500)),
                ("approved_by", models.ForeignKey(USER, SET_NULL, null=True, related_name="+")),
                ("closed_by", models.ForeignKey(USER, SET_NULL, null=True, related_name="+")),
                ("proposed_by", models.ForeignKey(USER, SET_NULL, null=True, related_name="+")),
                ("policy", models.ForeignKey("retention.retentionpolicy", PROTECT, related_name="versions")),
            ],
            options={
                "default_permissions": (),
                "constraints": [
                    UniqueConstraint(fields=("policy", "number"), name="policy_version_number"),
                    UniqueConstraint(
                        condition=Q(("closed_at__isnull", True), ("starts_at__isnull", True)),
                        fields=("policy",),
                        name="policy_one_change_awaits",
                    ),
                    CheckConstraint(
                        condition=Q(
                            Q(("action", "keep"), ("length_count__isnull", True), ("length_unit", "")),
                            Q(
                                Q(("action", "keep"), _negated=True),
                                ("length_count__gte", 1),
                                Q(("length_unit", ""), _negated=True),
                            ),
                            _connector="OR",
                        ),
                        name="policy_length_unless_kept",
                    ),
                    CheckConstraint(
                        condition=Q(
                            Q(("minimum_count__isnull", True), ("minimum_reference", ""), ("minimum_unit", "")),
                            Q(
                                ("minimum_count__gte", 1),
                                Q(("minimum_unit", ""), _negated=True),
                                Q(("minimum_reference", ""), _negated=True),
                            ),
                            _connector="OR",
                        ),
                        name="policy_minimum_has_reference",
                    ),
                    CheckConstraint(
                        condition=Q(
                            ("starts_at__isnull", True),
                            ("needs_approval", False),
                            ("approved_at__isnull", False),
                            _connector="OR",
                        ),
                        name="policy_starts_after_approval",
                    ),
                    CheckConstraint(
                        condition=Q(
                            ("approved_by__isnull", True),
                            ("proposed_by__isnull", True),
                            Q(("approved_by", F("proposed_by")), _negated=True),
                            _connector="OR",
                        ),
                        name="policy_approved_by_a_second_person",
                    ),
                    CheckConstraint(
                        condition=Q(
                            Q(("closed_as", ""), ("closed_at__isnull", True)),
                            Q(Q(("closed_as", ""), _negated=True), ("closed_at__isnull", False)),
                            _connector="OR",
                        ),
                        name="policy_closed_for_a_reason",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="SweepResult",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("place", models.CharField(blank=True, db_default="", default="", max_length=64)),
                ("position", models.PositiveIntegerField(db_default=0, default=0)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("to_do", "waiting"),
                            ("running", "running"),
                            ("done", "done"),
                            ("skipped", "skipped"),
                        ],
                        db_default="to_do",
                        default="to_do",
                        max_length=8,
                    ),
                ),
                ("reason", models.CharField(blank=True, db_default="", default="", max_length=400)),
                ("previewed", models.BigIntegerField(null=True)),
                ("previewed_items", models.BigIntegerField(null=True)),
                ("taken", models.BigIntegerField(db_default=0, default=0)),
                ("items", models.BigIntegerField(db_default=0, default=0)),
                ("held", models.BigIntegerField(db_default=0, default=0)),
                ("live", models.BigIntegerField(db_default=0, default=0)),
                ("left", models.JSONField(db_default={}, default=dict)),
                ("tables", models.JSONField(db_default={}, default=dict)),
                ("has_asked", models.BooleanField(db_default=False, default=False)),
                ("cursor", models.JSONField(db_default={}, default=dict)),
                ("started_at", models.DateTimeField(null=True)),
                ("ended_at", models.DateTimeField(null=True)),
                ("backlog", models.BigIntegerField(null=True)),
                ("behind_since", models.DateTimeField(null=True)),
                ("forecast", models.BigIntegerField(null=True)),
                ("run", models.ForeignKey("runs.run", CASCADE, related_name="sweep_results")),
                ("version", models.ForeignKey("retention.policyversion", PROTECT, related_name="results")),
            ],
            options={
                "default_permissions": (),
                "indexes": [Index(fields=["version", "place", "-id"], name="sweep_result_of_version")],
                "constraints": [UniqueConstraint(fields=("run", "version", "place"), name="sweep_result_once")],
            },
        ),
        migrations.CreateModel(
            name="SweepAlert",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "about",
                    models.CharField(
                        choices=[
                            ("stopped", "the run stopped or failed"),
                            ("incomplete", "the run has exceptions"),
                            ("backlog", "what is due grew in three runs in a row"),
                            ("silent", "no run has succeeded for two nights"),
                        ],
                        max_length=10,
                    ),
                ),
                ("at", models.DateTimeField(auto_now_add=True)),
                ("run", models.ForeignKey("runs.run", CASCADE, related_name="sweep_alerts")),
                ("result", models.ForeignKey("retention.sweepresult", CASCADE, null=True, related_name="alerts")),
            ],
            options={"default_permissions": ()},
        ),
        migrations.CreateModel(
            name="SweptTable",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=127)),
                ("rows", models.BigIntegerField(help_text="deleted or changed by the run")),
                ("size_before", models.BigIntegerField()),
                ("size_after", models.BigIntegerField(null=True)),
                ("vacuumed_at", models.DateTimeField(null=True)),
                ("run", models.ForeignKey("runs.run", CASCADE, related_name="swept_tables")),
            ],
            options={
                "default_permissions": (),
                "indexes": [Index(fields=["name", "-id"], name="swept_table_newest")],
                "constraints": [
                    UniqueConstraint(fields=("run", "name"), name="swept_table_once"),
                    CheckConstraint(
                        condition=Q(
                            Q(("size_after__isnull", True), ("vacuumed_at__isnull", True)),
                            Q(("size_after__isnull", False), ("vacuumed_at__isnull", False)),
                            _connector="OR",
                        ),
                        name="swept_table_size_after_vacuum",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="UnfinishedExpiry",
            fields=[
                ("record_id", models.UUIDField(primary_key=True, serialize=False)),
                ("since", models.DateTimeField(auto_now_add=True)),
                ("items", models.BigIntegerField(null=True)),
                ("item_marks", models.JSONField(null=True)),
                ("version", models.ForeignKey("retention.policyversion", PROTECT, related_name="+")),
            ],
            options={"default_permissions": ()},
        ),
        migrations.CreateModel(
            name="LegalHold",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        db_default=RandomUUID(), default=uuid.uuid4, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("number", models.BigIntegerField(db_default=0, editable=False, unique=True)),
                ("record_id", models.UUIDField(null=True)),
                ("label", models.CharField(db_default="", default="", max_length=50)),
                ("session_id", models.CharField(db_default="", default="")),
                ("reason", models.CharField(max_length=500)),
                ("review_on", models.DateField()),
                ("placed_at", models.DateTimeField(db_default=Now())),
                ("release_requested_at", models.DateTimeField(null=True)),
                ("release_reason", models.CharField(db_default="", default="", max_length=500)),
                ("released_at", models.DateTimeField(null=True)),
                ("owner", models.ForeignKey(USER, SET_NULL, null=True, related_name="+")),
                ("placed_by", models.ForeignKey(USER, SET_NULL, null=True, related_name="+")),
                ("release_requested_by", models.ForeignKey(USER, SET_NULL, null=True, related_name="+")),
                ("released_by", models.ForeignKey(USER, SET_NULL, null=True, related_name="+")),
                (
                    "subject",
                    models.ForeignKey(
                        "sessions_app.subject",
                        PROTECT,
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        related_name="holds",
                    ),
                ),
            ],
            options={
                "permissions": [
                    ("view_hold", "Can see legal holds"),
                    ("place_hold", "Can place legal holds and request their release"),
                    ("release_hold", "Can approve the release of legal holds"),
                ],
                "default_permissions": (),
                "indexes": [
                    Index("subject", condition=Q(("released_at__isnull", True)), name="hold_on_subject"),
                    Index("record_id", condition=Q(("released_at__isnull", True)), name="hold_on_session"),
                    Index("label", condition=Q(("released_at__isnull", True)), name="hold_on_label"),
                ],
                "constraints": [
                    CheckConstraint(
                        condition=Q(
                            Q(("label", ""), ("record_id__isnull", True), ("subject__isnull", False)),
                            Q(("label", ""), ("record_id__isnull", False), ("subject__isnull", True)),
                            Q(("record_id__isnull", True), ("subject__isnull", True), Q(("label", ""), _negated=True)),
                            _connector="OR",
                        ),
                        name="hold_covers_one_thing",
                    ),
                    CheckConstraint(
                        condition=Q(
                            ("released_at__isnull", True), ("release_requested_at__isnull", False), _connector="OR"
                        ),
                        name="hold_release_was_requested",
                    ),
                    CheckConstraint(
                        condition=Q(
                            ("released_by__isnull", True),
                            ("release_requested_by__isnull", True),
                            Q(("released_by", F("release_requested_by")), _negated=True),
                            _connector="OR",
                        ),
                        name="hold_released_by_a_second_person",
                    ),
                ],
            },
        ),
    ]
