from django.db import migrations

CREATE = """
CREATE FUNCTION memadmin_grams(value text) RETURNS text[]
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN (
    SELECT array_agg(DISTINCT substr(lower(left(value, 200)), place, 3))
    FROM generate_series(1, greatest(length(left(value, 200)) - 2, 1)) AS place
)
"""


class Migration(migrations.Migration):
    """The function behind the indexes that find part of a subject key or of a ticket number."""

    initial = True
    dependencies = []
    operations = [migrations.RunSQL(CREATE, "DROP FUNCTION memadmin_grams(text)")]
