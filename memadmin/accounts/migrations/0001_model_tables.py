import datetime
import uuid

from django.conf import settings
from django.contrib.auth.models import GroupManager, UserManager
from django.db import migrations, models
from django.db.models import CASCADE, PROTECT, CheckConstraint, F, Index, Q, UniqueConstraint, Value
from django.db.models.expressions import CombinedExpression
from django.db.models.functions import Now

from memadmin.migrating import RunFile

USER = settings.AUTH_USER_MODEL


class Migration(migrations.Migration):
    """Grants, invitations, requests for roles, the notices about them, and the cache."""

    initial = True

    dependencies = [("auth", "0012_alter_user_first_name_max_length"), migrations.swappable_dependency(USER)]

    operations = [
        RunFile("accounts", "cache.sql"),
        migrations.CreateModel(
            name="GovernedGroup",
            fields=[],
            options={"proxy": True, "default_permissions": ()},
            bases=("auth.group",),
            managers=[("objects", GroupManager())],
        ),
        migrations.CreateModel(
            name="GovernedUser",
            fields=[],
            options={"proxy": True, "default_permissions": ()},
            bases=("auth.user",),
            managers=[("objects", UserManager())],
        ),
        migrations.CreateModel(
            name="RolePermission",
            fields=[],
            options={"proxy": True, "default_permissions": ()},
            bases=("auth.group_permissions",),
        ),
        migrations.CreateModel(
            name="UserPermission",
            fields=[],
            options={"proxy": True, "default_permissions": ()},
            bases=("auth.user_user_permissions",),
        ),
        migrations.CreateModel(
            name="UserRole", fields=[], options={"proxy": True, "default_permissions": ()}, bases=("auth.user_groups",)
        ),
        migrations.CreateModel(
            name="ContentGrant",
            fields=[
                ("id", models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ("requested_at", models.DateTimeField(db_default=Now(), editable=False)),
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
                ("decided_at", models.DateTimeField(editable=False, null=True)),
                ("opened_at", models.DateTimeField(editable=False, null=True)),
                ("expires_at", models.DateTimeField(editable=False, null=True)),
                ("ended_at", models.DateTimeField(editable=False, null=True)),
                ("reviewed_at", models.DateTimeField(editable=False, null=True)),
                ("review_note", models.TextField(blank=True, max_length=2000)),
                (
                    "decided_by",
                    models.ForeignKey(USER, PROTECT, editable=False, null=True, related_name="grants_decided"),
                ),
                ("requested_by", models.ForeignKey(USER, PROTECT, related_name="grants_requested")),
                (
                    "reviewed_by",
                    models.ForeignKey(USER, PROTECT, editable=False, null=True, related_name="grants_reviewed"),
                ),
            ],
            options={
                "permissions": [
                    ("request_grant", "Can request access to locked sessions"),
                    ("decide_grant", "Can approve, reject and review grants of other people"),
                ],
                "indexes": [
                    Index("requested_by", F("requested_at").desc(), F("id").desc(), name="grant_of_requester"),
                    Index(F("requested_at").desc(), F("id").desc(), name="grant_newest"),
                    Index(
                        "requested_at", "id", condition=Q(("reviewed_at__isnull", True)), name="grant_awaiting_somebody"
                    ),
                ],
                "constraints": [
                    CheckConstraint(
                        condition=Q(("minutes__gte", 1), ("minutes__lte", 60)), name="grant_at_most_an_hour"
                    ),
                    CheckConstraint(
                        condition=Q(
                            Q(("expires_at__isnull", True), ("opened_at__isnull", True)),
                            Q(
                                ("expires_at__gt", F("opened_at")),
                                ("expires_at__isnull", False),
                                (
                                    "expires_at__lte",
                                    CombinedExpression(F("opened_at"), "+", Value(datetime.timedelta(seconds=3600))),
                                ),
                                ("opened_at__isnull", False),
                            ),
                            _connector="OR",
                        ),
                        name="grant_open_at_most_an_hour",
                    ),
                    CheckConstraint(
                        condition=Q(
                            ("decided_by__isnull", True),
                            Q(("decided_by", F("requested_by")), _negated=True),
                            _connector="OR",
                        ),
                        name="grant_not_decided_by_requester",
                    ),
                    CheckConstraint(
                        condition=Q(
                            ("reviewed_by__isnull", True),
                            Q(("reviewed_by", F("requested_by")), _negated=True),
                            _connector="OR",
                        ),
                        name="grant_not_reviewed_by_requester",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="GrantedSession",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("record_id", models.UUIDField()),
                ("grant", models.ForeignKey("accounts.contentgrant", CASCADE, related_name="sessions")),
            ],
            options={"constraints": [UniqueConstraint(fields=("grant", "record_id"), name="session_once_in_a_grant")]},
        ),
        migrations.CreateModel(
            name="Invitation",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("digest", models.CharField(max_length=64, unique=True)),
                ("made_at", models.DateTimeField(db_default=Now(), editable=False)),
                ("expires_at", models.DateTimeField()),
                ("used_at", models.DateTimeField(editable=False, null=True)),
                ("made_by", models.ForeignKey(USER, CASCADE, related_name="+")),
                ("person", models.ForeignKey(USER, CASCADE, related_name="invitations")),
            ],
            options={
                "permissions": [
                    ("view_people", "Can see accounts, their roles, second factors and open sessions"),
                    ("view_system", "Can see the health of the system and the findings of its checks"),
                ],
                "default_permissions": (),
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
                            ("role", "a person got a right that opens content, decides or administers"),
                        ],
                        max_length=16,
                    ),
                ),
                ("event_id", models.UUIDField(null=True)),
                ("tries", models.PositiveIntegerField(default=0)),
                ("try_at", models.DateTimeField(db_default=Now())),
                ("sent_at", models.DateTimeField(null=True)),
                ("grant", models.ForeignKey("accounts.contentgrant", CASCADE, null=True, related_name="notices")),
            ],
            options={
                "constraints": [
                    UniqueConstraint(fields=("grant", "kind"), name="notice_once_of_a_kind"),
                    UniqueConstraint(fields=("event_id",), name="notice_once_of_an_event"),
                    CheckConstraint(
                        condition=Q(
                            Q(("event_id__isnull", True), ("grant__isnull", False)),
                            Q(("event_id__isnull", False), ("grant__isnull", True)),
                            _connector="OR",
                        ),
                        name="notice_about_one_thing",
                    ),
                ]
            },
        ),
        migrations.CreateModel(
            name="RoleRequest",
            fields=[
                ("id", models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ("is_superuser", models.BooleanField(db_default=False, default=False)),
                ("requested_at", models.DateTimeField(db_default=Now(), editable=False)),
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
                ("decided_by", models.ForeignKey(USER, PROTECT, null=True, related_name="+")),
                ("permission", models.ForeignKey("auth.permission", CASCADE, null=True, related_name="+")),
                ("person", models.ForeignKey(USER, CASCADE, related_name="role_requests")),
                ("requested_by", models.ForeignKey(USER, PROTECT, related_name="+")),
                ("role", models.ForeignKey("auth.group", CASCADE, null=True, related_name="+")),
            ],
            options={
                "indexes": [
                    Index("requested_at", "id", condition=Q(("decided_at__isnull", True)), name="role_request_waiting"),
                    Index(F("requested_at").desc(), F("id").desc(), name="role_request_newest"),
                ],
                "constraints": [
                    CheckConstraint(
                        condition=Q(
                            Q(("is_superuser", False), ("permission__isnull", True), ("role__isnull", False)),
                            Q(("is_superuser", False), ("permission__isnull", False), ("role__isnull", True)),
                            Q(("is_superuser", True), ("permission__isnull", True), ("role__isnull", True)),
                            _connector="OR",
                        ),
                        name="role_request_for_one_right",
                    ),
                    CheckConstraint(
                        condition=Q(
                            ("granted_at__isnull", True),
                            Q(
                                ("decided_by__isnull", False),
                                Q(("decided_by", F("requested_by")), _negated=True),
                                Q(("decided_by", F("person")), _negated=True),
                            ),
                            _connector="OR",
                        ),
                        name="role_request_granted_by_another",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="AccountAccess",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("since", models.DateTimeField(db_default=Now(), editable=False)),
                ("by", models.ForeignKey(USER, CASCADE, related_name="+")),
                ("person", models.ForeignKey(USER, CASCADE, related_name="+")),
            ],
            options={
                "default_permissions": (),
                "constraints": [UniqueConstraint(fields=("person", "by"), name="account_access_once")],
            },
        ),
    ]
