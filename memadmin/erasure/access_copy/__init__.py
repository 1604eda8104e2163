"""Copies of a person's data for the person (GDPR article 15): built by a run, encrypted, downloaded once, deleted.

`records` says what is in a copy, `building` writes it, `services` has the verbs of people, `files` the folder.
"""
