"""One admin site with the two models, registered as the Django tutorial does it."""

from __future__ import annotations

from typing import ClassVar

from django.contrib import admin
from django.urls import path

from tests.benchmarks.plain_admin.models import Message, Session

site = admin.AdminSite()


class MessageInline(admin.TabularInline):  # type: ignore[type-arg]  # only the stubs know that it is generic
    model = Message
    extra = 0


@admin.register(Session, site=site)
class SessionAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    list_display = ("session_id", "created_at", "updated_at")
    list_per_page = 50
    search_fields = ("session_id",)
    inlines: ClassVar = [MessageInline]


urlpatterns = [path("", site.urls)]
