"""Imported files that are exchanged, linked, or lose their seals."""

import shutil
from collections.abc import Callable
from functools import partial
from hashlib import sha256
from pathlib import Path

import pytest

from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.workspace.imports import (
    drop_import,
    import_of,
    imported_file,
    seal_of,
    store_import,
    wrong_imports,
)
from fairness_pipeline.workspace.lake import Lake


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    """An imported file in a workspace of its own."""
    original = tmp_path / "guilty.csv"
    original.write_text("guilty")
    target = tmp_path / "lake" / "predictions" / "reviews" / "ours.csv"
    assert not store_import(original, target, partial(shutil.copyfile, original))
    return target


def look(stored: Path, **options: bool) -> object:
    return imported_file(stored, stored.parents[2], **options)


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
    text = seal_of(stored).read_text()
    known = import_of(stored)
    assert known
    seal_of(stored).write_text(text.replace(known.stored, sha256(b"innocent").hexdigest()))


def with_half_a_seal(stored: Path) -> None:
    seal_of(stored).write_bytes(seal_of(stored).read_bytes()[:40])


@pytest.mark.parametrize(
    ("happens", "problem"),
    [
        (exchanged, "ours.csv: not what was imported on .* UTC from guilty.csv"),
        (linked, "ours.csv: a link; an import is a file of the workspace"),
        (in_a_linked_folder, "ours.csv: a link; an import is a file of the workspace"),
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
    if happens is not in_a_linked_folder:  # which is not searched
        assert len(list(wrong_imports(stored.parents[2]))) == 1


def test_a_seal_that_is_taken_off_is_missed(stored: Path) -> None:
    Lake(stored.parents[2])._note_format()
    seal_of(stored).unlink()
    with pytest.raises(FairnessError, match=r"its seal \.ours\.csv\.import\.json is missing"):
        look(stored)
    assert look(stored, by_hand=True)  # as files of scores may come


def test_what_is_imported_anew_or_dropped_takes_its_seal_along(stored: Path) -> None:
    other = stored.parents[3] / "other.tsv"
    other.write_text("other")
    target = stored.with_suffix(".tsv")
    assert store_import(other, target, partial(shutil.copyfile, other), [stored])
    assert sorted(path.name for path in stored.parent.iterdir()) == [".ours.tsv.import.json", "ours.tsv"]
    drop_import(target)
    assert list(stored.parent.iterdir()) == []
