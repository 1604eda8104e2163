"""Pages of the log: list, event, exports, erasure of details."""
