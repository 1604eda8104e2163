from typing import Any

from django.db import migrations


def move_views(apps: Any, schema_editor: Any) -> None:
    """Copies the saved views of the review queue to the table for all lists."""
    SavedView = apps.get_model("home", "SavedView")
    SavedView.objects.bulk_create(
        SavedView(id=view.pk, owner_id=view.owner_id, list_name="reviews-list", name=view.name, query=view.query)
        for view in apps.get_model("memories_app", "SavedView").objects.all()
    )


def move_views_back(apps: Any, schema_editor: Any) -> None:
    """Copies those of the review queue; views of other lists have no place there."""
    OldView = apps.get_model("memories_app", "SavedView")
    OldView.objects.bulk_create(
        OldView(id=view.pk, owner_id=view.owner_id, name=view.name, query=view.query[:500])
        for view in apps.get_model("home", "SavedView").objects.filter(list_name="reviews-list")
    )


class Migration(migrations.Migration):
    """Saved views of the review queue become saved views of every list."""

    while_older_runs = (
        "Not safe: the review queue of the older web server is an error page until that server is replaced."
    )

    dependencies = [
        ("home", "0003_saved_views"),
        ("memories_app", "0008_oldest_signals_and_recalls"),
    ]

    operations = [
        migrations.RunPython(move_views, move_views_back),
        migrations.DeleteModel(name="SavedView"),
    ]
