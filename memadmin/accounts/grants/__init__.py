"""Breaking the glass: leave to read locked sessions, with a reason, for an hour at most, seen by others."""
