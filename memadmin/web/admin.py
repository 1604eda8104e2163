"""Django admin of background jobs: the library's, without its inline styles, which the policy refuses."""

from __future__ import annotations

import json

from django.contrib import admin
from django.utils.html import format_html
from procrastinate.contrib.django.admin import ProcrastinateJobAdmin
from procrastinate.contrib.django.models import ProcrastinateJob

MOST_CHARACTERS = 2000

admin.site.unregister(ProcrastinateJob)


@admin.register(ProcrastinateJob)
class JobAdmin(ProcrastinateJobAdmin):
    @admin.display(description="Args")
    def pretty_args(self, instance: ProcrastinateJob) -> str:
        return format_html("<pre>{}</pre>", json.dumps(instance.args, indent=2)[:MOST_CHARACTERS])

    @admin.display(description="Last event")
    def summary(self, instance: ProcrastinateJob) -> str:
        events = list(instance.procrastinateevent_set.all())
        return f"{events[0].type}, {events[0].at:%Y-%m-%d %H:%M:%S}" if events else ""
