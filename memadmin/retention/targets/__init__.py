"""Targets of retention policies: sessions, items, memories and the rest, one class for each."""
