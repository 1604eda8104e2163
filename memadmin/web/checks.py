"""Django system checks for incomplete configuration (`memadmin check --deploy`), each with a hint."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.conf import STATICFILES_STORAGE_ALIAS, settings
from django.contrib.staticfiles.storage import ManifestFilesMixin
from django.core.checks import CheckMessage, Error, Tags, Warning, register
from django.core.files.storage import storages

from memadmin import environment


@register
def agent_tables_differ(**options: Any) -> list[CheckMessage]:
    if settings.AGENT_SESSIONS_TABLE != settings.AGENT_MESSAGES_TABLE:
        return []
    return [
        Error(
            "Sessions and messages of the agents cannot be in one table.",
            hint="Set AGENT_SESSIONS_TABLE and AGENT_MESSAGES_TABLE to the two tables of the SDK.",
            id="memadmin.E001",
        )
    ]


@register
def settings_are_known(**options: Any) -> list[CheckMessage]:
    """Made at every start. A warning, since a name may be meant for another program of the container."""
    return [
        Warning(sentence, hint="The settings page of the documentation has all names.", id="memadmin.W004")
        for sentence in environment.unknown_names()
    ]


@register(Tags.staticfiles, deploy=True)
def static_files_are_collected(**options: Any) -> list[CheckMessage]:
    storage = storages[STATICFILES_STORAGE_ALIAS]
    if not isinstance(storage, ManifestFilesMixin) or Path(settings.STATIC_ROOT, storage.manifest_name).exists():
        return []
    return [
        Error(
            f"Static files are missing in {settings.STATIC_ROOT}; every page would fail.",
            hint="Use `memadmin serve`, or run `memadmin collectstatic --noinput` after each upgrade.",
            id="memadmin.E002",
        )
    ]


@register(Tags.security, deploy=True)
def machines_share_a_secret_key(**options: Any) -> list[CheckMessage]:
    is_embedded = settings.DATABASES["default"]["ENGINE"] == "memadmin.embedded"
    if is_embedded or environment.text("MEMADMIN_SECRET_KEY"):
        return []
    return [
        Warning(
            "This machine uses its own secret key: logins and links from other machines fail here.",
            hint="Set MEMADMIN_SECRET_KEY, or MEMADMIN_SECRET_KEY_FILE, to the same 50 random characters everywhere.",
            id="memadmin.W001",
        )
    ]


@register(Tags.security, deploy=True)
def grants_are_told_of(**options: Any) -> list[CheckMessage]:
    if settings.MAIL_SERVER:
        return []
    return [
        Warning(
            "No e-mail is sent to approvers of grants: they have to check the grants page themselves.",
            hint="Set MEMADMIN_MAIL_URL to your mail server, and MEMADMIN_URL to this console's own address.",
            id="memadmin.W002",
        )
    ]


@register(Tags.security, deploy=True)
def hosts_are_named(**options: Any) -> list[CheckMessage]:
    if "*" not in settings.ALLOWED_HOSTS:
        return []
    return [
        Warning(
            "MEMADMIN_ALLOWED_HOSTS has *, so that whoever sends a request chooses the name to which it is redirected.",
            hint="List the names under which people and Prometheus call the console; health checks need none.",
            id="memadmin.W005",
        )
    ]
