"""Access grants ("break-glass"): temporary access to locked sessions, with a reason, for at most an hour, reviewed."""
