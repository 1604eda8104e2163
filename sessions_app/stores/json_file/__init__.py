"""Folders of JSON and JSON Lines files, one session each."""
