"""Raw edits with every widget that Django admin has, on our models: today's own pages use few of them."""

from __future__ import annotations

from django.contrib import admin
from django.contrib.auth.models import Group, User
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import path

from memadmin import urls
from memadmin.accounts.admin_site import RawEditsSite
from memadmin.accounts.raw_edits import ReasonedEdits
from sessions_app.models import SessionIdPattern, SessionRecord, SessionStore, Subject, SubjectAlias, SubjectKind

trial = RawEditsSite(name="trial")


class AliasRows(admin.TabularInline):  # type: ignore[type-arg]  # generic in its stubs only
    model = SubjectAlias
    extra = 1


class PatternBlocks(admin.StackedInline):  # type: ignore[type-arg]
    model = SessionIdPattern
    extra = 0


@admin.register(Subject, site=trial)
class SubjectTrial(ReasonedEdits):
    inlines = (AliasRows,)
    search_fields = ("aliases__key",)
    date_hierarchy = "created_at"


@admin.register(SessionStore, site=trial)
class StoreTrial(ReasonedEdits):
    inlines = (PatternBlocks,)


@admin.register(SessionIdPattern, site=trial)
class PatternTrial(ReasonedEdits):
    """Its store is chosen beside a "+", which opens a page of its own."""

    prepopulated_fields = {"pattern": ("name",)}  # noqa: RUF012  # as Django reads it


@admin.register(SessionRecord, site=trial)
class RecordTrial(ReasonedEdits):
    autocomplete_fields = ("subject",)
    list_filter = ("store",)
    fields = ("subject", "ticket")


@admin.action(description="Call them users")
def call_users(model_admin: ReasonedEdits, request: HttpRequest, queryset: QuerySet[SubjectAlias]) -> None:
    queryset.update(kind=SubjectKind.USER)


@admin.register(SubjectAlias, site=trial)
class AliasTrial(ReasonedEdits):
    raw_id_fields = ("subject",)
    list_display = ("__str__", "key")
    list_editable = ("key",)
    actions = (call_users,)


@admin.register(User, site=trial)
class UserTrial(ReasonedEdits):
    fields = ("username", "last_login", "groups")
    filter_vertical = ("groups",)


trial.register(Group, ReasonedEdits)

urlpatterns = [path("trial/", trial.urls), *urls.urlpatterns]
