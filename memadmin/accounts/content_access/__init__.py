"""Reading what people and agents said: for a purpose that was stated, and not by the hundred (governance S-4)."""
