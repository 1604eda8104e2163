from importlib import import_module

from django.db import migrations

LOOKUP = import_module("sessions_app.migrations.0001_lookup_function")
BEFORE = LOOKUP.CREATE.replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION")

CREATE = """
CREATE OR REPLACE FUNCTION memadmin_grams(value text) RETURNS text[]
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
  kept text := left(value, 200);
  lowered text := lower(kept);
  grams text[] := '{}';
  gram text;
BEGIN
  FOR place IN 1..greatest(length(kept) - 2, 1) LOOP
    gram := substr(lowered, place, 3);
    IF gram <> ALL (grams) THEN
      grams := grams || gram;
    END IF;
  END LOOP;
  RETURN grams;
END
$$
"""


class Migration(migrations.Migration):
    """The same grams by a loop instead of a query: each write of an agent to a session with a ticket pays for them.

    They are the same as before, so the indexes stay as they are.
    """

    dependencies = [("sessions_app", "0016_agents_told_apart")]
    operations = [migrations.RunSQL(CREATE, BEFORE)]
