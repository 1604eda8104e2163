from django.db import migrations, models


class Migration(migrations.Migration):
    """Indexes for the pages of the log, one for each filter. Nobody has a log yet that these would keep waiting."""

    dependencies = [
        ("audit", "0003_insert_only"),
    ]

    operations = [
        migrations.RemoveIndex(
            model_name="auditevent",
            name="audit_event_by_actor",
        ),
        migrations.RemoveIndex(
            model_name="auditevent",
            name="audit_event_by_type",
        ),
        migrations.RemoveIndex(
            model_name="auditevent",
            name="audit_event_by_object",
        ),
        migrations.RemoveIndex(
            model_name="auditevent",
            name="audit_event_by_subject",
        ),
        migrations.RemoveIndex(
            model_name="auditevent",
            name="audit_event_not_succeeded",
        ),
        migrations.RemoveIndex(
            model_name="auditevent",
            name="audit_event_by_time",
        ),
        migrations.AddIndex(
            model_name="auditevent",
            index=models.Index(
                models.OrderBy(models.F("at"), descending=True),
                models.OrderBy(models.F("number"), descending=True),
                name="audit_event_newest",
            ),
        ),
        migrations.AddIndex(
            model_name="auditevent",
            index=models.Index(
                models.F("actor_ref"),
                models.OrderBy(models.F("at"), descending=True),
                models.OrderBy(models.F("number"), descending=True),
                name="audit_event_actor_newest",
            ),
        ),
        migrations.AddIndex(
            model_name="auditevent",
            index=models.Index(
                models.F("type"),
                models.OrderBy(models.F("at"), descending=True),
                models.OrderBy(models.F("number"), descending=True),
                name="audit_event_type_newest",
            ),
        ),
        migrations.AddIndex(
            model_name="auditevent",
            index=models.Index(
                models.F("object_ref"),
                models.OrderBy(models.F("at"), descending=True),
                models.OrderBy(models.F("number"), descending=True),
                condition=models.Q(("object_ref__isnull", False)),
                name="audit_event_object_newest",
            ),
        ),
        migrations.AddIndex(
            model_name="auditevent",
            index=models.Index(
                models.F("subject_ref"),
                models.OrderBy(models.F("at"), descending=True),
                models.OrderBy(models.F("number"), descending=True),
                condition=models.Q(("subject_ref__isnull", False)),
                name="audit_event_subject_newest",
            ),
        ),
        migrations.AddIndex(
            model_name="auditevent",
            index=models.Index(
                models.F("outcome"),
                models.OrderBy(models.F("at"), descending=True),
                models.OrderBy(models.F("number"), descending=True),
                condition=models.Q(("outcome", "succeeded"), _negated=True),
                name="audit_event_outcome_newest",
            ),
        ),
        migrations.AddIndex(
            model_name="auditevent",
            index=models.Index(
                models.OrderBy(models.F("at"), descending=True),
                models.OrderBy(models.F("number"), descending=True),
                condition=models.Q(("actor_kind", "database"), ("cause__isnull", True)),
                name="audit_event_outside_newest",
            ),
        ),
        migrations.AddIndex(
            model_name="auditevent",
            index=models.Index(
                models.F("cause"),
                models.F("number"),
                condition=models.Q(("cause__isnull", False)),
                name="audit_event_by_cause",
            ),
        ),
    ]
