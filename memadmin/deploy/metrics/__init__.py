"""Metrics for Prometheus: requests and connections of the web processes, and figures from the database."""
