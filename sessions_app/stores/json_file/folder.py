"""Folder of files that agents write at any time: consistent reads, and changes that lose no concurrent write.

Agents do not lock such files. So a change is written to a new file, which replaces the old one in one step, and starts
again if the old one has changed since it was read: before that step, and for a moment after it, because an agent that
had opened the old file still writes to it.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from time import monotonic, sleep, time

from sessions_app.stores.base import SessionBusy, SessionUnreadable, StoreUnavailable
from sessions_app.stores.json_file.entries import Entries

PATIENCE_SECONDS = 5.0
"""Time that a change waits for writing agents."""

SETTLING_LOOKS, SETTLING_SECONDS = 10, 0.01
"""Number of checks of the old file after a change, and the pause before each, for late writes of an agent that had
opened it before. A count and not a deadline: on a machine that is suspended meanwhile the agent stops as well."""

LARGEST_FILE_BYTES = 256 * 1024 * 1024
"""Largest file: files are read and written as a whole."""

OWN_FILES = ".memadmin-"
"""Prefix of temporary files that are about to replace others."""

LEFT_BEHIND_SECONDS = 60
"""Age from which a temporary file was left by a process that died."""

Change = Callable[[Entries], bytes]


class FileUnusable(SessionUnreadable):
    """One file of the folder cannot be read; the others can."""


@dataclass(frozen=True)
class Version:
    """Version of a file, to notice that it has changed since it was read."""

    inode: int
    byte_count: int
    written_at_ns: int

    @classmethod
    def of(cls, status: os.stat_result) -> Version:
        return cls(status.st_ino, status.st_size, status.st_mtime_ns)


@dataclass(frozen=True)
class Folder:
    """Access to the files directly in a folder; no name leads elsewhere."""

    path: str

    def identity(self) -> tuple[str, str]:
        """Identity of the folder, equal for every path to it."""
        with self._in_plain_words(), self._entered() as folder:
            status = os.fstat(folder)
        return str(status.st_dev), str(status.st_ino)

    # --- read ---------------------------------------------------------------------------------------------------------

    def names(self, ending: str) -> list[str]:
        """Names of its files with this ending, in order, without links."""
        with self._in_plain_words(), os.scandir(self.path) as entries:
            return sorted(
                entry.name
                for entry in entries
                if entry.name.endswith(ending)
                and not entry.name.startswith(OWN_FILES)
                and entry.is_file(follow_symlinks=False)
            )

    def links(self, ending: str) -> int:
        """Number of links with this ending."""
        with self._in_plain_words(), os.scandir(self.path) as entries:
            return sum(entry.name.endswith(ending) and entry.is_symlink() for entry in entries)

    def status(self, name: str) -> os.stat_result | None:
        """Status of a file; None if there is no such file."""
        with self._opened(name) as file:
            return None if file is None else os.fstat(file)

    def read(self, name: str, limit: int = -1) -> bytes | None:
        """Content of a file, or its beginning; None if there is no such file."""
        with self._opened(name) as file:
            return None if file is None else self._content(file, limit)

    # --- changed ------------------------------------------------------------------------------------------------------

    def remove(self, name: str) -> bytes | None:
        """Deletes a file, and returns its content."""
        with self._opened(name) as file, self._in_plain_words(is_change=True), self._entered() as folder:
            if file is None:
                return None
            self._check_replaceable(os.fstat(file))
            self._sweep(folder)
            os.unlink(name, dir_fd=folder)
            os.fsync(folder)
            return self._content(file)

    def change(self, name: str, change: Change) -> None:
        """Replaces a file by the result of `change`; an exception of it passes, and nothing is changed then.

        Mode, owner and times stay. Raises FileNotFoundError, SessionBusy and StoreUnavailable.
        """
        give_up_at = monotonic() + PATIENCE_SECONDS
        while not self._changed(name, change, is_last_try=monotonic() > give_up_at):
            if monotonic() > give_up_at:
                raise SessionBusy("An agent kept writing to the session's file; nothing was changed. Try again.")
            sleep(0.02)

    def _changed(self, name: str, change: Change, *, is_last_try: bool) -> bool:
        with self._opened(name) as file, self._in_plain_words(is_change=True), self._entered() as folder:
            if file is None:
                raise FileNotFoundError(name)
            before = os.fstat(file)
            self._check_replaceable(before)
            entries = Entries(self._content(file))
            # An incomplete file that stays so was cut off by its writer: then its end is kept as it is.
            is_still = Version.of(os.fstat(file)) == Version.of(before)
            if not is_still or not (entries.is_finished or is_last_try):
                return False
            content = change(entries)
            if content == entries.content:
                return True
            self._sweep(folder)
            new = self._write_beside(folder, content, like=file)
            try:
                with suppress(FileNotFoundError):
                    now = os.stat(name, dir_fd=folder, follow_symlinks=False)
                    if Version.of(now) == Version.of(before):
                        os.rename(new, name, src_dir_fd=folder, dst_dir_fd=folder)
                        os.fsync(folder)
                        self._take_over(folder, name, file, entries.content, content, change)
                        return True
                return False
            finally:
                with suppress(FileNotFoundError):
                    os.unlink(new, dir_fd=folder)

    def _take_over(self, folder: int, name: str, old: int, before: bytes, after: bytes, change: Change) -> None:
        """Copies late writes to the old file, which has no name any more, to the new one."""
        for _ in range(SETTLING_LOOKS):
            sleep(SETTLING_SECONDS)
            late = self._content(old)
            if late == before:
                continue
            if late.startswith(before) and not Entries(before).is_array:
                with open(os.open(name, os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW, dir_fd=folder), "ab") as new:
                    new.write(late[len(before) :])
                before = late
            elif Entries(late).is_finished and late:
                # Written anew as a whole, as agents do that hold a session in memory.
                self._put_back(folder, name, late, change, like=old, unless_not=after)
                return

    def _put_back(self, folder: int, name: str, late: bytes, change: Change, *, like: int, unless_not: bytes) -> None:
        """Applies the change to an agent's later version. An even later one, at the name itself, wins."""
        if self.read(name) != unless_not:
            return
        try:
            content = change(Entries(late))
        except Exception:
            # The change does not apply to it: the agent's version stays, and the exception reaches the caller.
            self._write_at(folder, name, late, like=like)
            raise
        self._write_at(folder, name, content, like=like)

    def _write_at(self, folder: int, name: str, content: bytes, *, like: int) -> None:
        os.rename(self._write_beside(folder, content, like=like), name, src_dir_fd=folder, dst_dir_fd=folder)

    def _write_beside(self, folder: int, content: bytes, *, like: int) -> str:
        """Name of a new file that can replace another: it has the same owner and permissions."""
        name = f"{OWN_FILES}{os.urandom(8).hex()}"
        file = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600, dir_fd=folder)
        try:
            with open(file, "wb", closefd=False) as new:
                new.write(content)
            old = os.fstat(like)
            if (old.st_uid, old.st_gid) != (os.fstat(file).st_uid, os.fstat(file).st_gid):
                os.fchown(file, old.st_uid, old.st_gid)
            # Rights and times: a session is not newer because something in it was redacted.
            shutil.copystat(like, file)  # type: ignore[arg-type]  # it takes open files, too
            os.fsync(file)
        except BaseException:
            os.unlink(name, dir_fd=folder)
            raise
        finally:
            os.close(file)
        return name

    def _sweep(self, folder: int) -> None:
        """Deletes old temporary files: such copies of sessions would outlive them."""
        for name in os.listdir(folder):
            if name.startswith(OWN_FILES):
                with suppress(FileNotFoundError):
                    made_at = os.stat(name, dir_fd=folder, follow_symlinks=False).st_ctime
                    if time() - made_at > LEFT_BEHIND_SECONDS:
                        os.unlink(name, dir_fd=folder)

    def _check_replaceable(self, status: os.stat_result) -> None:
        if status.st_nlink > 1:
            raise FileUnusable(
                "The session's file has a hard link, under which erased text would remain. Nothing was changed. Remove"
                " the hard link first."
            )

    # --- opened -------------------------------------------------------------------------------------------------------

    @contextmanager
    def _entered(self) -> Iterator[int]:
        folder = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            yield folder
        finally:
            os.close(folder)

    @contextmanager
    def _opened(self, name: str) -> Iterator[int | None]:
        """Open file; None if it does not exist, or is a link, a folder or a pipe."""
        with self._in_plain_words():
            file = self._open(name)
            try:
                yield file
            finally:
                if file is not None:
                    os.close(file)

    def _open(self, name: str) -> int | None:
        if "/" in name or "\0" in name:
            return None
        with self._entered() as folder:
            try:
                file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
            except PermissionError as problem:
                raise FileUnusable("This console may not read the session's file.") from problem
            except OSError as problem:
                if problem.errno in (errno.ENOENT, errno.ELOOP, errno.ENAMETOOLONG, errno.ENXIO):
                    return None
                raise
        if stat.S_ISREG(os.fstat(file).st_mode):
            return file
        os.close(file)
        return None

    def _content(self, file: int, limit: int = -1) -> bytes:
        if os.fstat(file).st_size > LARGEST_FILE_BYTES:
            raise FileUnusable(f"The session's file has more than {LARGEST_FILE_BYTES >> 20} MB.")
        os.lseek(file, 0, os.SEEK_SET)
        with open(file, "rb", closefd=False) as stream:
            return stream.read(limit)

    @contextmanager
    def _in_plain_words(self, *, is_change: bool = False) -> Iterator[None]:
        """Turns errors of the system into StoreUnavailable with a sentence, without the name of a session."""
        nothing = " Nothing was changed." if is_change else ""
        try:
            yield
        except FileNotFoundError as problem:
            if os.path.isdir(self.path):
                raise
            raise StoreUnavailable(f"There is no folder {self.path}.") from problem
        except NotADirectoryError as problem:
            raise StoreUnavailable(f"{self.path} is not a folder.") from problem
        except PermissionError as problem:
            what = "change files of agents in" if is_change else "read all of"
            raise StoreUnavailable(f"This console may not {what} the folder {self.path}.{nothing}") from problem
        except OSError as problem:
            why = (problem.strerror or "it is not responding").lower()
            raise StoreUnavailable(f"The folder {self.path} cannot be used: {why}.{nothing}") from problem
