-- Notes memories whose vector another index has to take in or let go.

CREATE FUNCTION memadmin_note_vector() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    INSERT INTO memories_app_vectornote (memory_id) VALUES (OLD.id)
    ON CONFLICT (memory_id) DO UPDATE SET token = gen_random_uuid();
    RETURN NULL;
END $$;
