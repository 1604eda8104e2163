"""Learning from sessions: distillers, proposals with their evidence and risks, feedback, and stopping it."""
