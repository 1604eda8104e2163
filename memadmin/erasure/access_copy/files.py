"""The folder of copies: names of files, writing under a temporary name, and deletion.

The web server and the worker must share it, as they share MEMADMIN_DATA_DIR.
"""

from __future__ import annotations

import os
import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from django.conf import settings

from memadmin.erasure.access_copy.keys import unwrapped
from memadmin.erasure.access_copy.sealed_files import SealedWriter
from memadmin.erasure.models import AccessCopy

ORPHAN_SECONDS = 3600
"""A file that no row names is deleted after this time: a build may be about to name it."""


def folder() -> Path:
    """The folder, made if it is missing; other accounts of the machine cannot read it."""
    path: Path = settings.ACCESS_COPY_FOLDER
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    return path


def file_of(copy: AccessCopy) -> Path:
    """The finished file; on another machine than the worker's it may not be there."""
    return folder() / copy.file_name


def parts_of(copy: AccessCopy) -> Path:
    """The folder of a copy that is being built: one encrypted part for each session and form."""
    return folder() / f"{copy.pk.hex}.parts"


def make_parts_folder(copy: AccessCopy) -> None:
    folder()
    parts_of(copy).mkdir(mode=0o700, exist_ok=True)


@contextmanager
def new_sealed_file(path: Path, copy: AccessCopy) -> Iterator[SealedWriter]:
    """A file that is there, and durable, only if the block ends without an error."""
    # Of its own, because a process that was replaced may still be writing.
    temporary = path.with_name(f"{path.name}.{secrets.token_hex(4)}.new")
    try:
        with open_private(temporary) as file:
            writer = SealedWriter(file, unwrapped(copy.key))
            try:
                yield writer
                writer.close()
            except BaseException:
                writer.give_up()
                raise
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def open_private(path: Path) -> IO[bytes]:
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")


def make_durable(path: Path) -> None:
    """Saves the names in a folder, as fsync of a file does not."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def put_in_place(built: Path, copy: AccessCopy, name: str) -> None:
    """Moves a finished file out of the parts, in place of what earlier attempts left."""
    delete_finished(copy)
    built.replace(folder() / name)
    make_durable(folder())


def delete_all(copy: AccessCopy) -> None:
    """Deletes the file and everything that attempts to build it have left. Raises OSError."""
    delete_finished(copy)
    delete_parts(copy)


def delete_finished(copy: AccessCopy) -> None:
    for path in folder().glob(f"{copy.pk.hex}-*"):
        path.unlink(missing_ok=True)


def delete_parts(copy: AccessCopy) -> None:
    shutil.rmtree(parts_of(copy), ignore_errors=True)


def delete_orphans() -> int:
    """Deletes what belongs to no copy that is kept; returns the number of files and folders. One query."""
    kept = set()
    for key, name in AccessCopy.objects.filter(state__in=AccessCopy.KEPT).values_list("pk", "file_name"):
        kept |= {name, f"{key.hex}.parts"}
    count = 0
    for path in folder().iterdir():
        if path.name not in kept and time.time() - path.lstat().st_mtime > ORPHAN_SECONDS:
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)
            count += 1
    return count
