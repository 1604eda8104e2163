-- What agents may see and add, so that no program can pass the gate by. Permissive policies for everybody are all that
-- agents have. `db_roles` adds one for the application, whose roles belong to the server and are not known here. The
-- owner of the tables is not bound by any.

-- Evidence comes with its proposal or not at all: nobody adds to what others proposed. The time is the database's word,
-- and the same only within one transaction.
CREATE FUNCTION memadmin_is_new_proposal(given uuid) RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
SELECT EXISTS (
    SELECT FROM memories_app_memory
    WHERE id = given AND status = 'proposed' AND proposed_at = transaction_timestamp()
)
$$;

CREATE FUNCTION memadmin_is_new_recall(given uuid) RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
SELECT EXISTS (
    SELECT FROM memories_app_recall
    WHERE id = given AND recalled_at = transaction_timestamp()
)
$$;

-- An agent that proposes without end would keep reviewers from the rest. What waits is counted up to the limit.
CREATE FUNCTION memadmin_has_room(given uuid) RETURNS boolean
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    IF (
        SELECT count(*) >= 200 FROM (
            SELECT FROM memories_app_memory
            WHERE subject_id IS NOT DISTINCT FROM given AND status = 'proposed' LIMIT 200
        ) AS waiting
    ) THEN
        RAISE EXCEPTION 'So many proposals about this subject wait that no other is taken.' USING ERRCODE = 'P0M06';
    END IF;
    RETURN true;
END $$;

ALTER TABLE memories_app_memory ENABLE ROW LEVEL SECURITY;
CREATE POLICY recalled ON memories_app_memory FOR SELECT USING (
    status = 'approved'
    AND (subject_id IS NULL OR subject_id = ANY ((SELECT memadmin_run_subjects())::uuid[]))
    AND (valid_from IS NULL OR valid_from <= now()) AND (valid_until IS NULL OR valid_until > now())
    AND (agents = '{}' OR current_setting('memadmin.agent', true) = ANY (agents))
);
CREATE POLICY proposed ON memories_app_memory FOR INSERT WITH CHECK (
    status = 'proposed'
    AND (subject_id IS NULL OR subject_id = ANY ((SELECT memadmin_run_subjects())::uuid[]))
    AND source IN ('user', 'tool', 'web') AND proposed_by_id IS NULL
    -- The console's own distillers and imports, by which rules approve, are called so.
    AND extractor !~ '^(rules/|import/|agent/[0-9])'
    AND memadmin_has_room(subject_id)
);

ALTER TABLE memories_app_evidence ENABLE ROW LEVEL SECURITY;
CREATE POLICY proposed ON memories_app_evidence FOR INSERT WITH CHECK (
    memadmin_is_new_proposal(memory_id) AND memadmin_may_quote(memory_id, record_id, session_id)
);

ALTER TABLE memories_app_signal ENABLE ROW LEVEL SECURITY;
CREATE POLICY given ON memories_app_signal FOR INSERT WITH CHECK (
    (subject_id IS NULL OR subject_id = ANY ((SELECT memadmin_run_subjects())::uuid[]))
    AND given_by_id IS NULL AND kind <> 'feedback'
    AND (memory_id IS NULL OR EXISTS (SELECT FROM memories_app_memory AS m WHERE m.id = memory_id))
);

ALTER TABLE memories_app_recall ENABLE ROW LEVEL SECURITY;
CREATE POLICY made ON memories_app_recall FOR INSERT WITH CHECK (
    subject_id IS NULL OR subject_id = ANY ((SELECT memadmin_run_subjects())::uuid[])
);

-- Within a policy agents see of memories what they see elsewhere.
ALTER TABLE memories_app_recalledmemory ENABLE ROW LEVEL SECURITY;
CREATE POLICY made ON memories_app_recalledmemory FOR INSERT WITH CHECK (
    memadmin_is_new_recall(recall_id) AND EXISTS (SELECT FROM memories_app_memory AS m WHERE m.id = memory_id)
);

-- Nobody but the application has any business here.
ALTER TABLE memories_app_memoryversion ENABLE ROW LEVEL SECURITY;
ALTER TABLE memories_app_review ENABLE ROW LEVEL SECURITY;
ALTER TABLE memories_app_approvalrule ENABLE ROW LEVEL SECURITY;
ALTER TABLE memories_app_distillation ENABLE ROW LEVEL SECURITY;
ALTER TABLE memories_app_learningstop ENABLE ROW LEVEL SECURITY;
