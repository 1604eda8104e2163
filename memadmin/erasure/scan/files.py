"""Search in files: those of memadmin's data folder, and the files of local stores byte by byte.

Deleted text can stay in free pages of a database file, in its log, and in copies that lie beside.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from pathlib import Path

from django.conf import settings

from memadmin.erasure.exceptions import Left
from memadmin.erasure.scan.people import NOBODY, Cases, People
from memadmin.erasure.scan.progress import Progress
from memadmin.erasure.scan.variants import overlap
from sessions_app.models import SessionStore
from sessions_app.stores.kinds import kind_of

PIECE_BYTES = 1024 * 1024

NOT_OURS = ("postgres", "static")
"""Folders of the data folder that are not searched: the database by its tables, and files of the program."""

SERVERS_LOG = "postgres.log"
"""Begin of the names of the embedded server's logs, which are out of reach like every database server's."""


def search_files(people: People, progress: Progress, *, later: Collection[str] = ()) -> None:
    """Searches every file that is not done, but those of the stores named in `later`. What cannot be read is noted."""
    for place, paths in places():
        part = f"files {place}"
        if progress.is_done(part) or place in later:
            continue
        # Hits of a store's items were counted already, and have the same bytes.
        counted = progress.cases_at(place)
        progress.begin(part)
        for path in paths:
            try:
                found = named_in_file(path, people, progress)
            except FileNotFoundError:
                continue
            except OSError:
                progress.found(people.cases, f"{place}.files", code=Left.NOT_SEARCHED.value)
                continue
            progress.found(found - counted, f"{place}.files", code=Left.STILL_FOUND.value)
        progress.finish(part)


def places() -> Iterator[tuple[str, list[Path]]]:
    """Names of places with their files."""
    yield "data_folder", sorted(own_files(settings.DATA_DIR))
    for store in SessionStore.objects.order_by("name"):
        if kind_of(store).watched_field is None:
            continue
        path = Path(str(store.options.get("path", "")))
        if path.is_dir():
            yield store.name, sorted(each for each in path.iterdir() if each.is_file() and not each.is_symlink())
        elif path.is_file():
            beside = [path.with_name(path.name + ending) for ending in ("-wal", "-journal")]
            yield store.name, [path, *(each for each in beside if each.is_file())]


def own_files(folder: Path) -> Iterator[Path]:
    for parent, folders, names in os.walk(folder):
        if Path(parent) == folder:
            folders[:] = [name for name in folders if name not in NOT_OURS]
        searched = (name for name in names if not name.startswith(SERVERS_LOG))
        yield from (Path(parent, name) for name in searched if Path(parent, name).is_file())


def named_in_file(path: Path, people: People, progress: Progress) -> Cases:
    """Cases whose person is named in the file, which is read in pieces that overlap, so that no text is cut."""
    found, end, shared = NOBODY, b"", overlap(people.finder)
    with path.open("rb") as file:
        while piece := file.read(PIECE_BYTES):
            content = end + piece
            if people.finder.may_find(content):
                found |= people.named_in(content.decode(errors="replace"))
            end = content[-shared:]
            progress.keep()
    return found
