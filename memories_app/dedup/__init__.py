"""Search, comparison and consolidation of duplicate and contradicting memories."""
