import datetime
import uuid

import django.contrib.auth.models
import django.db.models.deletion
import django.db.models.expressions
import django.db.models.functions.datetime
import pgtrigger.compiler
from django.conf import settings
from django.db import migrations, models

from memadmin.migrating import RunFile


class Migration(migrations.Migration):
    """Grants, the notices about them and about reading, and the cache; triggers follow after the first rows."""

    initial = True

    dependencies = [
        ("auth", "0012_alter_user_first_name_max_length"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="GovernedUser",
            fields=[],
            options={
                "proxy": True,
                "default_permissions": (),
                "triggers": [
                    pgtrigger.compiler.Trigger(
                        name="make_actor",
                        sql=pgtrigger.compiler.UpsertTriggerSql(
                            execute="memadmin_make_actor()",
                            func="RETURN NULL;",
                            hash="a6d3bb00a32a01cd2c84c31360057290e9339df6",
                            operation="INSERT",
                            pgid="pgtrigger_make_actor_44748",
                            table="auth_user",
                            when="AFTER",
                        ),
                    ),
                    pgtrigger.compiler.Trigger(
                        name="forget_actor",
                        sql=pgtrigger.compiler.UpsertTriggerSql(
                            execute="memadmin_forget_actor()",
                            func="RETURN NULL;",
                            hash="472a226869301b7f5a1c09766454d7ca31c0fb7f",
                            operation="DELETE",
                            pgid="pgtrigger_forget_actor_4e893",
                            table="auth_user",
                            when="AFTER",
                        ),
                    ),
                    pgtrigger.compiler.Trigger(
                        name="note_insert",
                        sql=pgtrigger.compiler.UpsertTriggerSql(
                            execute="memadmin_note_rows('user', 'auth.user', 'id', 'ref', '', 'username,first_name,last_name,email,is_active,is_staff,is_superuser,password', 'password')",
                            func="RETURN NULL;",
                            hash="ff6addcab1feae30af5a5ba0c886f3c274259915",
                            level="STATEMENT",
                            operation="INSERT",
                            pgid="pgtrigger_note_insert_2df37",
                            referencing="REFERENCING NEW TABLE AS new_rows ",
                            table="auth_user",
                            when="AFTER",
                        ),
                    ),
                    pgtrigger.compiler.Trigger(
                        name="note_update",
                        sql=pgtrigger.compiler.UpsertTriggerSql(
                            execute="memadmin_note_rows('user', 'auth.user', 'id', 'ref', '', 'username,first_name,last_name,email,is_active,is_staff,is_superuser,password', 'password')",
                            func="RETURN NULL;",
                            hash="63361feff63e4c56ba72ea6e4047c3089515416a",
                            level="STATEMENT",
                            operation="UPDATE",
                            pgid="pgtrigger_note_update_94c31",
                            referencing="REFERENCING OLD TABLE AS old_rows  NEW TABLE AS new_rows ",
                            table="auth_user",
                            when="AFTER",
                        ),
                    ),
                    pgtrigger.compiler.Trigger(
                        name="note_delete",
                        sql=pgtrigger.compiler.UpsertTriggerSql(
                            execute="memadmin_note_rows('user', 'auth.user', 'id', 'ref', '', '', 'password')",
                            func="RETURN NULL;",
                            hash="750958d0f210bfb84d058504bb18efab63a58b2e",
                            level="STATEMENT",
                            operation="DELETE",
                            pgid="pgtrigger_note_delete_7a295",
                            referencing="REFERENCING OLD TABLE AS old_rows ",
                            table="auth_user",
                            when="AFTER",
                        ),
                    ),
                    pgtrigger.compiler.Trigger(
                        name="note_truncate",
                        sql=pgtrigger.compiler.UpsertTriggerSql(
                            execute="memadmin_note_rows('user', 'auth.user', 'id', 'ref', '', 'username,first_name,last_name,email,is_active,is_staff,is_superuser,password', 'password')",
                            func="RETURN NULL;",
                            hash="d53114744be0ea20c2c5ff84d165fb45204e6dc4",
                            level="STATEMENT",
                            operation="TRUNCATE",
                            pgid="pgtrigger_note_truncate_fa2fd",
                            table="auth_user",
                            when="AFTER",
                        ),
                    ),
                ],
            },
            bases=("auth.user",),
            managers=[
                ("objects", django.contrib.auth.models.UserManager()),
            ],
        ),
        migrations.CreateModel(
            name="GovernedGroup",
            fields=[],
            options={
                "proxy": True,
                "default_permissions": (),
                "triggers": [
                    pgtrigger.compiler.Trigger(
                        name="note_insert",
                        sql=pgtrigger.compiler.UpsertTriggerSql(
                            execute="memadmin_note_rows('role', 'auth.group', 'id', 'ref', '', 'name', '')",
                            func="RETURN NULL;",
                            hash="4cac362b8fd84cd2263b737013bef03947a522c5",
                            level="STATEMENT",
                            operation="INSERT",
                            pgid="pgtrigger_note_insert_35f59",
                            referencing="REFERENCING NEW TABLE AS new_rows ",
                            table="auth_group",
                            when="AFTER",
                        ),
                    ),
                    pgtrigger.compiler.Trigger(
                        name="note_update",
                        sql=pgtrigger.compiler.UpsertTriggerSql(
                            execute="memadmin_note_rows('role', 'auth.group', 'id', 'ref', '', 'name', '')",
                            func="RETURN NULL;",
                            hash="3db27dea2ac0700a3d32b4298a1fa9d3858efe3d",
                            level="STATEMENT",
                            operation="UPDATE",
                            pgid="pgtrigger_note_update_851c7",
                            referencing="REFERENCING OLD TABLE AS old_rows  NEW TABLE AS new_rows ",
                            table="auth_group",
                            when="AFTER",
                        ),
                    ),
                    pgtrigger.compiler.Trigger(
                        name="note_delete",
                        sql=pgtrigger.compiler.UpsertTriggerSql(
                            execute="memadmin_note_rows('role', 'auth.group', 'id', 'ref', '', 'name', '')",
                            func="RETURN NULL;",
                            hash="5ef2a18ead1da0bb510aa1de6cf086dda61d2ae0",
                            level="STATEMENT",
                            operation="DELETE",
                            pgid="pgtrigger_note_delete_0e173",
                            referencing="REFERENCING OLD TABLE AS old_rows ",
                            table="auth_group",
                            when="AFTER",
                        ),
                    ),
                    pgtrigger.compiler.Trigger(
                        name="note_truncate",
                        sql=pgtrigger.compiler.UpsertTriggerSql(
                            execute="memadmin_note_rows('role', 'auth.group', 'id', 'ref', '', 'name', '')",
                            func="RETURN NULL;",
                            hash="e299de8618401d232ddb7037c7e395e3b08b3e28",
                            level="STATEMENT",
                            operation="TRUNCATE",
                            pgid="pgtrigger_note_truncate_b4e65",
                            table="auth_group",
                            when="AFTER",
                        ),
                    ),
                ],
            },
            bases=("auth.group",),
            managers=[
                ("objects", django.contrib.auth.models.GroupManager()),
            ],
        ),
        migrations.CreateModel(
            name="UserRole",
            fields=[],
            options={
                "proxy": True,
                "default_permissions": (),
                "triggers": [
                    pgtrigger.compiler.Trigger(
                        name="note_insert",
                        sql=pgtrigger.compiler.UpsertTriggerSql(
                            execute="memadmin_note_rows('user_role', 'auth.user_groups', 'id', 'ref', '', 'user_id,group_id', '')",
                            func="RETURN NULL;",
                            hash="1bc75d7bb22456c47b130bab37d5c132f483686c",
                            level="STATEMENT",
                            operation="INSERT",
                            pgid="pgtrigger_note_insert_28b75",
                            referencing="REFERENCING NEW TABLE AS new_rows ",
                            table="auth_user_groups",
                            when="AFTER",
                        ),
                    ),
                    pgtrigger.compiler.Trigger(
                        name="note_update",
                        sql=pgtrigger.compiler.UpsertTriggerSql(
                            execute="memadmin_note_rows('user_role', 'auth.user_groups', 'id', 'ref', '', 'user_id,group_id', '')",
                            func="RETURN NULL;",
                            hash="73698a6f3044ffbc8ccb6cb11250774479a9028f",
                            level="STATEMENT",
                            operation="UPDATE",
                            pgid="pgtrigger_note_update_4d888",
                            referencing="REFERENCING OLD TABLE AS old_rows  NEW TABLE AS new_rows ",
                            table="auth_user_groups",
                            when="AFTER",
                        ),
                    ),
                    pgtrigger.compiler.Trigger(
                        name="note_delete",
                        sql=pgtrigger.compiler.UpsertTriggerSql(
                            execute="memadmin_note_rows('user_role', 'auth.user_groups', 'id', 'ref', '', 'user_id,group_id', '')",
                            func="RETURN NULL;",
                            hash="3fac32ec6a9a1269c7a35921bb3d76c457ba4561",
                            level="STATEMENT",
                            operation="DELETE",
                            pgid="pgtrigger_note_delete_d6063",
                            referencing="REFERENCING OLD TABLE AS old_rows ",
                            table="auth_user_groups",
                            when="AFTER",
                        ),
                    ),
                    pgtrigger.compiler.Trigger(
                        name="note_truncate",
                        sql=pgtrigger.compiler.UpsertTriggerSql(
                            execute="memadmin_note_rows('user_role', 'auth.user_groups', 'id', 'ref', '', 'user_id,group_id', '')",
                            func="RETURN NULL;",
                            hash="853d8423351db6a49dc9c2d23fbaf4d19579b3ee",
                            level="STATEMENT",
                            operation="TRUNCATE",
                            pgid="pgtrigger_note_truncate_30e21",
                            table="auth_user_groups",
                            when="AFTER",
                        ),
                    ),
                ],
            },
            bases=("auth.user_groups",),
        ),
        migrations.CreateModel(
            name="UserPermission",
            fields=[],
            options={
                "proxy": True,
                "default_permissions": (),
                "triggers": [
                    pgtrigger.compiler.Trigger(
                        name="note_insert",
                        sql=pgtrigger.compiler.UpsertTriggerSql(
                            execute="memadmin_note_rows('user_permission', 'auth.user_user_permissions', 'id', 'ref', '', 'user_id,permission_id', '')",
                            func="RETURN NULL;",
                            hash="a85b1f513264afe4312da3bb1732349caa489248",
                            level="STATEMENT",
                            operation="INSERT",
                            pgid="pgtrigger_note_insert_147fd",
                            referencing="REFERENCING NEW TABLE AS new_rows ",
                            table="auth_user_user_permissions",
                            when="AFTER",
                        ),
                    ),
                    pgtrigger.compiler.Trigger(
                        name="note_update",
                        sql=pgtrigger.compiler.UpsertTriggerSql(
                            execute="memadmin_note_rows('user_permission', 'auth.user_user_permissions', 'id', 'ref', '', 'user_id,permission_id', '')",
                            func="RETURN NULL;",
                            hash="8f7e9694179295bc622184b9960b679d7a451266",
                            level="STATEMENT",
                            operation="UPDATE",
                            pgid="pgtrigger_note_update_4899f",
                            referencing="REFERENCING OLD TABLE AS old_rows  NEW TABLE AS new_rows ",
                            table="auth_user_user_permissions",
                            when="AFTER",
                        ),
                    ),
                    pgtrigger.compiler.Trigger(
                        name="note_delete",
                        sql=pgtrigger.compiler.UpsertTriggerSql(
                            execute="memadmin_note_rows('user_permission', 'auth.user_user_permissions', 'id', 'ref', '', 'user_id,permission_id', '')",
                            func="RETURN NULL;",
                            hash="cdc65f776be866f4f93ed0afc659facb516544b6",
                            level="STATEMENT",
                            operation="DELETE",
                            pgid="pgtrigger_note_delete_c0f99",
                            referencing="REFERENCING OLD TABLE AS old_rows ",
                            table="auth_user_user_permissions",
                            when="AFTER",
                        ),
                    ),
                    pgtrigger.compiler.Trigger(
                        name="note_truncate",
                        sql=pgtrigger.compiler.UpsertTriggerSql(
                            execute="memadmin_note_rows('user_permission', 'auth.user_user_permissions', 'id', 'ref', '', 'user_id,permission_id', '')",
                            func="RETURN NULL;",
                            hash="af2215a9489f56b29d76d23e80ad80aaf7f19e5f",
                            level="STATEMENT",
                            operation="TRUNCATE",
                            pgid="pgtrigger_note_truncate_79986",
                            table="auth_user_user_permissions",
                            when="AFTER",
                        ),
                    ),
                ],
            },
            bases=("auth.user_user_permissions",),
        ),
        migrations.CreateModel(
            name="RolePermission",
            fields=[],
            options={
                "proxy": True,
                "default_permissions": (),
                "triggers": [
                    pgtrigger.compiler.Trigger(
                        name="note_insert",
                        sql=pgtrigger.compiler.UpsertTriggerSql(
                            execute="memadmin_note_rows('role_permission', 'auth.group_permissions', 'id', 'ref', '', 'group_id,permission_id', '')",
                            func="RETURN NULL;",
                            hash="03733d9856bebde96de708aa76e8f855ab58f506",
                            level="STATEMENT",
                            operation="INSERT",
                            pgid="pgtrigger_note_insert_cc32c",
                            referencing="REFERENCING NEW TABLE AS new_rows ",
                            table="auth_group_permissions",
                            when="AFTER",
                        ),
                    ),
                    pgtrigger.compiler.Trigger(
                        name="note_update",
                        sql=pgtrigger.compiler.UpsertTriggerSql(
                            execute="memadmin_note_rows('role_permission', 'auth.group_permissions', 'id', 'ref', '', 'group_id,permission_id', '')",
                            func="RETURN NULL;",
                            hash="6d50d701dadd9eafdd279f453f6222c198271c32",
                            level="STATEMENT",
                            operation="UPDATE",
                            pgid="pgtrigger_note_update_81f6a",
                            referencing="REFERENCING OLD TABLE AS old_rows  NEW TABLE AS new_rows ",
                            table="auth_group_permissions",
                            when="AFTER",
                        ),
                    ),
                    pgtrigger.compiler.Trigger(
                        name="note_delete",
                        sql=pgtrigger.compiler.UpsertTriggerSql(
                            execute="memadmin_note_rows('role_permission', 'auth.group_permissions', 'id', 'ref', '', 'group_id,permission_id', '')",
                            func="RETURN NULL;",
                            hash="d15ebe9f19d41dab021de76e00d7d3f9e8fca390",
                            level="STATEMENT",
                            operation="DELETE",
                            pgid="pgtrigger_note_delete_57a84",
                            referencing="REFERENCING OLD TABLE AS old_rows ",
                            table="auth_group_permissions",
                            when="AFTER",
                        ),
                    ),
                    pgtrigger.compiler.Trigger(
                        name="note_truncate",
                        sql=pgtrigger.compiler.UpsertTriggerSql(
                            execute="memadmin_note_rows('role_permission', 'auth.group_permissions', 'id', 'ref', '', 'group_id,permission_id', '')",
                            func="RETURN NULL;",
                            hash="bc8bb3cafcffeff5a05000108bed99754979fd84",
                            level="STATEMENT",
                            operation="TRUNCATE",
                            pgid="pgtrigger_note_truncate_78e5a",
                            table="auth_group_permissions",
                            when="AFTER",
                        ),
                    ),
                ],
            },
            bases=("auth.group_permissions",),
        ),
        migrations.CreateModel(
            name="ContentGrant",
            fields=[
                ("id", models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                (
                    "requested_by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="grants_requested",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "requested_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False),
                ),
                (
                    "reason",
                    models.CharField(
                        choices=[
                            ("support_case", "customer case"),
                            ("incident", "incident"),
                            ("subject_request", "data-subject request (access or erasure)"),
                            ("legal", "legal matter"),
                            ("quality", "complaint about an agent"),
                        ],
                        max_length=32,
                    ),
                ),
                ("ticket", models.CharField(max_length=200)),
                ("explanation", models.TextField(blank=True, max_length=2000)),
                ("minutes", models.PositiveSmallIntegerField(default=15)),
                (
                    "decided_by",
                    models.ForeignKey(
                        editable=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="grants_decided",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("decided_at", models.DateTimeField(editable=False, null=True)),
                ("opened_at", models.DateTimeField(editable=False, null=True)),
                ("expires_at", models.DateTimeField(editable=False, null=True)),
                ("ended_at", models.DateTimeField(editable=False, null=True)),
                (
                    "reviewed_by",
                    models.ForeignKey(
                        editable=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="grants_reviewed",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("reviewed_at", models.DateTimeField(editable=False, null=True)),
                ("review_note", models.TextField(blank=True, max_length=2000)),
            ],
            options={
                "permissions": [
                    ("request_grant", "Can request access to locked sessions"),
                    ("decide_grant", "Can approve, reject and review grants of other people"),
                ],
                "indexes": [
                    models.Index(
                        models.F("requested_by"),
                        models.OrderBy(models.F("requested_at"), descending=True),
                        models.OrderBy(models.F("id"), descending=True),
                        name="grant_of_requester",
                    ),
                    models.Index(
                        models.OrderBy(models.F("requested_at"), descending=True),
                        models.OrderBy(models.F("id"), descending=True),
                        name="grant_newest",
                    ),
                    models.Index(
                        models.F("requested_at"),
                        models.F("id"),
                        condition=models.Q(("reviewed_at__isnull", True)),
                        name="grant_awaiting_somebody",
                    ),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("minutes__gte", 1), ("minutes__lte", 60)), name="grant_at_most_an_hour"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("expires_at__isnull", True), ("opened_at__isnull", True)),
                            models.Q(
                                ("expires_at__gt", models.F("opened_at")),
                                ("expires_at__isnull", False),
                                (
                                    "expires_at__lte",
                                    django.db.models.expressions.CombinedExpression(
                                        models.F("opened_at"), "+", models.Value(datetime.timedelta(seconds=3600))
                                    ),
                                ),
                                ("opened_at__isnull", False),
                            ),
                            _connector="OR",
                        ),
                        name="grant_open_at_most_an_hour",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("decided_by__isnull", True),
                            models.Q(("decided_by", models.F("requested_by")), _negated=True),
                            _connector="OR",
                        ),
                        name="grant_not_decided_by_requester",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("reviewed_by__isnull", True),
                            models.Q(("reviewed_by", models.F("requested_by")), _negated=True),
                            _connector="OR",
                        ),
                        name="grant_not_reviewed_by_requester",
                    ),
                ],
                "triggers": [
                    pgtrigger.compiler.Trigger(
                        name="note_insert",
                        sql=pgtrigger.compiler.UpsertTriggerSql(
                            execute="memadmin_note_rows('grant', 'accounts.contentgrant', 'id', 'uuid', '', 'requested_by_id,reason,ticket,minutes,decided_by_id,decided_at,opened_at,expires_at,ended_at,reviewed_by_id,reviewed_at', '')",
                            func="RETURN NULL;",
                            hash="cce41581423d93750a3b9a81ed0311ab422fd09f",
                            level="STATEMENT",
                            operation="INSERT",
                            pgid="pgtrigger_note_insert_3f949",
                            referencing="REFERENCING NEW TABLE AS new_rows ",
                            table="accounts_contentgrant",
                            when="AFTER",
                        ),
                    ),
                    pgtrigger.compiler.Trigger(
                        name="note_update",
                        sql=pgtrigger.compiler.UpsertTriggerSql(
                            execute="memadmin_note_rows('grant', 'accounts.contentgrant', 'id', 'uuid', '', 'requested_by_id,reason,ticket,minutes,decided_by_id,decided_at,opened_at,expires_at,ended_at,reviewed_by_id,reviewed_at', '')",
                            func="RETURN NULL;",
                            hash="da295adecb31ad41f135e04d359200746174bfec",
                            level="STATEMENT",
                            operation="UPDATE",
                            pgid="pgtrigger_note_update_b8ce1",
                            referencing="REFERENCING OLD TABLE AS old_rows  NEW TABLE AS new_rows ",
                            table="accounts_contentgrant",
                            when="AFTER",
                        ),
                    ),
                    pgtrigger.compiler.Trigger(
                        name="note_delete",
                        sql=pgtrigger.compiler.UpsertTriggerSql(
                            execute="memadmin_note_rows('grant', 'accounts.contentgrant', 'id', 'uuid', '', 'requested_by_id,reason,ticket,minutes,decided_by_id,decided_at,opened_at,expires_at,ended_at,reviewed_by_id,reviewed_at', '')",
                            func="RETURN NULL;",
                            hash="38e6e4d95871d15e8411bbae2da008190bc6ab92",
                            level="STATEMENT",
                            operation="DELETE",
                            pgid="pgtrigger_note_delete_52a1e",
                            referencing="REFERENCING OLD TABLE AS old_rows ",
                            table="accounts_contentgrant",
                            when="AFTER",
                        ),
                    ),
                    pgtrigger.compiler.Trigger(
                        name="note_truncate",
                        sql=pgtrigger.compiler.UpsertTriggerSql(
                            execute="memadmin_note_rows('grant', 'accounts.contentgrant', 'id', 'uuid', '', 'requested_by_id,reason,ticket,minutes,decided_by_id,decided_at,opened_at,expires_at,ended_at,reviewed_by_id,reviewed_at', '')",
                            func="RETURN NULL;",
                            hash="32dd374d8a258e08d9ebd892ef5add59e490f596",
                            level="STATEMENT",
                            operation="TRUNCATE",
                            pgid="pgtrigger_note_truncate_70a3e",
                            table="accounts_contentgrant",
                            when="AFTER",
                        ),
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="GrantedSession",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "grant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="sessions", to="accounts.contentgrant"
                    ),
                ),
                ("record_id", models.UUIDField()),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("grant", "record_id"), name="session_once_in_a_grant")],
                "triggers": [
                    pgtrigger.compiler.Trigger(
                        name="note_insert",
                        sql=pgtrigger.compiler.UpsertTriggerSql(
                            execute="memadmin_note_rows('granted_session', 'accounts.grantedsession', 'id', 'ref', '', 'grant_id,record_id', '')",
                            func="RETURN NULL;",
                            hash="f2422cc5031dced265287116eaacd6c7489d2026",
                            level="STATEMENT",
                            operation="INSERT",
                            pgid="pgtrigger_note_insert_0e7b1",
                            referencing="REFERENCING NEW TABLE AS new_rows ",
                            table="accounts_grantedsession",
                            when="AFTER",
                        ),
                    ),
                    pgtrigger.compiler.Trigger(
                        name="note_update",
                        sql=pgtrigger.compiler.UpsertTriggerSql(
                            execute="memadmin_note_rows('granted_session', 'accounts.grantedsession', 'id', 'ref', '', 'grant_id,record_id', '')",
                            func="RETURN NULL;",
                            hash="ecbc060bfd27ac4bfb7d76129171fda39d71a9db",
                            level="STATEMENT",
                            operation="UPDATE",
                            pgid="pgtrigger_note_update_62999",
                            referencing="REFERENCING OLD TABLE AS old_rows  NEW TABLE AS new_rows ",
                            table="accounts_grantedsession",
                            when="AFTER",
                        ),
                    ),
                    pgtrigger.compiler.Trigger(
                        name="note_delete",
                        sql=pgtrigger.compiler.UpsertTriggerSql(
                            execute="memadmin_note_rows('granted_session', 'accounts.grantedsession', 'id', 'ref', '', 'grant_id,record_id', '')",
                            func="RETURN NULL;",
                            hash="a08c147af61170e6c1f6ddc3f68d0bec104d0afc",
                            level="STATEMENT",
                            operation="DELETE",
                            pgid="pgtrigger_note_delete_6f7ab",
                            referencing="REFERENCING OLD TABLE AS old_rows ",
                            table="accounts_grantedsession",
                            when="AFTER",
                        ),
                    ),
                    pgtrigger.compiler.Trigger(
                        name="note_truncate",
                        sql=pgtrigger.compiler.UpsertTriggerSql(
                            execute="memadmin_note_rows('granted_session', 'accounts.grantedsession', 'id', 'ref', '', 'grant_id,record_id', '')",
                            func="RETURN NULL;",
                            hash="e71b7d915d6ed08d800fa52faca44a7bc0b1c570",
                            level="STATEMENT",
                            operation="TRUNCATE",
                            pgid="pgtrigger_note_truncate_96441",
                            table="accounts_grantedsession",
                            when="AFTER",
                        ),
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Notice",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("requested", "a grant waits for a second person"),
                            ("opened_alone", "a grant opened without a second person"),
                            ("review", "a grant waits for review"),
                            ("reading", "a person opened unusually many sessions"),
                        ],
                        max_length=16,
                    ),
                ),
                (
                    "grant",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="notices",
                        to="accounts.contentgrant",
                    ),
                ),
                ("event_id", models.UUIDField(null=True)),
                ("tries", models.PositiveIntegerField(default=0)),
                ("try_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("sent_at", models.DateTimeField(null=True)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("grant", "kind"), name="notice_once_of_a_kind"),
                    models.UniqueConstraint(fields=("event_id",), name="notice_once_of_an_event"),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("event_id__isnull", True), ("grant__isnull", False)),
                            models.Q(("event_id__isnull", False), ("grant__isnull", True)),
                            _connector="OR",
                        ),
                        name="notice_about_one_thing",
                    ),
                ],
            },
        ),
        RunFile("accounts", "cache.sql"),
    ]
