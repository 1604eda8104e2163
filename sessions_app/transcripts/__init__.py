"""Transcripts in chat form (`role`, `content`, `tool_calls`) as the items that an agent would have stored.

`parsing` finds the conversations of a file, `chat` converts their messages. Both are pure: no store, no database.
"""
