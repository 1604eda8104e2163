"""Extension point: panels of other apps on the page of a memory."""

from __future__ import annotations

from django.contrib.auth.models import User

from memories_app.models import Memory
from sessions_app.extensions import ExtensionPoint, Panel

beside_memory = ExtensionPoint[[User, Memory], Panel]()
