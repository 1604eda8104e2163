"""Recall: vector indexes, the recall preview, and view models of memories used in runs."""
