"""Copies for tests, and what is in them."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any
from zipfile import ZipFile

from django.contrib.auth.models import User

from memadmin.erasure import services
from memadmin.erasure.access_copy import files
from memadmin.erasure.access_copy.keys import unwrapped
from memadmin.erasure.access_copy.sealed_files import unsealed
from memadmin.erasure.access_copy.services import approve_full_copy, build_access_copy, request_full_copy
from memadmin.erasure.models import AccessCopy, SubjectRequest
from memadmin.runs import engine
from sessions_app.models import Subject
from tests.approvals import shown
from tests.erasure.builders import make_request


def checked_access(subject: Subject, *, by: User) -> SubjectRequest:
    """An access request whose identity was checked."""
    request = make_request(subject, by=by, kind=SubjectRequest.Kind.ACCESS)
    return services.check_identity(request, note="passport shown", by=by)


def started_copy(subject: Subject, *, by: User) -> AccessCopy:
    return build_access_copy(checked_access(subject, by=by), by=by)


def built_copy(subject: Subject, *, by: User) -> AccessCopy:
    return finished(started_copy(subject, by=by))


def approved_copy(subject: Subject, *, by: User, second: User) -> AccessCopy:
    """A started copy with the locked sessions, which a second person approved."""
    request = request_full_copy(checked_access(subject, by=by), by=by)
    return approve_full_copy(request, by=second, shown=shown(request))


def full_copy(subject: Subject, *, by: User, second: User) -> AccessCopy:
    """A built copy with the locked sessions."""
    return finished(approved_copy(subject, by=by, second=second))


def finished(copy: AccessCopy) -> AccessCopy:
    run = engine.carry_on(copy.run)
    copy.refresh_from_db()
    copy.request.refresh_from_db()
    assert copy.state == AccessCopy.State.READY, (run.state, run.reason)
    return copy


def plain_file(copy: AccessCopy) -> bytes:
    return b"".join(unsealed(files.file_of(copy), unwrapped(copy.key)))


def opened(copy: AccessCopy) -> ZipFile:
    return ZipFile(io.BytesIO(plain_file(copy)))


def json_in(archive: ZipFile, name: str) -> Any:
    return json.loads(archive.read(name))


def all_text(archive: ZipFile) -> str:
    return "\n".join(archive.read(name).decode() for name in archive.namelist())


def files_in_folder() -> list[Path]:
    return sorted(path for path in files.folder().rglob("*"))
