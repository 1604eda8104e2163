"""Search for sessions: by words in their messages, and by a part of a subject's key, a ticket or a session id."""
