"""The folder of subjects' keys: one key for an id whoever asks first, and none for an id whose key was destroyed."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import pytest
from cryptography.fernet import Fernet

from memadmin.client.subject_keys import KeyFolder, SubjectKeyDestroyed, SubjectKeysUnavailable
from memadmin.client.subjects import Subject
from tests.stores.test_rights_of_files import as_nobody
from tests.stores.test_rights_of_files import folder as folder

WRAPPING = {"vault-2026": Fernet.generate_key().decode()}
ANNA, BEN = Subject("cust_1"), Subject("cust_2")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "subject-keys"
    path.mkdir(mode=0o700)
    return path


@pytest.fixture
def keys(path: Path) -> KeyFolder:
    return KeyFolder(path, WRAPPING)


def files(path: Path) -> set[Path]:
    """Key files, notes and temporary files, without the key of the names."""
    return {file for file in path.iterdir() if file.name not in ("names", "lock")}


def test_each_id_has_a_key_that_the_sdk_takes_and_that_stays(keys: KeyFolder, path: Path) -> None:
    key = keys.key_for(ANNA)
    assert len(Fernet(key)._encryption_key) == 16
    assert KeyFolder(path, WRAPPING).key_for(ANNA) == key == keys.existing_key(ANNA)
    assert len({key, keys.key_for(BEN), keys.key_for(Subject("cust_1", "project"))}) == 3
    assert keys.existing_key(Subject("cust_3")) is None


def test_files_reveal_neither_ids_nor_keys_and_are_for_one_user(keys: KeyFolder, path: Path) -> None:
    before = os.umask(0)
    try:
        key = keys.key_for(ANNA)
    finally:
        os.umask(before)
    for file in path.iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert "cust_1" not in file.name + file.read_text()
        assert key not in file.read_text()
    assert WRAPPING["vault-2026"] not in repr(keys)
    (path.parent / "other").mkdir(mode=0o700)
    KeyFolder(path.parent / "other", WRAPPING).key_for(ANNA)
    # Nor could someone who knows an id find its file.
    assert {file.name for file in files(path)}.isdisjoint(file.name for file in files(path.parent / "other"))


def test_a_file_under_another_name_is_no_key(keys: KeyFolder, path: Path) -> None:
    keys.key_for(ANNA)
    (of_anna,) = files(path)
    keys.key_for(BEN)
    (of_ben,) = files(path) - {of_anna}
    of_ben.write_bytes(of_anna.read_bytes())
    with pytest.raises(SubjectKeysUnavailable, match="or the file was changed"):
        keys.key_for(BEN)


# --- processes beside each other --------------------------------------------------------------------------------------

MAKE = """
import json, sys
from memadmin.client.subject_keys import KeyFolder
from memadmin.client.subjects import Subject

path, wrapping = json.loads(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
print(KeyFolder(path, wrapping).key_for(Subject("cust_1")))
"""


def process(path: Path) -> subprocess.Popen[str]:
    arguments = [sys.executable, "-c", MAKE, json.dumps([str(path), WRAPPING])]
    started = subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert started.stdout
    assert started.stdout.readline() == "ready\n"
    return started


@pytest.mark.slow
def test_processes_that_make_a_key_at_once_all_use_the_same(path: Path) -> None:
    racing = [process(path) for _ in range(4)]
    for each in racing:
        assert each.stdin
        each.stdin.write("\n")
        each.stdin.flush()
    made = {each.communicate()[0].strip() for each in racing}
    assert made == {KeyFolder(path, WRAPPING).key_for(ANNA)}
    assert len(list(path.iterdir())) == 2


def test_the_key_of_the_faster_process_counts(keys: KeyFolder, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is made between the moments in which the slower one looks for a key and has one."""
    keys.key_for(BEN)
    other, write = KeyFolder(path, WRAPPING), keys._written_beside
    faster = []

    def be_slow(name: str, content: Any) -> Path:
        faster.append(other.key_for(ANNA))
        return write(name, content)

    monkeypatch.setattr(keys, "_written_beside", be_slow)
    assert [keys.key_for(ANNA)] == faster


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_destruction_while_the_key_is_made_wins(
    keys: KeyFolder, path: Path, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    keys.key_for(BEN)
    other, write = KeyFolder(path, WRAPPING), keys._written_beside

    def be_slow(name: str, content: Any) -> Path:
        if when == "before":
            other.destroy(ANNA)
        written = write(name, content)
        if when == "after":
            other.destroy(ANNA)
        return written

    monkeypatch.setattr(keys, "_written_beside", be_slow)
    with pytest.raises(SubjectKeyDestroyed):
        keys.key_for(ANNA)
    assert len(files(path)) == 2


@pytest.mark.parametrize("call", ["os.link", "os.unlink"])
def test_a_process_that_is_killed_while_it_makes_a_key_leaves_a_working_folder(path: Path, call: str) -> None:
    """Killed with the temporary file complete, before and after it has its name."""
    killing = f"import os, signal\n{call} = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)\n{MAKE}"
    keys = KeyFolder(path, WRAPPING)
    keys.key_for(BEN)
    arguments = [sys.executable, "-c", killing, json.dumps([str(path), WRAPPING])]
    killed = subprocess.run(arguments, input="\n", capture_output=True, text=True, check=False)
    assert killed.returncode == -signal.SIGKILL
    (left,) = (file for file in path.iterdir() if file.name.startswith("."))
    key = keys.key_for(ANNA)
    assert keys.key_for(ANNA) == key
    assert (left.stat().st_nlink == 2) == (call == "os.unlink")
    assert keys.destroy(ANNA)
    assert not left.exists()
    assert len(files(path)) == 2


# --- destruction ------------------------------------------------------------------------------------------------------


def test_a_destroyed_key_is_gone_and_none_is_made_again(keys: KeyFolder, path: Path) -> None:
    keys.key_for(ANNA)
    (file,) = files(path)
    with file.open("rb") as opened:
        assert keys.destroy(ANNA)
        assert opened.read().strip(b"\0") == b""  # the old file itself, which a process may have open
    assert keys.is_destroyed(ANNA)
    assert not keys.is_destroyed(BEN)
    for ask in (keys.key_for, keys.existing_key, KeyFolder(path, WRAPPING).key_for):
        with pytest.raises(SubjectKeyDestroyed):
            ask(ANNA)
    assert not keys.destroy(ANNA)


def test_an_id_without_a_key_gets_none_after_its_destruction(keys: KeyFolder, path: Path) -> None:
    assert not keys.destroy(ANNA)
    assert list(path.iterdir()) == []
    keys.key_for(BEN)
    assert not keys.destroy(ANNA)
    with pytest.raises(SubjectKeyDestroyed):
        keys.key_for(ANNA)


def test_a_destruction_that_was_interrupted_is_repeated(
    keys: KeyFolder, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys.key_for(ANNA)

    def fail(*_: Any) -> Path:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patching:
        patching.setattr(keys, "_written_beside", fail)
        with pytest.raises(SubjectKeysUnavailable, match="No space left"):
            keys.destroy(ANNA)
    with pytest.raises(SubjectKeysUnavailable, match="damaged"):
        keys.key_for(ANNA)
    assert keys.destroy(ANNA)
    assert keys.is_destroyed(ANNA)


def test_a_person_who_comes_back_gets_a_new_key(keys: KeyFolder) -> None:
    before = keys.key_for(ANNA)
    assert not keys.allow_new_key(ANNA)
    keys.destroy(ANNA)
    assert keys.allow_new_key(ANNA)
    assert keys.key_for(ANNA) != before


# --- another key of the keyring ---------------------------------------------------------------------------------------

BOTH = {**WRAPPING, "vault-2027": Fernet.generate_key().decode()}


def test_keys_are_wrapped_with_another_key_and_stay(keys: KeyFolder, path: Path) -> None:
    key = keys.key_for(ANNA)
    keys.key_for(BEN)
    keys.destroy(BEN)
    both = KeyFolder(path, BOTH)
    assert both.wrapped_with() == {"vault-2026": 1, "": 1}
    assert both.wrap_with("vault-2027") == 1
    assert both.wrap_with("vault-2027") == 0
    assert both.wrapped_with() == {"vault-2027": 1, "": 1}
    after = KeyFolder(path, {"vault-2027": BOTH["vault-2027"]})
    assert after.key_for(ANNA) == key
    assert after.is_destroyed(BEN)
    with pytest.raises(SubjectKeysUnavailable, match="'vault-2028' is not in the keyring"):
        both.wrap_with("vault-2028")


def test_a_destroyed_key_does_not_come_back_by_wrapping(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Destroyed between the moments in which the key is read and in which it is written again: it waits."""
    both = KeyFolder(path, BOTH)
    both.key_for(ANNA)
    other, write = KeyFolder(path, BOTH), both._written_beside
    with ThreadPoolExecutor(1) as pool:
        destroyed: list[Future[bool]] = []

        def be_slow(name: str, content: Any) -> Path:
            if not destroyed and name != "names":
                destroyed.append(pool.submit(other.destroy, ANNA))
                wait(destroyed, timeout=0.5)
            return write(name, content)

        monkeypatch.setattr(both, "_written_beside", be_slow)
        both.wrap_with("vault-2027")
        assert destroyed[0].result()
    assert other.is_destroyed(ANNA)


# --- a folder that cannot be used -------------------------------------------------------------------------------------


def test_a_folder_that_is_not_mounted_is_not_made(tmp_path: Path) -> None:
    keys = KeyFolder(tmp_path / "subject-keys", WRAPPING)
    with pytest.raises(SubjectKeysUnavailable, match=r"subject-keys, does not exist\."):
        keys.key_for(ANNA)
    assert list(tmp_path.iterdir()) == []
    assert "does not exist. Mount or create it" in keys.problems()[0]


def test_a_read_only_folder_gives_a_sentence_and_its_keys(folder: Path) -> None:
    keys = KeyFolder(folder, WRAPPING)
    key = keys.key_for(ANNA)
    for file in folder.iterdir():
        file.chmod(0o444)
    folder.chmod(0o555)
    with as_nobody():
        assert keys.key_for(ANNA) == key
        with pytest.raises(
            SubjectKeysUnavailable, match=r"^No key of a subject can be made in .*: Permission denied\.$"
        ):
            keys.key_for(BEN)
        with pytest.raises(SubjectKeysUnavailable, match=r"^A key cannot be destroyed in .*: Permission denied\.$"):
            keys.destroy(ANNA)
        with pytest.raises(
            SubjectKeysUnavailable, match=r"^Keys of subjects cannot be wrapped .*: Permission denied\.$"
        ):
            keys.wrap_with("vault-2026")
        assert keys.key_for(ANNA) == key


def test_a_keyring_without_the_right_key_makes_no_second_one(keys: KeyFolder, path: Path) -> None:
    key = keys.key_for(ANNA)
    for wrapping, problem in (
        ({}, "which is not in the keyring"),
        ({"vault-2027": Fernet.generate_key().decode()}, "'vault-2026', which is not in the keyring"),
        ({"vault-2026": Fernet.generate_key().decode()}, "is another one than where it was made"),
    ):
        for subject in (ANNA, BEN):
            with pytest.raises(SubjectKeysUnavailable, match=problem):
                KeyFolder(path, wrapping).key_for(subject)
    rotated = KeyFolder(path, {"vault-2027": Fernet.generate_key().decode(), **WRAPPING})
    assert rotated.key_for(ANNA) == key
    rotated.key_for(BEN)
    with pytest.raises(SubjectKeysUnavailable, match="'vault-2027', which is not in the keyring"):
        keys.key_for(BEN)


def test_a_folder_that_lost_its_names_makes_no_second_keys(keys: KeyFolder, path: Path) -> None:
    key = keys.key_for(ANNA)
    names = (path / "names").rename(path.parent / "names")
    again = KeyFolder(path, WRAPPING)
    for ask in (again.key_for, again.existing_key, again.is_destroyed, again.destroy):
        with pytest.raises(SubjectKeysUnavailable, match="'names' is missing"):
            ask(ANNA)
    assert "'names' is missing" in again.problems()[0]
    names.rename(path / "names")
    assert again.key_for(ANNA) == key


def test_problems_of_a_folder_are_told(keys: KeyFolder, path: Path) -> None:
    keys.key_for(ANNA)
    assert keys.problems() == []
    path.chmod(0o750)
    assert "is open to other users. Set its mode to 0700." in keys.problems()[0]
    path.chmod(0o700)
    assert "no usable key" in KeyFolder(path, {}).problems()[0]
    assert "not in the keyring" in KeyFolder(path, {"other": "x" * 40}).problems()[0]
