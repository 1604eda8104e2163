"""Learning from sessions: distillers, proposals with evidence and risks, feedback, and learning stops."""
