"""Finding, comparing and consolidating memories that say the same or contradict each other."""
