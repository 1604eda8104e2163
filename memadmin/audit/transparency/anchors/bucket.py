"""Anchor in an S3 bucket with object lock: not even its owner can change a note before its retention ends.

One object for each checkpoint, `<prefix>/<epoch>/<size>.note`, written only if it does not exist yet. Credentials come
from boto3's own variables and files; the extra `memadmin[s3]` installs it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from memadmin.audit.transparency.anchors.base import (
    NOWHERE,
    AnchorFailed,
    Position,
    SecondRoot,
    is_there_already,
    shortened,
)
from memadmin.audit.transparency.notes import BadNote, Checkpoint, Note

TIMEOUT_SECONDS = 5
MOST_NOTE = 64 * 1024
MISSING = {"NoSuchKey", "404", "NotFound"}
TAKEN = {"PreconditionFailed", "412", "ConditionalRequestConflict"}


@dataclass(frozen=True, slots=True)
class BucketAnchor:
    bucket: str
    prefix: str
    keep_days: int
    is_local = False
    is_readable = True

    @property
    def name(self) -> str:
        return shortened(f"s3:{self.bucket}/{self.prefix}")

    def put(self, checkpoint: Checkpoint, note: str) -> str:
        from botocore.exceptions import BotoCoreError, ClientError

        client = self._client()
        try:
            # The oldest identifies the log, the newest its size; one of the same size is compared below.
            for key in self._oldest_and_newest(client, self._key(checkpoint)):
                is_there_already(self.name, self._checkpoint(client, key), checkpoint)
            try:
                answer = client.put_object(
                    Bucket=self.bucket,
                    Key=self._key(checkpoint),
                    Body=note.encode(),
                    ContentType="text/plain; charset=utf-8",
                    ChecksumAlgorithm="SHA256",
                    IfNoneMatch="*",
                    ObjectLockMode="COMPLIANCE",
                    ObjectLockRetainUntilDate=datetime.now(UTC) + timedelta(days=self.keep_days),
                )
            except ClientError as refusal:
                if refusal.response["Error"]["Code"] not in TAKEN:
                    raise
                known = self._checkpoint(client, self._key(checkpoint))
                if known is None:
                    raise SecondRoot(self.name, checkpoint) from refusal
                is_there_already(self.name, known, checkpoint)
                return "there already"
            return f"{self._key(checkpoint)} version {answer.get('VersionId', 'unknown')}"
        except (BotoCoreError, ClientError) as problem:
            raise AnchorFailed(f"{self.name} did not accept the checkpoint: {problem}") from problem

    def after(self, position: Position) -> Sequence[str]:
        from botocore.exceptions import BotoCoreError, ClientError

        client = self._client()
        try:
            return [self._read(client, key) for key in self._keys(client, self._key_of(position))]
        except (BotoCoreError, ClientError) as problem:
            raise AnchorFailed(f"{self.name} cannot be read: {problem}") from problem

    def _client(self) -> Any:
        try:
            import boto3
            from botocore.config import Config
        except ImportError as missing:
            raise AnchorFailed(f"{self.name} needs boto3: install memadmin[s3].") from missing
        limits = Config(
            connect_timeout=TIMEOUT_SECONDS, read_timeout=TIMEOUT_SECONDS, retries={"total_max_attempts": 2}
        )
        return boto3.client("s3", config=limits)

    def _key(self, checkpoint: Checkpoint) -> str:
        return self._key_of((checkpoint.epoch, checkpoint.size))

    def _key_of(self, position: Position) -> str:
        epoch, size = position
        folder = f"{self.prefix}/" if self.prefix else ""
        # Padded, so that keys sort in the order of checkpoints.
        return f"{folder}{epoch:06}/{size:019}.note"

    def _keys(self, client: Any, after: str) -> list[str]:
        """Keys of the checkpoints after one, in order."""
        folder = f"{self.prefix}/" if self.prefix else ""
        pages = client.get_paginator("list_objects_v2").paginate(
            Bucket=self.bucket, Prefix=folder, StartAfter=after if after != self._key_of(NOWHERE) else folder
        )
        names = [str(found["Key"]) for page in pages for found in page.get("Contents", ())]
        return [name for name in names if name.endswith(".note")]

    def _oldest_and_newest(self, client: Any, than: str) -> list[str]:
        folder = f"{self.prefix}/" if self.prefix else ""
        oldest = client.list_objects_v2(Bucket=self.bucket, Prefix=folder, MaxKeys=1).get("Contents", ())
        return [str(found["Key"]) for found in oldest if found["Key"] != than] + self._keys(client, than)[-1:]

    def _read(self, client: Any, key: str) -> str:
        from botocore.exceptions import ClientError

        try:
            body = client.get_object(Bucket=self.bucket, Key=key)["Body"]
        except ClientError as problem:
            if problem.response["Error"]["Code"] in MISSING:
                return ""
            raise
        return str(body.read(MOST_NOTE).decode(errors="replace"))

    def _checkpoint(self, client: Any, key: str) -> Checkpoint | None:
        try:
            return Checkpoint.parse(Note.parse(self._read(client, key)).text)
        except BadNote:
            return None
