"""Reasons why data of a person stays after an erasure, and what is out of reach: codes with sentences.

Receipts and the audit log name the codes, pages the sentences.
"""

from __future__ import annotations

from django.db import models


class Left(models.TextChoices):
    """Reasons for which an erasure ends as complete with exceptions."""

    HELD = "held", "A legal hold keeps these rows."
    CANNOT_ERASE = "cannot_erase", "Stores of this kind cannot erase sessions."
    ODD_ID = "odd_id", "Sessions with an ID that is no text, or too long, cannot be erased from here."
    LEFT_OUT = "left_out", "The store did not respond; a person decided to end without it."
    STORE_REMOVED = "store_removed", "The store was disconnected: its sessions cannot be reached."
    OTHERS_TEXT = "others_text", "The person is named in sessions of other subjects."
    NOT_SEARCHED = "not_searched", "Some of it could not be read, so the scan did not search it."
    STILL_FOUND = "still_found", "The last scan found the person's ids in data that no step erases."
    ON_REPLICA = "on_replica", "A replica of the database had not replayed the erasure."


class OutOfReach(models.TextChoices):
    """Copies that memadmin cannot erase, whatever it does. They do not change the outcome."""

    BACKUPS = "backups", "Backups and write-ahead logs contain the data until they expire."
    SAVED_RUN_STATES = "saved_run_states", "Run states that the agents' programs saved contain whole conversations."
    COMPACTION = "compaction", "Compacted history at the model provider holds text that only the provider can open."
    NOT_VACUUMED = "not_vacuumed", "Deleted rows stay in the files of some tables until PostgreSQL's next vacuum."
    SHORT_IDS = "short_ids", "IDs of fewer than three characters are not looked for in texts."
    NOT_SEARCHED = "not_searched", "Columns that memadmin's worker may not read were not searched."
    DOWNLOADS = "downloads", "Files that people downloaded before are wherever they keep them; the audit log has who."
    PROVIDER = "provider", "Conversations at the model provider cannot be reached without its key."
    LOGS = (
        "logs",
        "Logs of the web server, the database and the agents' programs are not under memadmin's control.",
    )
