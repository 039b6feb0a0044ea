"""Reads the scores of a system that ran elsewhere from a CSV or TSV file."""

import codecs
from collections import Counter
from collections.abc import Iterator
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from fairness_pipeline.corpora.sentiment.equity_sentences import EQUITY_SENTENCES, PUBLISHED, TEMPLATE_SETS
from fairness_pipeline.foundation.csv_cells import NUMBER, write_table
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.schemas import fields, schema
from fairness_pipeline.foundation.text_files import read_csv_rows, read_lines
from fairness_pipeline.models.sentiment.specification import AFFECTS, SCORE_FORMS

EQUITY_SCORES = schema(
    **fields(EQUITY_SENTENCES, "sentence_id"),
    affect=(pa.string(), "anger, fear, joy, sadness or valence"),
    score=(pa.float64(), "intensity of the affect, from 0 to 1"),
)

_DEFAULT_AFFECT = "valence"
_COLUMNS = ("sentence_id", "sentence", "affect", "score")


def read_scores(path: Path, sentences: pa.Table) -> pa.Table:
    """The scores in a file, as a table of `EQUITY_SCORES`.

    Args:
        path: `.csv` (commas) or `.tsv` (tabs) with a header: `sentence_id` or `sentence`, `score`, and `affect` if it
            is not valence. For each affect the file has every sentence of the published templates once, and all or none
            of the reworded ones.
        sentences: A table of `EQUITY_SENTENCES`.

    Raises:
        FairnessError: a sentence is missing, unknown or repeated, a score is no number or outside 0..1, or the file has
            another form; names the file, the line and the reason.
    """
    identities = sentences["sentence_id"].to_pylist()
    texts = sentences["sentence"].to_pylist()
    known: dict[str, dict[Any, int]] = {
        "sentence_id": {str(identity): identity for identity in identities},
        "sentence": dict(zip(texts, identities, strict=True)),
    }
    seen: dict[tuple[str, int], int] = {}
    scores: dict[tuple[str, int], float] = {}
    for line, row in _rows(path):
        name = "sentence_id" if "sentence_id" in row else "sentence"
        affect = row.get("affect", _DEFAULT_AFFECT).strip().lower()
        if affect not in AFFECTS:
            raise FairnessError(
                f"{path}, line {line}: affect: expected one of {', '.join(AFFECTS)}, found {affect[:40]!r}"
            )
        identity = known[name].get(row[name].strip())
        if identity is None:
            raise FairnessError(f"{path}, line {line}: unknown {name} {row[name][:80]!r}; export the sentences again")
        key = affect, identity
        if key in seen:
            raise FairnessError(f"{path}, line {line}: {name} {row[name]!r} was scored before, in line {seen[key]}")
        seen[key], scores[key] = line, _score(path, line, row["score"])
        if (
            name == "sentence_id"
            and known["sentence"].get(row.get("sentence", texts[identity - 1]).strip()) != identity
        ):
            raise FairnessError(
                f"{path}, line {line}: sentence {identity} is {texts[identity - 1]!r}, found {row['sentence'][:80]!r}; "
                "export the sentences again"
            )
    if not scores:
        raise FairnessError(f"{path}: expected a score for every sentence, found a header only")
    sets = dict(zip(identities, sentences["templates"].to_pylist(), strict=True))
    for affect in dict.fromkeys(affect for affect, _ in scores):
        for templates in TEMPLATE_SETS:
            expected = [identity for identity in identities if sets[identity] == templates]
            missing = [identity for identity in expected if (affect, identity) not in scores]
            if missing and (templates == PUBLISHED or len(missing) < len(expected)):
                raise FairnessError(
                    f"{path}: {len(missing):,} of the {len(expected):,} {templates} sentences have no score for "
                    f"{affect}, the first is {missing[0]}: {texts[identities.index(missing[0])]!r}"
                )
    counts = Counter(affect for affect, _ in scores)
    if len(set(counts.values())) > 1:
        totals = ", ".join(f"{affect} {count:,}" for affect, count in counts.items())
        raise FairnessError(f"{path}: score the reworded sentences for every affect or for none; found {totals} scores")
    keys = sorted(scores)
    return pa.table(
        {
            "sentence_id": [identity for _, identity in keys],
            "affect": [affect for affect, _ in keys],
            "score": [scores[key] for key in keys],
        },
        schema=EQUITY_SCORES,
    )


def _rows(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    if path.suffix.lower() not in SCORE_FORMS:
        raise FairnessError(f"{path}: expected a file that ends in {' or '.join(SCORE_FORMS)}")
    if path.is_file() and _begins_with_mark(path):
        raise FairnessError(f"{path}, line 1: begins with a byte order mark; save it as UTF-8 without one")
    tabs = ((line, text.split("\t")) for line, text in read_lines(path) if text)
    names: list[str] = []
    for line, cells in read_csv_rows(path) if path.suffix.lower() == ".csv" else tabs:
        if not names:
            names = [cell.strip().lower() for cell in cells]
            _check_header(path, line, names)
        elif len(cells) != len(names):
            raise FairnessError(
                f"{path}, line {line}: expected {len(names)} columns ({', '.join(names)}), found {len(cells)}"
            )
        else:
            yield line, dict(zip(names, cells, strict=True))
    if not names:
        raise FairnessError(f"{path}: expected a header with sentence_id (or sentence) and score, found an empty file")


def unread_columns(path: Path) -> list[str]:
    """The columns of a score file that `read_scores` ignores."""
    return [name for name in next(_rows(path), (0, {}))[1] if name not in _COLUMNS]


def _begins_with_mark(path: Path) -> bool:
    with path.open("rb") as stream:
        return stream.read(len(codecs.BOM_UTF8)) == codecs.BOM_UTF8


def _check_header(path: Path, line: int, names: list[str]) -> None:
    if "score" in names and {"sentence_id", "sentence"} & set(names):
        if len(set(names)) < len(names):
            raise FairnessError(f"{path}, line {line}: a column is listed twice: {', '.join(names)}")
        return
    separator = "commas" if path.suffix.lower() == ".csv" else "tabs"
    used = next((mark for mark in (";", "\t", ",", "|") if mark in names[0]), None)
    hint = f"; is it separated by {used!r}? {path.suffix} means {separator}" if used else ""
    raise FairnessError(
        f"{path}, line {line}: expected columns sentence_id (or sentence) and score, found {', '.join(names)!r}{hint}"
    )


def _score(path: Path, line: int, text: str) -> float:
    score = float(text) if NUMBER.fullmatch(text.strip()) else -1.0
    if not 0 <= score <= 1:
        raise FairnessError(f"{path}, line {line}: score: expected a number from 0 to 1, found {text[:40]!r}")
    return score


def write_sentences(sentences: pa.Table, path: Path) -> None:
    """Writes the sentences to score elsewhere: `sentence_id`, `sentence`, and an empty `score`."""
    rows = zip(sentences["sentence_id"].to_pylist(), sentences["sentence"].to_pylist(), repeat(""), strict=False)
    write_table(path, ["sentence_id", "sentence", "score"], rows)


def covered(sentences: pa.Table, scores: np.ndarray) -> list[str]:
    """The sets of templates whose sentences all have a score; `scores` is (sentences, affects)."""
    sets = sentences["templates"].to_numpy(zero_copy_only=False)
    return [kind for kind in TEMPLATE_SETS if not np.isnan(scores[sets == kind]).any()]
