from __future__ import annotations

from django.contrib.postgres.indexes import GinIndex
from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations


class Migration(migrations.Migration):
    """All that a tool may be behind is found at once. No agent's proposal waits while it is built."""

    atomic = False
    dependencies = [("memories_app", "0022_tools_behind_evidence")]

    operations = [
        AddIndexConcurrently(model_name="evidence", index=GinIndex(fields=["tools"], name="evidence_by_tool")),
    ]
