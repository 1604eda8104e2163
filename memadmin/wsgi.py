"""The WSGI application that a production server loads: `memadmin.wsgi:application`."""

import logging
import os
import signal
import sys

# A process of granian takes signals once it serves. Until then it has the handlers of the main process, would go on
# when it is told to stop, and be waited for.
if getattr(signal.getsignal(signal.SIGTERM), "__module__", "").startswith("granian."):
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_DFL)

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.wsgi import get_wsgi_application

from memadmin import tracing
from memadmin.deploy.counts.folder import share_counts

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memadmin.settings")

try:
    # Here and not in the settings: a command has no use for a pool, whose answer to a wrong address is a timeout.
    settings.DATABASES["default"]["OPTIONS"]["pool"] = settings.DATABASE_POOL
    if "replica" in settings.DATABASES:
        # A page waits for one that is away only shortly: the primary has the same rows.
        settings.DATABASES["replica"]["OPTIONS"]["pool"] = {**settings.DATABASE_POOL, "min_size": 0, "timeout": 1}
    if settings.METRICS_TOKEN:
        share_counts(settings.METRICS_DIR)
    application = get_wsgi_application()
    tracing.start("memadmin-web")
except ImproperlyConfigured as mistake:
    sys.exit(f"memadmin: {mistake}")

from memadmin.deploy.counts.processes import merge_earlier  # they need the settings
from memadmin.web.checks import settings_are_known
from sessions_app.encryption.checks import session_keys_are_usable

merge_earlier()

# A command says at its start what its checks find; this is the start of the web server.
for warning in (*settings_are_known(), *session_keys_are_usable()):
    logging.getLogger("memadmin").warning("%s %s", warning.msg, warning.hint or "")
