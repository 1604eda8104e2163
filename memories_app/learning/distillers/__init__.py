"""Distillers: from messages of a session to possible memories. Pure: no query; a distiller may call a model."""
