"""Finding sessions: by what was said in them, and by a part of a subject's key, a ticket or a session id."""
