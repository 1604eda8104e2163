-- Function behind the indexes that find part of a subject key or of a ticket number. A loop, not a query: each write of
-- an agent to a session with a ticket pays for it. Nothing here is looked up in the search_path of the caller: an
-- operator of a stranger would run with their rights. Nor is the collation theirs.

CREATE FUNCTION memadmin_grams(value text) RETURNS text[]
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
$$;
