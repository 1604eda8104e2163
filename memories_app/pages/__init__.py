"""Pages about memories outside the queue: the list, one memory, what a run recalled, and the recall preview."""
