"""Retrieval: vector indexes, the preview of a recall, and records of what runs were given."""
