"""The check of class names against small trees, and against this checkout."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import class_names


def write(root: Path, path: str, text: str) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)


def test_name_defined_twice_is_listed_with_both_positions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, "memadmin/paging.py", "class Place:\n    pass\n")
    write(tmp_path, "sessions_app/findings.py", "import ast\nclass Place: ...\n")
    assert class_names.main(tmp_path) == 1
    assert capsys.readouterr().out == (
        "Place is defined more than once: memadmin/paging.py:1, sessions_app/findings.py:2\n"
    )


def test_nested_and_exempt_classes_may_repeat(tmp_path: Path) -> None:
    for number in "12":
        write(tmp_path, f"memadmin/m{number}.py", f"class Migration: ...\nclass Form{number}:\n    class Meta: ...\n")
    write(tmp_path, "memadmin/client/subjects.py", "class Subject: ...\n")
    write(tmp_path, "sessions_app/models.py", "class Subject: ...\n")
    assert class_names.main(tmp_path) == 0


def test_exemption_of_the_client_covers_one_model_only(tmp_path: Path) -> None:
    write(tmp_path, "memadmin/client/subjects.py", "class Subject: ...\n")
    write(tmp_path, "sessions_app/models.py", "class Subject: ...\n")
    write(tmp_path, "memories_app/models.py", "class Subject: ...\n")
    assert class_names.main(tmp_path) == 1


def test_product_defines_each_name_once() -> None:
    assert class_names.repeated_names(class_names.ROOT) == {}
