"""The ledger file: JSON Lines with keyed digests of ids, no personal data.

Each line is `{"number", "at", "request", "subjects", "sessions", "mac"}`. The digests, and the code that chains the
lines, are HMAC-SHA256 under a key derived from MEMADMIN_SECRET_KEY, which no dump of the database contains. Lines that
were written under an older secret key are valid as long as it is one of MEMADMIN_OLD_SECRET_KEYS.
"""

from __future__ import annotations

import fcntl
import hashlib
import hmac
import json
import os
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

from django.conf import settings

from memadmin.derived_keys import derived_keys

PURPOSE = "memadmin suppression ledger"

START = "0" * 64
"""The code before the first line."""


class LedgerError(Exception):
    """The ledger cannot be read or written; the message is a sentence for operators."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One erasure."""

    number: int
    at: str
    request: UUID
    subjects: frozenset[str]
    sessions: frozenset[str]


def subject_digests(kind: str, key: str) -> list[str]:
    """Digest of a person's ID for a new entry, then those in entries from before the secret key changed."""
    return _macs("subject", kind, key)


def session_digests(store: str, session_id: str) -> list[str]:
    """Digest of a session for a new entry, then those in entries from before the secret key changed."""
    return _macs("session", store, session_id)


@dataclass(frozen=True, slots=True)
class Verified:
    """Lines of a ledger whose codes were verified, under these keys."""

    keys: Sequence[bytes]
    text: str = ""
    entries: Sequence[Entry] = ()
    code: str = START
    """The code of the last line."""


_last_read: dict[Path, Verified] = {}
"""Verified lines by file, kept in this process: each erasure reads the whole ledger, so a batch would verify every line
once for each of its cases. Memory: about 1 kB for each entry.
"""


@dataclass(frozen=True, slots=True)
class Ledger:
    path: Path

    def entries(self) -> Sequence[Entry]:
        """All entries, in their order. Raises LedgerError for a line that was changed, added or taken out."""
        return self._verified().entries

    def _verified(self) -> Verified:
        text, keys = self._text(), derived_keys(PURPOSE)
        known = _last_read.get(self.path)
        if known is None or known.keys != keys or not text.startswith(known.text):
            known = Verified(keys)
        entries, code = list(known.entries), known.code
        for number, line in enumerate(text[len(known.text) :].split("\n")[:-1], len(entries) + 1):
            try:
                row = json.loads(line)
                given = row.pop("mac")
                entry = Entry(
                    row["number"],
                    row["at"],
                    UUID(row["request"]),
                    frozenset(row["subjects"]),
                    frozenset(row["sessions"]),
                )
            except (ValueError, KeyError, TypeError, AttributeError) as problem:
                raise LedgerError(f"Line {number} of the suppression ledger cannot be read.") from problem
            matching = [mac for mac in _macs("line", code, canonical(row)) if hmac.compare_digest(mac, str(given))]
            if not matching:
                raise LedgerError(
                    f"Line {number} of the suppression ledger was changed, or its secret key is neither"
                    " MEMADMIN_SECRET_KEY nor one of MEMADMIN_OLD_SECRET_KEYS."
                )
            code = matching[0]
            entries.append(entry)
        verified = _last_read[self.path] = Verified(keys, text, entries, code)
        return verified

    def append(self, request: UUID, *, subjects: Collection[str], sessions: Collection[str], after: int) -> Entry:
        """Adds an erasure and returns its entry; one of this request that is there already is returned.

        Its number follows the last one, and `after`. On disk when it returns. Raises LedgerError.
        """
        with self._locked() as file:
            verified = self._verified()
            entries = verified.entries
            for entry in reversed(entries):
                if entry.request == request:
                    return entry
            row: dict[str, Any] = {
                "number": max(after, entries[-1].number if entries else 0) + 1,
                "at": datetime.now(UTC).isoformat(timespec="seconds"),
                "request": str(request),
                "subjects": sorted(subjects),
                "sessions": sorted(sessions),
            }
            line = canonical({**row, "mac": _macs("line", verified.code, canonical(row))[0]})
            try:
                rest = line.encode() + b"\n"
                while rest:
                    rest = rest[os.write(file, rest) :]
                os.fsync(file)
                self._sync_folder()
            except OSError as problem:
                raise LedgerError(f"The suppression ledger cannot be written: {problem.strerror}.") from problem
            return Entry(row["number"], row["at"], request, frozenset(subjects), frozenset(sessions))

    def _text(self) -> str:
        """Complete lines. A last one without its end was left by a crash: its erasure has not begun."""
        try:
            text = self.path.read_text(encoding="utf-8") if self.path.exists() else ""
        except (OSError, UnicodeDecodeError) as problem:
            raise LedgerError("The suppression ledger cannot be read.") from problem
        return text[: text.rfind("\n") + 1]

    @contextmanager
    def _locked(self) -> Iterator[int]:
        try:
            # The folder is not created: without its volume mounted, the file would be hidden by a later mount.
            file = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
        except OSError as problem:
            raise LedgerError(f"The suppression ledger cannot be written: {problem.strerror}.") from problem
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            self._cut_rest(file)
            yield file
        finally:
            os.close(file)

    def _sync_folder(self) -> None:
        """Otherwise a new file may be gone after a power cut."""
        folder = os.open(self.path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def _cut_rest(self, file: int) -> None:
        """Removes what a crash left of a line."""
        complete = len(self._text().encode())
        if os.fstat(file).st_size > complete:
            os.ftruncate(file, complete)


def own_ledger() -> Ledger | None:
    """The ledger of this console; None if it has none."""
    return Ledger(Path(settings.SUPPRESSION_LEDGER)) if settings.SUPPRESSION_LEDGER else None


def canonical(row: dict[str, Any]) -> str:
    return json.dumps(row, sort_keys=True, separators=(",", ":"))


def _macs(*parts: str) -> list[str]:
    """One code for each secret key, the present one's first."""
    message = "\0".join([*(str(len(part)) for part in parts), *parts]).encode()
    return [hmac.new(key, message, hashlib.sha256).hexdigest() for key in derived_keys(PURPOSE)]
