"""What retention policies are about: sessions, items, memories and the rest, one class for each."""
