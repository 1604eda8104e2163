"""Retention policies: what goes after which time, how one wins over another, and how they are changed."""
