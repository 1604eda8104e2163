"""Raw edits with every widget that Django admin has, on our models: today's own pages use few of them."""

from __future__ import annotations

from django.contrib import admin
from django.contrib.auth.models import Group, User
from django.urls import path

from memadmin import urls
from memadmin.accounts.admin_site import RawEditsSite
from sessions_app.models import SessionIdPattern, SessionRecord, SessionStore, Subject, SubjectAlias

trial = RawEditsSite(name="trial")


class AliasRows(admin.TabularInline):  # type: ignore[type-arg]  # generic in its stubs only
    model = SubjectAlias
    extra = 1


class PatternBlocks(admin.StackedInline):  # type: ignore[type-arg]
    model = SessionIdPattern
    extra = 0


@admin.register(Subject, site=trial)
class SubjectTrial(admin.ModelAdmin):  # type: ignore[type-arg]
    inlines = (AliasRows,)
    search_fields = ("aliases__key",)
    date_hierarchy = "created_at"


@admin.register(SessionStore, site=trial)
class StoreTrial(admin.ModelAdmin):  # type: ignore[type-arg]
    inlines = (PatternBlocks,)


@admin.register(SessionIdPattern, site=trial)
class PatternTrial(admin.ModelAdmin):  # type: ignore[type-arg]
    """Its store is chosen beside a "+", which opens a page of its own."""

    prepopulated_fields = {"pattern": ("name",)}  # noqa: RUF012  # as Django reads it


@admin.register(SessionRecord, site=trial)
class RecordTrial(admin.ModelAdmin):  # type: ignore[type-arg]
    autocomplete_fields = ("subject",)
    list_filter = ("store",)
    fields = ("subject", "ticket")


@admin.register(SubjectAlias, site=trial)
class AliasTrial(admin.ModelAdmin):  # type: ignore[type-arg]
    raw_id_fields = ("subject",)


@admin.register(User, site=trial)
class UserTrial(admin.ModelAdmin):  # type: ignore[type-arg]
    fields = ("username", "last_login", "groups")
    filter_vertical = ("groups",)


trial.register(Group)

urlpatterns = [path("trial/", trial.urls), *urls.urlpatterns]
