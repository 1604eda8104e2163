"""Step: the keys with which agents encrypted the person's sessions."""

from __future__ import annotations

from memadmin.client.subject_keys import SubjectKeyDestroyed, SubjectKeysUnavailable
from memadmin.client.subjects import Subject as SubjectInHost
from memadmin.erasure.models import ErasureStep
from memadmin.erasure.scope import SubjectScope
from memadmin.erasure.steps.base import Counted, Done, Step
from sessions_app.encryption.subject_keys import key_folder
from sessions_app.models import SubjectAlias
from sessions_app.services.deletion_guards import DeletionRefused
from sessions_app.services.subject_keys import destroy_subject_keys
from sessions_app.stores.base import StoreUnavailable


class Keys(Step):
    name = "subject_keys"
    title = "Keys of encrypted sessions"
    what_happens = "Destroyed: copies of these sessions, as in backups, cannot be read any more."
    after = ("sessions",)

    def count(self, scope: SubjectScope, place: str) -> Counted:
        try:
            keys = keys_of(scope)
        except SubjectKeysUnavailable:
            return Counted(0, problem="The folder of the keys cannot be read, so this is not counted.")
        return Counted(keys, held=keys if scope.held_records else 0)

    def erase_some(self, scope: SubjectScope, step: ErasureStep, *, at_most: int) -> Done:
        try:
            return destroy_keys(scope)
        except SubjectKeysUnavailable as problem:
            raise StoreUnavailable("The folder of the subjects' keys does not respond.") from problem


def destroy_keys(scope: SubjectScope) -> Done:
    """Number of destroyed keys, or of those that a hold keeps. Raises SubjectKeysUnavailable."""
    try:
        destroyed = destroy_subject_keys(scope.subject)
    except DeletionRefused:
        return Done(held=keys_of(scope))
    return Done(passed=destroyed, erased=destroyed)


def keys_of(scope: SubjectScope) -> int:
    """Number of keys that were not destroyed. Raises SubjectKeysUnavailable."""
    folder = key_folder()
    if folder is None:
        return 0
    count = 0
    for kind, key in SubjectAlias.objects.filter(subject_id__in=scope.group).values_list("kind", "key"):
        try:
            count += folder.existing_key(SubjectInHost(key, kind)) is not None
        except SubjectKeyDestroyed:
            continue
    return count
