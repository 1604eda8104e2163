"""Every URL of the console; apps are named by string, so that nothing imports upwards.

The health checks have none: `memadmin.web.health` answers them before.
"""

from django.contrib import admin
from django.urls import include, path

from memadmin.web import palette, policy_reports

urlpatterns = [
    path("metrics", include("memadmin.deploy.metrics.urls")),
    path("policy-report/", policy_reports.policy_report, name="policy-report"),
    path("palette/", palette.find, name="palette"),
    path("accounts/", include("memadmin.accounts.urls")),
    path("admin/", admin.site.urls),
    path("audit/", include("memadmin.audit.urls")),
    path("data-map/", include("memadmin.erasure.data_map.urls")),
    path("help/", include("memadmin.web.help.urls")),
    path("holds/", include("memadmin.retention.holds.urls")),
    path("notifications/", include("memadmin.home.urls")),
    path("accounts/views/", include("memadmin.home.saved_view_urls")),
    path("memories/", include("memories_app.urls")),
    path("people/", include("memadmin.accounts.people.urls")),
    path("runs/", include("memadmin.runs.urls")),
    path("requests/batches/", include("memadmin.erasure.batches.urls")),
    path("requests/", include("memadmin.erasure.urls")),
    path("retention/", include("memadmin.retention.sweep.urls")),
    path("retention/", include("memadmin.retention.policies.urls")),
    path("reviews/", include("memories_app.review.urls")),
    path("system/", include("memadmin.deploy.system.urls")),
    path("", include("sessions_app.urls")),
]

handler400 = "memadmin.web.errors.bad_request"
handler403 = "memadmin.web.errors.forbidden"
handler404 = "memadmin.web.errors.not_found"
handler500 = "memadmin.web.errors.server_error"
