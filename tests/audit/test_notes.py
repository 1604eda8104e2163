"""Signed checkpoints: what they look like, and that nothing in them can be changed."""

from __future__ import annotations

import base64
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memadmin.audit.transparency.notes import BadNote, Checkpoint, Note, PublicKey, SigningKey, sign, verified

KEY = SigningKey("memadmin/example", bytes(range(32)))
NEXT_KEY = SigningKey("memadmin/example", bytes(range(1, 33)))
STRANGER = SigningKey("memadmin/example", bytes(range(2, 34)))
CHECKPOINT = Checkpoint(
    origin="memadmin/example",
    size=1234,
    root=bytes(range(32)),
    at=datetime(2026, 11, 21, 19, 30, 0, 123456, tzinfo=UTC),
    key=KEY.public,
)
NOTE = sign(CHECKPOINT, KEY)


def test_note_is_text_that_a_person_can_read() -> None:
    assert NOTE.splitlines()[:7] == [
        "memadmin/example",
        "1234",
        "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=",
        "at 2026-11-21T19:30:00.123456Z",
        "epoch 1",
        f"key {KEY.public}",
        "",
    ]
    (signature,) = NOTE.splitlines()[7:]
    assert signature.startswith("— memadmin/example ")
    assert len(base64.b64decode(signature.rpartition(" ")[2])) == 4 + 64


def test_note_says_what_was_signed() -> None:
    assert verified(NOTE) == verified(NOTE, [KEY.public]) == CHECKPOINT


def test_first_note_of_an_epoch_says_what_it_replaces() -> None:
    restored = replace(CHECKPOINT, epoch=2, replaced=(2000, bytes(32)))
    assert verified(sign(restored, KEY)) == restored


def test_key_is_written_as_the_note_format_wants_it() -> None:
    """The key of the format's own description."""
    text = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"
    assert str(PublicKey.parse(text)) == text


@given(st.integers(0, len(NOTE) - 1), st.characters(codec="utf-8"))
def test_note_with_any_character_changed_is_refused(place: int, character: str) -> None:
    changed = NOTE[:place] + character + NOTE[place + 1 :]
    if changed == NOTE:
        return
    with pytest.raises(BadNote):
        verified(changed, [KEY.public])


def test_bits_that_base64_does_not_use_cannot_be_changed_either() -> None:
    for last in "ABCDEFGHIJKLMNOPQRSTUVWXYZ":
        changed = NOTE.removesuffix("=\n")[:-1] + last + "=\n"
        if changed != NOTE:
            with pytest.raises(BadNote):
                verified(changed)


@given(st.integers(1, len(NOTE) - 1))
def test_part_of_a_note_is_refused(length: int) -> None:
    with pytest.raises(BadNote):
        verified(NOTE[:length])


def test_note_that_its_own_key_has_not_signed_is_refused() -> None:
    forged = CHECKPOINT.text + "\n" + STRANGER.signature_line(CHECKPOINT.text)
    with pytest.raises(BadNote, match="not signed by the key that it names"):
        verified(forged)


def test_note_of_a_stranger_is_refused_by_whoever_pinned_a_key() -> None:
    foreign = sign(CHECKPOINT, STRANGER)
    assert verified(foreign).key == STRANGER.public
    with pytest.raises(BadNote, match="not signed by a trusted key"):
        verified(foreign, [KEY.public])


def test_key_is_followed_by_one_that_it_signs_in() -> None:
    handover = sign(CHECKPOINT, NEXT_KEY, KEY)
    assert verified(handover, [KEY.public]).key == NEXT_KEY.public
    assert Note.parse(handover).is_signed_by(NEXT_KEY.public)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n\n\n",
        "one line\n",
        "memadmin/example\n-1\nAAAA\n",
        "memadmin/example\n007\nAAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n",
        "memadmin/example\n7\nAAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n",
        "memadmin/example\n7\nAAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\nat yesterday\n",
        "with spaces\n7\nAAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n",
    ],
)
def test_other_texts_are_no_checkpoints(text: str) -> None:
    with pytest.raises(BadNote):
        Checkpoint.parse(text)


@pytest.mark.parametrize(
    "text", ["", "name", "name+00000000", "name+00000000+AAAA", f"other+{'+'.join(['0' * 8] * 2)}"]
)
def test_other_texts_are_no_keys(text: str) -> None:
    with pytest.raises(BadNote):
        PublicKey.parse(text)


def test_private_key_is_in_no_representation() -> None:
    assert "seed" not in repr(KEY)
    assert str(KEY.seed) not in repr(KEY)
