"""Tests imported files that are exchanged, linked, or lose their seals."""

import shutil
from collections.abc import Callable
from functools import partial
from hashlib import sha256
from pathlib import Path

import pytest

from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.workspace.imports import (
    _seal_of,
    drop_import,
    import_of,
    imported_file,
    imported_files,
    seal_earlier,
    store_import,
    wrong_imports,
)


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    """An imported file in a workspace of its own."""
    original = tmp_path / "guilty.csv"
    original.write_text("guilty")
    target = tmp_path / "lake" / "predictions" / "reviews" / "ours.csv"
    assert not store_import(original, target, tmp_path / "lake", partial(shutil.copyfile, original))
    return target


def look(stored: Path) -> object:
    return imported_file(stored, stored.parents[2])


def exchanged(stored: Path) -> None:
    stored.write_text("innocent")


def linked(stored: Path) -> None:
    innocent = stored.parents[3] / "innocent.csv"
    innocent.write_text("guilty")
    stored.unlink()
    stored.symlink_to(innocent)


def in_a_linked_folder(stored: Path) -> None:
    stored.parent.rename(stored.parents[3] / "elsewhere")
    stored.parent.symlink_to(stored.parents[3] / "elsewhere")


def sealed_by_hand(stored: Path) -> None:
    exchanged(stored)
    text = _seal_of(stored).read_text()
    known = import_of(stored)
    assert known
    _seal_of(stored).write_text(text.replace(known.stored, sha256(b"innocent").hexdigest()))


def gone(stored: Path) -> None:
    stored.unlink()


def with_the_seal_of_another(stored: Path) -> None:
    """A whole import of the same workspace, put in its place."""
    innocent = stored.with_name("innocent.csv")
    innocent.write_text("innocent")
    workspace = stored.parents[2]
    store_import(innocent, stored.parent / "other.csv", workspace, partial(shutil.copyfile, innocent))
    shutil.copy(stored.parent / "other.csv", stored)
    shutil.copy(_seal_of(stored.parent / "other.csv"), _seal_of(stored))
    innocent.unlink()


def with_half_a_seal(stored: Path) -> None:
    _seal_of(stored).write_bytes(_seal_of(stored).read_bytes()[:40])


@pytest.mark.parametrize(
    ("happens", "problem"),
    [
        (exchanged, "ours.csv: not what was imported on .* UTC from guilty.csv"),
        (linked, "ours.csv: a link; an import is a file of the workspace"),
        (in_a_linked_folder, "ours.csv: a link; an import is a file of the workspace"),
        (gone, "ours.csv: was imported but is missing"),
        (with_the_seal_of_another, "ours.csv: its seal belongs to predictions/reviews/other.csv"),
        (sealed_by_hand, "ours.csv.import.json: damaged"),
        (with_half_a_seal, "ours.csv.import.json: damaged"),
    ],
)
def test_what_is_not_what_was_imported_is_named(stored: Path, happens: Callable[[Path], None], problem: str) -> None:
    known = import_of(stored)
    assert known
    assert known.original == known.stored == sha256(b"guilty").hexdigest()
    assert list(wrong_imports(stored.parents[2])) == []
    happens(stored)
    with pytest.raises(FairnessError, match=f"{problem}.*; import the file again, or restore it from a copy"):
        look(stored)
    (message,) = wrong_imports(stored.parents[2])
    assert problem.split(":")[0] in message
    assert imported_files(stored.parent)[-1].name == "ours.csv"  # also where it is gone


def test_a_seal_that_is_taken_off_is_missed(stored: Path) -> None:
    _seal_of(stored).unlink()
    with pytest.raises(FairnessError, match=r"its seal \.ours\.csv\.import\.json is missing"):
        look(stored)
    assert len(list(wrong_imports(stored.parents[2]))) == 1
    scores = stored.parents[2] / "scores" / "dropped.csv"
    scores.parent.mkdir()
    scores.write_text("by hand")
    assert imported_file(scores, stored.parents[2])


def test_what_was_imported_before_there_were_seals_and_never_used(tmp_path: Path) -> None:
    file = tmp_path / "predictions" / "reviews" / "ours.csv"
    file.parent.mkdir(parents=True)
    file.write_text("old")
    assert imported_file(file, tmp_path)
    assert (seal_earlier(tmp_path), seal_earlier(tmp_path)) == (1, 0)
    assert imported_file(file, tmp_path)
    file.write_text("exchanged")
    assert len(list(wrong_imports(tmp_path))) == 1


def test_what_is_imported_anew_or_dropped_takes_its_seal_along(stored: Path) -> None:
    replacement = stored.parents[3] / "other.tsv"
    replacement.write_text("other")
    target = stored.with_suffix(".tsv")
    assert store_import(replacement, target, stored.parents[2], partial(shutil.copyfile, replacement), [stored])
    assert sorted(path.name for path in stored.parent.iterdir()) == [".ours.tsv.import.json", "ours.tsv"]
    drop_import(target)
    assert list(stored.parent.iterdir()) == []
