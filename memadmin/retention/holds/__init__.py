"""Legal holds: what must not be deleted."""
