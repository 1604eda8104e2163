from importlib import import_module

from django.db import migrations

LOOKUP = import_module("sessions_app.old_migrations.0001_lookup_function")
BEFORE = LOOKUP.CREATE.replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION")

# Nothing here is looked up in the search_path of who calls it: an operator of a stranger would run with their rights.
# Nor is the collation theirs, which the query never asked for either.
CREATE = """
CREATE OR REPLACE FUNCTION memadmin_grams(value text) RETURNS text[]
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
  kept text COLLATE pg_catalog."default" := pg_catalog.left(value, 200);
  lowered text COLLATE pg_catalog."default" := pg_catalog.lower(kept);
  grams text[] := '{}';
  gram text;
BEGIN
  FOR place IN 1..greatest(pg_catalog.length(kept) OPERATOR(pg_catalog.-) 2, 1) LOOP
    gram := pg_catalog.substr(lowered, place, 3);
    IF gram OPERATOR(pg_catalog.<>) ALL (grams) THEN
      grams := grams OPERATOR(pg_catalog.||) gram;
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
