"""Texts that people labelled as offensive or not. An offence classifier is trained on them or compared with them."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from fairness_pipeline.corpora.draws import uniform
from fairness_pipeline.corpora.specification import CorpusFile
from fairness_pipeline.foundation.checksums import verify_checksum
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.inputs import File
from fairness_pipeline.foundation.records import column, read_records

TRAINED_ON = 0.8
"""The share of the texts that a classifier is trained on; it is compared with the labels of the rest."""


class LabelledFile(CorpusFile):
    """A file of texts with one label each: `.csv`, `.tsv`, `.jsonl`, or `.json` (a list of objects); UTF-8."""

    text: str
    """The column that holds the text."""
    label: str
    """The column that holds the label."""
    offensive: tuple[str, ...]
    """The labels that mean offensive; all other labels mean not offensive."""


class LabelledText(NamedTuple):
    """A text and whether people called it offensive."""

    text: str
    offensive: bool

    @property
    def held_out(self) -> bool:
        """Whether the text is kept out of training; this depends on the text alone."""
        return uniform(self.text) >= TRAINED_ON


def read_labelled(files: tuple[LabelledFile, ...], folder: Path) -> list[LabelledText]:
    """All texts of the files, each once. A text with several labels gets the first one.

    Raises:
        FairnessError: a file is missing, lacks a column, or does not have the declared sum; names file and line.
    """
    offensive_by_text: dict[str, bool] = {}
    for file in files:
        if file.is_address:
            raise FairnessError(f"{file.path}: expected a local file of labelled texts, found an address; fetch it")
        path = file.resolve(folder)
        counts = dict.fromkeys(file.offensive, 0)
        for text, label in _rows(path, file):
            if label in counts:
                counts[label] += 1
            if text:
                offensive_by_text.setdefault(text, label in counts)
        if missing := [label for label, count in counts.items() if not count]:
            raise FairnessError(
                f"{path}: no row has the label '{missing[0]}' in column '{file.label}'; see 'offensive'"
            )
    return [LabelledText(text, offensive) for text, offensive in offensive_by_text.items()]


def versions(files: tuple[LabelledFile, ...]) -> dict[str, File]:
    """Every file with its present SHA-256; declared sums are checked."""
    paths = {file: file.resolve(Path()) for file in files if not file.is_address}
    return {file.path: File(path, verify_checksum(path, file.sha256)) for file, path in paths.items()}


def _rows(path: Path, file: LabelledFile) -> Iterator[tuple[str, str]]:
    for where, record in read_records(path):
        yield str(column(where, record, file.text)).strip(), str(column(where, record, file.label)).strip()
