"""Annotations of whether a comment, or a phrase of it, is stereotyped: written and read as CSV; their agreement."""

import random
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import pyarrow as pa

from fairness_pipeline.corpora.language.reddit_comments import PHRASES
from fairness_pipeline.corpora.language.stereotype_grammar import StereotypeGrammar
from fairness_pipeline.foundation.csv_cells import restored, write_rows
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.records import column, read_records
from fairness_pipeline.foundation.schemas import fields, optional, schema
from fairness_pipeline.lexicons.counterfactuals import COUNTERFACTUAL_PHRASES

PHRASE_ANNOTATIONS = schema(
    **fields(COUNTERFACTUAL_PHRASES, "phrase_id", "comment_id"),
    **fields(PHRASES, "comment", "phrase"),
    annotator=(pa.string(), "who labelled"),
    bias_sent=optional(pa.bool_(), "whether the comment expresses the stereotype; null without a label"),
    bias_phrase=optional(pa.bool_(), "whether the phrase alone does"),
)

AGREEMENT = schema(
    level=(pa.string(), "comments (bias_sent) or phrases (bias_phrase)"),
    alpha=(pa.float64(), "Krippendorff's alpha, nominal"),
    items=(pa.int64(), "what two annotators labelled"),
    annotators=(pa.int64(), "who did"),
    published_alpha=optional(pa.float64(), "what the paper prints"),
)
PUBLISHED_ALPHA = {"bias_sent": 0.65, "bias_phrase": 0.67}
"""From section 2.3, on 100 items."""
LEVELS = ("bias_sent", "bias_phrase")

GUIDELINES = """\
Does the text express a negative stereotype about the group it names? Label the whole comment (bias_sent), then the
phrase alone (bias_phrase): 1 where it does, 0 where it does not, nothing where you cannot say.
- Comment and phrase are judged apart: "all X are criminals" is biased where it stands alone, and is not in a comment
  that opposes it.
- A question is unbiased.
- Sarcasm is biased.
- A restatement of what somebody else thinks is unbiased.
- Where you need more context, or cannot decide, give no label.
"""
"""The rules of appendix B in our words; they are written next to a file to annotate."""
_TEMPLATE = ("phrase_id", "comment", "phrase", "attribute_in_window", "bias_sent", "bias_phrase")
_LABELS = {"1": True, "1.0": True, "true": True, "0": False, "0.0": False, "false": False, "": None}
_SECOND, _SLIP = 0.25, 0.06


class Read(NamedTuple):
    """Annotations, and how often each ignored value stood instead of a label."""

    table: pa.Table
    ignored: dict[str, int]


def write_template(phrases: pa.Table, stream: TextIO) -> None:
    """Writes a CSV file to annotate, in the form that `read_annotations` reads."""
    rows = ([*(row[name] for name in _TEMPLATE[:4]), "", ""] for row in phrases.to_pylist())
    write_rows(stream, _TEMPLATE, rows)


def read_annotations(
    path: Path,
    annotator: str,
    *,
    encoding: str = "utf-8",
    ignored: Collection[str] = (),
    known: Mapping[str, str] | None = None,
) -> Read:
    """Reads the file of one annotator.

    Labels are 1, 0, true and false in any case, 1.0 and 0.0; a blank cell is no label. A row is identified by
    `phrase_id`, by `id` (of a comment), or by its number.

    Args:
        path: The file.
        annotator: The name of the annotator.
        encoding: The encoding of the file.
        ignored: Values that count as no label.
        known: The known phrases, by id; None allows any phrase.

    Raises:
        FairnessError: a column is missing, a label is not valid, a phrase is unknown or labelled twice; names the line.
    """
    rows: list[dict[str, Any]] = []
    ignored_counts: Counter[str] = Counter()
    seen: dict[str, str] = {}
    for number, (where, record) in enumerate(read_records(path, encoding), start=1):
        text = str(column(where, record, "phrase")).strip()
        comment_id = str(record.get("id") or f"{path.stem}:{number}")
        phrase_id = str(record.get("phrase_id") or f"{comment_id}#1")
        comment = str(record.get("comment", text))
        if known is not None:  # exported by us
            phrase_id, text, comment = restored(phrase_id), restored(text), restored(comment)
        if known is not None and phrase_id not in known:
            raise FairnessError(
                f"{where}: phrase_id '{phrase_id}' is none of the phrases that were exported; export them again"
            )
        if known is not None and text != known[phrase_id].strip():
            raise FairnessError(
                f"{where}: phrase: expected that of '{phrase_id}' as it was exported, {known[phrase_id]!r}, found "
                f"{text!r}; label it, but leave its text"
            )
        if phrase_id in seen:
            raise FairnessError(f"{where}: phrase_id '{phrase_id}' stands on {seen[phrase_id]} already; keep one")
        seen[phrase_id] = where.rpartition(", ")[2]
        labels = {level: _label(where, record, level, ignored, ignored_counts) for level in LEVELS}
        rows.append(
            {
                "phrase_id": phrase_id,
                "comment_id": phrase_id.rpartition("#")[0] or comment_id,
                "comment": comment,
                "phrase": text,
                "annotator": annotator,
                **labels,
            }
        )
    return Read(pa.Table.from_pylist(rows, schema=PHRASE_ANNOTATIONS), dict(ignored_counts))


def generated(phrases: pa.Table, grammar: StereotypeGrammar, comments: int, seed: int) -> pa.Table:
    """Annotations of generated comments by two annotators: one knows the truth, one labels a quarter and errs at times.

    Args:
        phrases: A table of `PHRASES`, from comments with the ids of the grammar.
        grammar: The grammar that generated the comments.
        comments: The number of generated comments.
        seed: The seed of the generation.
    """
    truth = {f"g{number}": comment.biased for number, comment in enumerate(grammar.comments(comments, seed))}
    draw = random.Random(f"{seed} second")
    rows = []
    for row in phrases.to_pylist():
        phrase = {name: row[name] for name in ("phrase_id", "comment_id", "comment", "phrase")}
        biased = truth[row["comment_id"]]
        labels = {"bias_sent": biased, "bias_phrase": biased and row["attribute_in_window"]}
        rows.append({**phrase, "annotator": "1", **labels})
        if draw.random() < _SECOND:
            slipped = {level: label != (draw.random() < _SLIP) for level, label in labels.items()}
            rows.append({**phrase, "annotator": "2", **slipped})
    return pa.Table.from_pylist(rows, schema=PHRASE_ANNOTATIONS)


def agreement(annotations: pa.Table, *, published: bool = False) -> pa.Table:
    """Krippendorff's alpha (nominal), for comments and for phrases, over the items that two annotators labelled.

    If they are the paper's (`published`), its values are shown beside ours.
    """
    import krippendorff

    rows = annotations.to_pylist()
    level_rows = []
    for level in LEVELS:
        labels: dict[str, dict[str, bool]] = {}
        for row in rows:
            if row[level] is not None:
                item = row["comment_id"] if level == "bias_sent" else row["phrase_id"]
                labels.setdefault(item, {}).setdefault(row["annotator"], row[level])
        shared = [item_labels for item_labels in labels.values() if len(item_labels) > 1]
        if len({label for item_labels in shared for label in item_labels.values()}) < 2:
            continue  # alpha is undefined if only one label was given
        annotators = sorted({name for item_labels in shared for name in item_labels})
        data = [[float(item_labels.get(name, "nan")) for item_labels in shared] for name in annotators]
        alpha = krippendorff.alpha(reliability_data=data, level_of_measurement="nominal")
        level_rows.append(
            {
                "level": level,
                "alpha": float(alpha),
                "items": len(shared),
                "annotators": len(annotators),
                "published_alpha": PUBLISHED_ALPHA[level] if published else None,
            }
        )
    return pa.Table.from_pylist(level_rows, schema=AGREEMENT)


def majority(annotations: Iterable[dict[str, Any]], level: str) -> dict[str, bool]:
    """The majority label of each phrase. Phrases without a label, or with a tie, are missing."""
    return {phrase: count > 0 for phrase, count in _votes(annotations, level).items() if count}


def ties(annotations: Iterable[dict[str, Any]], level: str) -> int:
    """The number of phrases with a tie: as many annotators found them biased as did not."""
    return sum(not count for count in _votes(annotations, level).values())


def _votes(annotations: Iterable[dict[str, Any]], level: str) -> dict[str, int]:
    """By labelled phrase, how many more annotators found it biased than did not."""
    votes: dict[str, int] = {}
    for row in annotations:
        if row[level] is not None:
            votes[row["phrase_id"]] = votes.get(row["phrase_id"], 0) + (1 if row[level] else -1)
    return votes


def _label(
    where: str, record: dict[str, Any], level: str, ignored: Collection[str], ignored_counts: Counter[str]
) -> bool | None:
    cell = column(where, record, level)
    text = "" if cell is None else str(cell).strip()
    if text in ignored:
        ignored_counts[text] += 1
        return None
    if text.lower() not in _LABELS:
        raise FairnessError(
            f"{where}: {level}: expected 1 or 0, true or false, or nothing, found '{text}'; correct it, or name it "
            "under 'ignored_labels' in the corpus's YAML file"
        )
    return _LABELS[text.lower()]
