"""Requests of subjects, and the map of the data that they are about."""
