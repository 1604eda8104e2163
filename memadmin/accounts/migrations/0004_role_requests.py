import uuid

import django.db.models.deletion
import django.db.models.functions.datetime
import pgtrigger.compiler
import pgtrigger.migrations
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    """Rights that open content, decide or administer take a second administrator, and a notice to compliance."""

    dependencies = [
        ("accounts", "0003_triggers"),
        ("auth", "0012_alter_user_first_name_max_length"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AlterField(
            model_name="notice",
            name="kind",
            field=models.CharField(
                choices=[
                    ("requested", "a grant waits for a second person"),
                    ("opened_alone", "a grant opened without a second person"),
                    ("review", "a grant waits for review"),
                    ("reading", "a person opened unusually many sessions"),
                    ("role", "a person got a right that opens content, decides or administers"),
                ],
                max_length=16,
            ),
        ),
        migrations.CreateModel(
            name="RoleRequest",
            fields=[
                ("id", models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ("is_superuser", models.BooleanField(db_default=False, default=False)),
                (
                    "requested_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False),
                ),
                (
                    "reason",
                    models.CharField(
                        choices=[
                            ("correction", "correction of a wrong record"),
                            ("staff", "change of staff or duties"),
                            ("subject_request", "data-subject request (access or erasure)"),
                            ("incident", "incident"),
                            ("upkeep", "maintenance of the installation"),
                        ],
                        max_length=32,
                    ),
                ),
                ("explanation", models.TextField(blank=True, max_length=2000)),
                ("decided_at", models.DateTimeField(editable=False, null=True)),
                ("granted_at", models.DateTimeField(editable=False, null=True)),
                (
                    "decided_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "permission",
                    models.ForeignKey(
                        null=True, on_delete=django.db.models.deletion.CASCADE, related_name="+", to="auth.permission"
                    ),
                ),
                (
                    "person",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="role_requests",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "requested_by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
                (
                    "role",
                    models.ForeignKey(
                        null=True, on_delete=django.db.models.deletion.CASCADE, related_name="+", to="auth.group"
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        models.F("requested_at"),
                        models.F("id"),
                        condition=models.Q(("decided_at__isnull", True)),
                        name="role_request_waiting",
                    ),
                    models.Index(
                        models.OrderBy(models.F("requested_at"), descending=True),
                        models.OrderBy(models.F("id"), descending=True),
                        name="role_request_newest",
                    ),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("is_superuser", False), ("permission__isnull", True), ("role__isnull", False)),
                            models.Q(("is_superuser", False), ("permission__isnull", False), ("role__isnull", True)),
                            models.Q(("is_superuser", True), ("permission__isnull", True), ("role__isnull", True)),
                            _connector="OR",
                        ),
                        name="role_request_for_one_right",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("granted_at__isnull", True),
                            models.Q(
                                ("decided_by__isnull", False),
                                models.Q(("decided_by", models.F("requested_by")), _negated=True),
                                models.Q(("decided_by", models.F("person")), _negated=True),
                            ),
                            _connector="OR",
                        ),
                        name="role_request_granted_by_another",
                    ),
                ],
            },
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="rolerequest",
            trigger=pgtrigger.compiler.Trigger(
                name="note_insert",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    execute="memadmin_note_rows('role_request', 'accounts.rolerequest', 'id', 'uuid', '', 'person_id,role_id,permission_id,is_superuser,requested_by_id,reason,decided_by_id,decided_at,granted_at', '')",
                    func="RETURN NULL;",
                    hash="ec306001c3563fac7a5170d6361ed208e08d02ea",
                    level="STATEMENT",
                    operation="INSERT",
                    pgid="pgtrigger_note_insert_33909",
                    referencing="REFERENCING NEW TABLE AS new_rows ",
                    table="accounts_rolerequest",
                    when="AFTER",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="rolerequest",
            trigger=pgtrigger.compiler.Trigger(
                name="note_update",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    execute="memadmin_note_rows('role_request', 'accounts.rolerequest', 'id', 'uuid', '', 'person_id,role_id,permission_id,is_superuser,requested_by_id,reason,decided_by_id,decided_at,granted_at', '')",
                    func="RETURN NULL;",
                    hash="5bede3b536a6fc20842ad02e7b7ec83fb11e9dc9",
                    level="STATEMENT",
                    operation="UPDATE",
                    pgid="pgtrigger_note_update_c3d40",
                    referencing="REFERENCING OLD TABLE AS old_rows  NEW TABLE AS new_rows ",
                    table="accounts_rolerequest",
                    when="AFTER",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="rolerequest",
            trigger=pgtrigger.compiler.Trigger(
                name="note_delete",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    execute="memadmin_note_rows('role_request', 'accounts.rolerequest', 'id', 'uuid', '', 'person_id,role_id,permission_id,is_superuser,requested_by_id,reason,decided_by_id,decided_at,granted_at', '')",
                    func="RETURN NULL;",
                    hash="1da489d3c68c985b316ebed6efee1db20e9ee34c",
                    level="STATEMENT",
                    operation="DELETE",
                    pgid="pgtrigger_note_delete_3d72c",
                    referencing="REFERENCING OLD TABLE AS old_rows ",
                    table="accounts_rolerequest",
                    when="AFTER",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="rolerequest",
            trigger=pgtrigger.compiler.Trigger(
                name="note_truncate",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    execute="memadmin_note_rows('role_request', 'accounts.rolerequest', 'id', 'uuid', '', 'person_id,role_id,permission_id,is_superuser,requested_by_id,reason,decided_by_id,decided_at,granted_at', '')",
                    func="RETURN NULL;",
                    hash="05705e7b73a3ab4d8e838e6c6475fd0f13e4eddb",
                    level="STATEMENT",
                    operation="TRUNCATE",
                    pgid="pgtrigger_note_truncate_ad070",
                    table="accounts_rolerequest",
                    when="AFTER",
                ),
            ),
        ),
    ]
