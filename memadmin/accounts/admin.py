"""Who works here, and in which roles."""

from __future__ import annotations

from django.contrib import admin
from django.contrib.auth.admin import UserAdmin
from django.contrib.auth.models import User
from django.http import HttpRequest

admin.site.unregister(User)


@admin.register(User)
class OperatorAdmin(UserAdmin):  # type: ignore[type-arg]  # generic in its stubs only
    """Administrators make accounts and give roles.

    Single permissions, `raw_edit` among them, are a superuser's to give, and superusers a superuser's to change:
    else whoever may change accounts could give themselves everything.
    """

    list_display = ("username", "first_name", "last_name", "is_active", "last_login")
    list_filter = ("groups", "is_active", "is_superuser")
    # Without is_staff, which decides nothing here (see admin_site.py).
    fieldsets = (
        (None, {"fields": ["username", "password", "is_active"]}),
        ("Person", {"fields": ["first_name", "last_name", "email"]}),
        ("Rights", {"fields": ["groups", "user_permissions", "is_superuser"]}),
        ("Dates", {"fields": ["last_login", "date_joined"]}),
    )

    def get_readonly_fields(self, request: HttpRequest, obj: User | None = None) -> list[str]:
        always = ["last_login", "date_joined"]
        return always if request.user.is_superuser else [*always, "user_permissions", "is_superuser"]

    def has_change_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        if obj and obj.is_superuser and not request.user.is_superuser:
            return False
        return super().has_change_permission(request, obj)
