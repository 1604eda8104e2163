-- Rows of agents that the console could not read, from before the constraints that refuse them.

-- Without an end, or a beginning, is what infinity meant.
UPDATE memories_app_memory SET valid_until = CASE WHEN valid_until < '0002-01-01Z' THEN '0002-01-01Z'::timestamptz END
WHERE valid_until NOT BETWEEN '0002-01-01Z' AND '9998-12-31Z';
UPDATE memories_app_memory SET valid_from = CASE WHEN valid_from > '9998-12-31Z' THEN '9998-12-31Z'::timestamptz END
WHERE valid_from NOT BETWEEN '0002-01-01Z' AND '9998-12-31Z';

-- The gate hashes the names, not the dimensions.
UPDATE memories_app_memory SET agents = ARRAY(SELECT unnest(agents)) WHERE array_ndims(agents) > 1;

-- It hashes NULL as a name: people approve the list without it again.
UPDATE memories_app_memory
SET agents = array_remove(agents, NULL), status = CASE status WHEN 'approved' THEN 'needs_revalidation' ELSE status END
WHERE array_position(agents, NULL) IS NOT NULL;

UPDATE memories_app_evidence SET said_at = NULL WHERE said_at NOT BETWEEN '0002-01-01Z' AND '9998-12-31Z';

-- A row that was changed twice has deferred checks, and a table with such a row cannot be altered.
SET CONSTRAINTS ALL IMMEDIATE;
