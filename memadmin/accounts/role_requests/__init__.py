"""Role requests: one administrator requests a right for a person, and another one confirms it."""
