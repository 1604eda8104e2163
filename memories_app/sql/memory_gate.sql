-- The gate: it hashes the text of a memory, counts its versions, and lets it become or stay approved only if reviews
-- approve this very text, and the actor of this transaction is proven, as the one of each review was (reviews.sql). Where
-- two people must, the second decided about an approval that the first asked for. A proposal to change a memory is about
-- the subject of that memory: approved text goes there, and the gate compares the two. Of several ids of one subject the
-- agent may know another.

CREATE OR REPLACE FUNCTION memadmin_memory_gate() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    people int;
    by_rule boolean;
    by_two boolean;
    is_risky boolean;
    whose uuid;
BEGIN
    IF TG_OP = 'INSERT' THEN
        IF NEW.replaces_id IS NOT NULL THEN
            SELECT subject_id INTO whose FROM memories_app_memory WHERE id = NEW.replaces_id;
            IF FOUND AND whose IS DISTINCT FROM NEW.subject_id THEN
                IF whose IS NULL OR NEW.subject_id IS NULL OR whose <> ALL (memadmin_subject_group(NEW.subject_id)) THEN
                    RAISE EXCEPTION 'That memory is about somebody else.' USING ERRCODE = 'P0M07';
                END IF;
                NEW.subject_id := whose;
            END IF;
        END IF;
    END IF;
    NEW.content_hash := encode(sha256(convert_to(jsonb_build_array(
        NEW.subject_id, NEW.kind, NEW.key, NEW.statement, NEW.data,
        (SELECT coalesce(jsonb_agg(name ORDER BY name), '[]') FROM unnest(NEW.agents) AS name)
    )::text, 'UTF8')), 'hex');

    IF TG_OP = 'INSERT' THEN
        -- An agent would pass for the console.
        IF NEW.extractor ~ '^(rules/|import/|agent/[0-9])'
            AND NOT memadmin_has_actor() AND NOT has_table_privilege(session_user, TG_RELID, 'TRIGGER')
        THEN
            RAISE EXCEPTION 'This origin is not proven.' USING ERRCODE = 'P0M09';
        END IF;
        NEW.version := 1;
        NEW.is_verified := false;
        IF NEW.status <> 'proposed' THEN
            RAISE EXCEPTION 'A memory begins as a proposal.' USING ERRCODE = 'P0M02';
        END IF;
        IF NEW.subject_id IS NOT NULL THEN
            PERFORM memadmin_refuse_stopped(NEW.subject_id);
        END IF;
        RETURN NEW;
    END IF;

    IF NEW.subject_id IS NOT NULL AND NEW.subject_id IS DISTINCT FROM OLD.subject_id THEN
        PERFORM memadmin_refuse_erased(ARRAY[NEW.subject_id]);
    END IF;
    NEW.version := OLD.version + (NEW.content_hash <> OLD.content_hash)::int;
    NEW.is_verified := OLD.is_verified AND NEW.content_hash = OLD.content_hash;
    IF NEW.content_hash <> OLD.content_hash AND NEW.embedded_hash <> NEW.content_hash THEN
        NEW.embedding := NULL;
        NEW.embedder := '';
    END IF;
    IF NEW.status = 'approved' AND (OLD.status <> 'approved' OR NEW.content_hash <> OLD.content_hash) THEN
        -- Approvals of this very text, of the memory itself or of a proposal to change it, since it last waited.
        SELECT count(DISTINCT r.reviewer_id),
               coalesce(bool_or(
                   r.rule_id IS NOT NULL AND m.source NOT IN ('tool', 'web')
                   AND memadmin_has_user_quote(m.id, m.subject_id)
               ), false),
               count(DISTINCT r.reviewer_id) >= 2 AND count(r.approval_id) > 0,
               coalesce(bool_or(m.risk_flags <> '{}'), false)
        INTO people, by_rule, by_two, is_risky
        FROM memories_app_review AS r JOIN memories_app_memory AS m ON m.id = r.memory_id
        WHERE (m.id = NEW.id OR m.replaces_id = NEW.id)
          AND r.decision = 'approve' AND r.undone_at IS NULL AND r.content_hash = NEW.content_hash
          AND r.decided_at >= m.awaiting_since
          AND (r.reviewer_id IS NULL OR r.reviewer_id IS DISTINCT FROM m.proposed_by_id);
        is_risky := is_risky OR NEW.risk_flags <> '{}' OR NEW.subject_id IS NULL;
        IF NOT (by_two OR (NOT is_risky AND (people > 0 OR by_rule))) THEN
            RAISE EXCEPTION 'Nobody who may has approved this text, or one person alone has where two must.'
                USING ERRCODE = 'P0M03';
        END IF;
        IF memadmin_proven_actor('memadmin.recorder') IS NULL THEN
            RAISE EXCEPTION 'Nobody is proven to approve this text now.' USING ERRCODE = 'P0M09';
        END IF;
        IF NEW.screened_hash <> NEW.content_hash THEN
            RAISE EXCEPTION 'Nothing has looked for risks in this text yet.' USING ERRCODE = 'P0M04';
        END IF;
        NEW.is_verified := people > 0;
    END IF;
    RETURN NEW;
END $$;
