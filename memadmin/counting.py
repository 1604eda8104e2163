"""How far pages count: a total of a large table costs more than it tells."""

COUNT_CAP = 1_000
"""Sessions, items and others are counted up to here; beyond it a page says "1,000+"."""
