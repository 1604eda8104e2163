-- The row at which holds and deletions meet, and the triggers of holds on tables of other apps, which know nothing of them.

INSERT INTO retention_holdlock (last_number) SELECT 0 WHERE NOT EXISTS (SELECT FROM retention_holdlock);

CREATE OR REPLACE TRIGGER hold_refuses_erasure BEFORE UPDATE OF erased_at ON sessions_app_sessionrecord
FOR EACH ROW WHEN (OLD.erased_at IS NULL AND NEW.erased_at IS NOT NULL) EXECUTE FUNCTION memadmin_refuse_held_session();

CREATE OR REPLACE TRIGGER hold_refuses_deletion BEFORE DELETE ON sessions_app_sessionrecord
FOR EACH ROW WHEN (OLD.erased_at IS NULL) EXECUTE FUNCTION memadmin_refuse_held_session();

CREATE OR REPLACE TRIGGER hold_keeps_session BEFORE UPDATE OF subject_id, labels ON sessions_app_sessionrecord
FOR EACH ROW WHEN (OLD.subject_id IS DISTINCT FROM NEW.subject_id OR NOT NEW.labels @> OLD.labels)
EXECUTE FUNCTION memadmin_keep_held_session();

CREATE OR REPLACE TRIGGER hold_keeps_identity BEFORE UPDATE OF id, store_id, session_id ON sessions_app_sessionrecord
FOR EACH ROW WHEN ((OLD.id, OLD.store_id, OLD.session_id) IS DISTINCT FROM (NEW.id, NEW.store_id, NEW.session_id))
EXECUTE FUNCTION memadmin_refuse_held_session();

CREATE OR REPLACE TRIGGER hold_refuses_deletion BEFORE DELETE ON sessions_app_subject
FOR EACH ROW WHEN (OLD.merged_into_id IS NOT NULL) EXECUTE FUNCTION memadmin_keep_held_merge();

CREATE OR REPLACE TRIGGER hold_keeps_subject BEFORE UPDATE OF subject_id ON memories_app_memory
FOR EACH ROW WHEN (OLD.subject_id IS DISTINCT FROM NEW.subject_id) EXECUTE FUNCTION memadmin_refuse_held_row();

CREATE OR REPLACE TRIGGER hold_keeps_text BEFORE UPDATE OF subject_id, record_id, text ON memories_app_signal
FOR EACH ROW WHEN ((OLD.subject_id, OLD.record_id, OLD.text) IS DISTINCT FROM (NEW.subject_id, NEW.record_id, NEW.text))
EXECUTE FUNCTION memadmin_refuse_held_row();

CREATE OR REPLACE TRIGGER hold_keeps_text BEFORE UPDATE OF memory_id, record_id, quote ON memories_app_evidence
FOR EACH ROW WHEN ((OLD.memory_id, OLD.record_id, OLD.quote) IS DISTINCT FROM (NEW.memory_id, NEW.record_id, NEW.quote))
EXECUTE FUNCTION memadmin_refuse_held_row();

CREATE OR REPLACE TRIGGER hold_keeps_merge BEFORE UPDATE OF merged_into_id ON sessions_app_subject
FOR EACH ROW WHEN (OLD.merged_into_id IS NOT NULL AND OLD.merged_into_id IS DISTINCT FROM NEW.merged_into_id)
EXECUTE FUNCTION memadmin_keep_held_merge();

CREATE OR REPLACE TRIGGER hold_refuses_erasure BEFORE UPDATE OF erased_at ON memories_app_memoryversion
FOR EACH ROW WHEN (OLD.erased_at IS NULL AND NEW.erased_at IS NOT NULL) EXECUTE FUNCTION memadmin_refuse_held_row();

DO $$
DECLARE
    of_memories text;
BEGIN
    FOREACH of_memories IN ARRAY ARRAY[
        'memories_app_memory', 'memories_app_memoryversion', 'memories_app_evidence', 'memories_app_signal',
        'memories_app_recall'
    ] LOOP
        EXECUTE format(
            'CREATE OR REPLACE TRIGGER hold_refuses_deletion BEFORE DELETE ON %I'
            ' FOR EACH ROW EXECUTE FUNCTION memadmin_refuse_held_row()', of_memories
        );
    END LOOP;
END $$;
