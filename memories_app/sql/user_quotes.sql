-- Whether the console itself distilled or imported a memory, and has a quote of it that it found in a user's item of a
-- session of this subject. Proposers state kind, source and confidence themselves, so a rule goes by this. A quote shows
-- that the user said something, not that it is what an agent proposes; so a rule approves no proposal of an agent. The
-- row policy keeps these names of extractors from the agents' roles. The session still has to be on record and about
-- the subject: it may have been erased, or attributed to another subject, since the quote was found.
CREATE OR REPLACE FUNCTION memadmin_has_user_quote(of_memory uuid, of_subject uuid) RETURNS boolean
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    RETURN EXISTS (
        SELECT FROM memories_app_evidence AS e
        JOIN memories_app_memory AS m ON m.id = e.memory_id
        JOIN sessions_app_sessionrecord AS s ON s.id = e.record_id
        WHERE e.memory_id = of_memory AND m.extractor ~ '^(rules/|import/|agent/[0-9])'
          AND e.said_by_user AND e.gone_at IS NULL AND s.erased_at IS NULL
          AND s.subject_id = ANY (memadmin_subject_group(of_subject))
    );
END $$;
