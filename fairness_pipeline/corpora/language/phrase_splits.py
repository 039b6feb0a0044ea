"""The train, dev and test splits of biased phrases, and unbiased phrases (Barikeri et al. 2021, section 2.3)."""

import random
from pathlib import Path
from typing import Any

import pyarrow as pa

from fairness_pipeline.corpora.downloads import located
from fairness_pipeline.corpora.language.phrase_annotations import majority
from fairness_pipeline.corpora.language.phrase_corpus import PhraseSource, TextFile
from fairness_pipeline.corpora.language.reddit_comments import PHRASES, clean_comment
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.records import column, read_records
from fairness_pipeline.foundation.schemas import fields, schema
from fairness_pipeline.foundation.text_files import read_lines
from fairness_pipeline.lexicons.counterfactuals import COUNTERFACTUAL_PHRASES

PHRASE_SPLITS = schema(
    **fields(COUNTERFACTUAL_PHRASES, "phrase_id", "comment_id", "split"),
    **fields(PHRASES, "phrase"),
)
"""`split`: train, dev and test for biased phrases; `unbiased` for phrases that annotators found no bias in."""

SPLITS = ("train", "dev", "test")
UNBIASED = "unbiased"
_SHARES = (0.6, 0.2, 0.2)
_START = "<bos>"


def draw_splits(annotations: pa.Table, seed: int, unbiased: int) -> pa.Table:
    """Splits biased phrases 60/20/20 by comment, each text once, and adds at most `unbiased` unbiased phrases.

    Phrases of the same comment stay in the same split, because they reveal something about each other.

    Raises:
        FairnessError: a split is empty.
    """
    rows = annotations.to_pylist()
    label = majority(rows, "bias_phrase")
    biased = _unique_texts([row for row in rows if label.get(row["phrase_id"])])
    comments = sorted({row["comment_id"] for row in biased})
    if len(comments) < len(SPLITS):
        raise FairnessError(
            f"{len(comments)} comments hold a biased phrase, so a split would be empty; expected {len(SPLITS)} at "
            "least: annotate more (fairness-pipeline export phrases), or search more comments"
        )
    random.Random(f"{seed} splits").shuffle(comments)
    ends = [round(len(comments) * sum(_SHARES[: index + 1])) for index in range(len(SPLITS))]
    split = {
        comment: next(name for name, end in zip(SPLITS, ends, strict=True) if index < end)
        for index, comment in enumerate(comments)
    }
    split_rows = [{**_phrase_fields(row), "split": split[row["comment_id"]]} for row in biased]
    return _table(split_rows + _unbiased(rows, seed, unbiased))


def released_splits(
    source: PhraseSource, folder: Path, annotations: pa.Table, seed: int, unbiased: int
) -> tuple[pa.Table, dict[str, int]]:
    """The splits that the authors released, and how many of their phrases are in an earlier split or not annotated.

    A phrase is matched to its comment by its text. At most `unbiased` unbiased phrases are drawn.

    Raises:
        FairnessError: a file is missing, or a split is empty.
    """
    rows = annotations.to_pylist()
    comment_of: dict[str, str] = {}
    for row in rows:
        comment_of.setdefault(_plain(row["phrase"]), row["comment_id"])
    biased: list[dict[str, str]] = []
    figures = {"in an earlier split": 0, "not annotated": 0}
    earlier: dict[str, str] = {}
    for name, file in zip(SPLITS, (source.train, source.dev, source.test), strict=True):
        assert file is not None
        texts = read_texts(file, folder)
        if not texts:
            raise FairnessError(f"{file.path}: expected the biased phrases of split '{name}', found none")
        for number, text in enumerate(texts, start=1):
            figures["in an earlier split"] += earlier.setdefault(text, name) != name
            figures["not annotated"] += text not in comment_of
            phrase_id = f"{name}-{number}"
            biased.append(
                {"phrase_id": phrase_id, "comment_id": comment_of.get(text, phrase_id), "split": name, "phrase": text}
            )
    return _table(biased + _unbiased(rows, seed, unbiased)), figures


def read_texts(file: TextFile, folder: Path) -> list[str]:
    """The phrases of a text or CSV file in order, in lower case, without a marker of their beginning."""
    path = located(file, folder)
    if path.suffix == ".txt":
        lines = [line for _, line in read_lines(path, file.encoding)]
    else:
        lines = [str(column(where, row, file.column)) for where, row in read_records(path, file.encoding)]
    return [text for line in lines if (text := _plain(line))]


def _plain(text: str) -> str:
    return text.strip().removeprefix(_START).strip().lower()


def _unbiased(rows: list[dict[str, Any]], seed: int, count: int) -> list[dict[str, str]]:
    """Phrases that someone found unbiased and no one found biased, in the phrase or its comment; each text once."""
    doubtful = {_plain(row["phrase"]) for row in rows if row["bias_phrase"] or row["bias_sent"]}
    candidates = _unique_texts(
        [row for row in rows if row["bias_phrase"] is False and _plain(row["phrase"]) not in doubtful]
    )
    random.Random(f"{seed} unbiased").shuffle(candidates)
    return [{**_phrase_fields(row), "split": UNBIASED} for row in candidates[:count]]


def _unique_texts(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    first: dict[str, dict[str, Any]] = {}
    for row in rows:
        first.setdefault(clean_comment(row["phrase"]), row)
    return list(first.values())


def _phrase_fields(row: dict[str, Any]) -> dict[str, str]:
    return {"phrase_id": row["phrase_id"], "comment_id": row["comment_id"], "phrase": clean_comment(row["phrase"])}


def _table(rows: list[dict[str, str]]) -> pa.Table:
    return pa.Table.from_pylist(rows, schema=PHRASE_SPLITS)
