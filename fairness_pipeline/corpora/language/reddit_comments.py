"""Comments of a dump, and the stereotyped phrases in them (Barikeri et al. 2021, section 2.2)."""

import html
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from fairness_pipeline.corpora.cleaning import is_deleted
from fairness_pipeline.corpora.downloads import located
from fairness_pipeline.corpora.language.phrase_corpus import PhraseCorpus
from fairness_pipeline.corpora.language.stereotype_grammar import StereotypeGrammar
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.progress import Progress, track
from fairness_pipeline.foundation.records import column, read_records
from fairness_pipeline.foundation.schemas import fields, optional, schema
from fairness_pipeline.lexicons.counterfactuals import COUNTERFACTUAL_PHRASES
from fairness_pipeline.lexicons.stereotypes import Lexicon

COMMENTS = schema(
    **fields(COUNTERFACTUAL_PHRASES, "comment_id"),
    text=(pa.string(), "what was written"),
    created=optional(pa.string(), "when, as the dump says"),
)
CANDIDATES = schema(
    **fields(COUNTERFACTUAL_PHRASES, "comment_id"),
    comment=(pa.string(), "the comment, cleaned"),
)
PHRASES = schema(
    **fields(COUNTERFACTUAL_PHRASES, "phrase_id", "comment_id"),
    comment=(pa.string(), "the comment, cleaned"),
    **fields(COUNTERFACTUAL_PHRASES, "target"),
    phrase=(pa.string(), "seven tokens on either side of the target's first word"),
    attribute_in_window=(pa.bool_(), "whether a term of the stereotype is in the phrase"),
)
LONGEST = 150
"""Characters. A comment must be shorter than this."""

_ADDRESS = re.compile(r"\(?(?:https?://|www\.)\S+", re.IGNORECASE)
_NAME = re.compile(r"(?<![\w/])(?:@\w+|/?u/[\w-]+)")
_SPACE = re.compile(r"\s+")


def clean_comment(text: str) -> str:
    """Lower case, single spaces, without URLs and user names (section 2.2).

    >>> clean_comment("Hey /u/abc,  LOOK &amp; see https://a.b/c !")
    'hey , look & see !'
    """
    return _SPACE.sub(" ", _NAME.sub("", _ADDRESS.sub("", html.unescape(text)))).strip().lower()


class Comments(NamedTuple):
    """The comments of a corpus; how many were left out, by reason; and how many had no id and were numbered."""

    table: pa.Table
    left_out: dict[str, int]
    numbered: int


def read_comments(corpus: PhraseCorpus, folder: Path, progress: Progress | None = None) -> Comments:
    """All comments of a corpus, each id once; `progress` receives the number of rows read.

    Comments with a blank id are different comments: each is named after its file and row.

    Raises:
        FairnessError: a file is missing or broken, or lacks a column; names file and line.
    """
    columns: dict[str, list[str | None]] = {name: [] for name in COMMENTS.names}
    seen: set[str] = set()
    left_out = {"deleted or empty": 0, "the same id again": 0}
    numbered = 0
    for comment in track(_comments(corpus, folder, progress), progress, note="comments"):
        if is_deleted(comment.text) or comment.identity in seen:
            left_out["deleted or empty" if is_deleted(comment.text) else "the same id again"] += 1
            continue
        seen.add(comment.identity)
        numbered += comment.numbered
        for name, value in zip(columns, comment[:3], strict=True):
            columns[name].append(value)
    return Comments(pa.table(columns, schema=COMMENTS), left_out, numbered)


def find_candidates(comments: pa.Table, lexicon: Lexicon) -> tuple[pa.Table, dict[str, int]]:
    """The comments that hold a target and a term of the stereotype, cleaned; and how many were left out and why."""
    likely = comments.filter(pc.match_substring_regex(pc.utf8_lower(comments["text"]), lexicon.prefilter()))
    rows, texts, left_out = [], set(), {"too long": 0, "the same text again": 0}
    for identity, text in zip(likely["comment_id"].to_pylist(), likely["text"].to_pylist(), strict=True):
        cleaned = clean_comment(text)
        if not lexicon.is_candidate(cleaned):
            continue
        if len(cleaned) >= LONGEST:
            left_out["too long"] += 1
        elif cleaned in texts:
            left_out["the same text again"] += 1
        else:
            texts.add(cleaned)
            rows.append({"comment_id": identity, "comment": cleaned})
    return pa.Table.from_pylist(rows, schema=CANDIDATES), left_out


def find_phrases(candidates: pa.Table, lexicon: Lexicon) -> pa.Table:
    """The window around each target in each candidate, as a table of `PHRASES`."""
    rows = [
        {
            "phrase_id": f"{identity}#{number}",
            "comment_id": identity,
            "comment": comment,
            "target": phrase.target,
            "phrase": phrase.text,
            "attribute_in_window": phrase.attribute_in_window,
        }
        for identity, comment in zip(*(candidates[name].to_pylist() for name in CANDIDATES.names), strict=True)
        for number, phrase in enumerate(lexicon.phrases(comment), start=1)
    ]
    return pa.Table.from_pylist(rows, schema=PHRASES)


class _Comment(NamedTuple):
    """A comment of a file; `numbered` says that its id was blank and that the row's number replaces it."""

    identity: str
    text: str
    created: str | None
    numbered: bool = False


def _comments(corpus: PhraseCorpus, folder: Path, progress: Progress | None) -> Iterator[_Comment]:
    if corpus.grammar:
        grammar = StereotypeGrammar.load(corpus.grammar.file)
        for number, comment in enumerate(grammar.comments(corpus.grammar.comments, corpus.grammar.seed)):
            yield _Comment(f"g{number}", comment.text, None)
    for file in corpus.comments:
        path, columns = located(file, folder, progress), file.columns
        for number, (where, record) in enumerate(read_records(path), start=1):
            text = column(where, record, columns.text)
            if not isinstance(text, str):
                raise FairnessError(f"{where}: expected text in column '{columns.text}', found {type(text).__name__}")
            cell = column(where, record, columns.comment_id) if columns.comment_id else None
            identity = "" if cell is None else str(cell).strip()
            blank = columns.comment_id is not None and not identity
            created = column(where, record, columns.created) if columns.created else None
            yield _Comment(
                identity or f"{path.name}:{number}", text, None if created is None else str(created), numbered=blank
            )
