"""Texts with a label and their author's group: read, balanced, and skewed on purpose (Liu 2022, section 4.2)."""

import html
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from hashlib import blake2b
from itertools import chain
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
import pyarrow as pa
import pydantic

from fairness_pipeline.corpora.classifiers.authored_corpus import (
    CELLS,
    OTHERS,
    AuthoredCorpus,
    AuthoredFile,
    Cells,
)
from fairness_pipeline.corpora.classifiers.authored_grammar import AuthoredGrammarFile
from fairness_pipeline.corpora.classifiers.chat_rooms import read_chat_rooms
from fairness_pipeline.corpora.classifiers.dialects import DialectModel
from fairness_pipeline.corpora.downloads import located
from fairness_pipeline.corpora.draws import uniform
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.plain_text import number_of
from fairness_pipeline.foundation.progress import Progress, track
from fairness_pipeline.foundation.records import column, read_records
from fairness_pipeline.foundation.schemas import fields, schema
from fairness_pipeline.foundation.text_files import read_lines
from fairness_pipeline.foundation.yaml_files import Specification

AUTHORED_TEXTS = schema(
    text_id=(pa.string(), "of the text: its corpus's and its own hash"),
    text=(pa.string(), "what was written"),
    label=(pa.int64(), "1 (positive) or 0"),
    author_group=(pa.string(), "a or b; of more groups a letter for each, in the corpus's order"),
    author_id=(pa.string(), "who wrote it; the text itself where that is not known"),
    split=(pa.string(), "train, valid or test"),
    balanced=(pa.bool_(), "whether it is one of equally many texts of each label and group of its split"),
)
"""The splits `train` and `valid` have equally many texts of each label and group (of more than two groups: of the first
and of all others); `test` has all texts, and `balanced` marks those that are equally many. A text with an unknown
author counts as the only text of its own author."""
SKEWED_SETS = schema(
    balance_rate=(pa.string(), "positive to negative texts of group a; of group b the other way round"),
    **fields(AUTHORED_TEXTS, "split", "text_id"),
)
SPLITS = ("train", "valid", "test")

_MENTION = re.compile(r"@\w+|<user>|@user", re.IGNORECASE)
_SPACE = re.compile(r"\s+")
_EXAMPLES = 8


class AuthoredShares(Specification):
    """The share of authors in each split."""

    train: Annotated[float, pydantic.Field(ge=0, allow_inf_nan=False)] = 0.7
    """The split that classifiers are trained on, skewed; the share is relative to the sum of the three."""
    valid: Annotated[float, pydantic.Field(ge=0, allow_inf_nan=False)] = 0.1
    """The split that decides when to stop training, skewed the same way. Train and valid may be 0 without training."""
    test: Annotated[float, pydantic.Field(gt=0, allow_inf_nan=False)] = 0.2
    """The split that classifiers are tested on; it is not balanced."""


class AuthoredText(NamedTuple):
    """A text, its label, its author's group and, if known, its author."""

    text: str
    label: int
    group: str
    author: str | None = None


def read_authored(
    corpus: AuthoredCorpus, folder: Path, progress: Progress | None = None
) -> tuple[list[AuthoredText], dict[str, int]]:
    """Reads every text once, and counts how many were left out for each reason; `progress` receives the rows.

    A text that occurs with different labels or groups is left out, as it says nothing about either.

    Raises:
        FairnessError: a file is missing or broken, or has a label or group that is not mapped; names the file, the
            line, the mapped values, and how often the value occurs.
    """
    left_out: Counter[str] = Counter()
    by_text: dict[str, AuthoredText | None] = {}
    for entry in track(_texts(corpus, folder, left_out), progress, note="texts"):
        text = _SPACE.sub(" ", html.unescape(entry.text)).strip()
        if not text:
            left_out["empty"] += 1
        elif text not in by_text:
            by_text[text] = entry._replace(text=text)
        else:
            earlier = by_text[text]
            if earlier and (earlier.label, earlier.group) != (entry.label, entry.group):
                by_text[text] = None
            left_out["the same text again"] += 1
    left_out["under two labels or groups"] = sum(entry is None for entry in by_text.values())
    return [entry for entry in by_text.values() if entry], {reason: n for reason, n in left_out.items() if n}


def balanced(
    texts: Iterable[AuthoredText],
    key: str,
    shares: AuthoredShares,
    maximum: int,
    seed: int,
    left_out: Mapping[str, int] | None = None,
) -> pa.Table:
    """A table of `AUTHORED_TEXTS`, with each author in one split. Splits to learn from have equally many texts of each
    label and group; the split `test` has all.

    Args:
        texts: The texts, each once.
        key: The key of the corpus; it is part of every id.
        shares: The share of authors in each split.
        maximum: The largest number of texts of each label and group, over all splits.
        seed: The seed of the split.
        left_out: How many texts were left out earlier, by reason; used in an error message.

    Raises:
        FairnessError: a split has no two groups with texts of both labels; names the count of each.
    """
    total = shares.train + shares.valid + shares.test
    ends = np.cumsum([shares.train, shares.valid, shares.test]) / total
    cells: dict[str, dict[tuple[int, str], list[tuple[float, str, AuthoredText]]]] = {split: {} for split in SPLITS}
    for text in texts:
        identity = blake2b(f"{key}\x1f{text.text}".encode(), digest_size=10).hexdigest()
        position = uniform(f"{seed} split {text.author or identity}")
        split = SPLITS[int(np.searchsorted(ends[:-1], position, side="right"))]
        group = text.group if split == "test" else side_of(text.group)
        entries = cells[split].setdefault((text.label, group), [])
        entries.append((uniform(f"{seed} order {identity}"), identity, text))
    rows = []
    for split, share in zip(SPLITS, (shares.train, shares.valid, shares.test), strict=True):
        if not share:
            continue
        split_cells = cells[split]
        complete = {group for _, group in split_cells if {(0, group), (1, group)} <= split_cells.keys()}
        if len(complete) < 2:
            _refuse(key, split, cells, left_out)
        most = max(1, int(maximum * share / total))
        size = min(most, *(len(entries) for (_, group), entries in split_cells.items() if group in complete))
        for cell in sorted(split_cells, key=lambda cell: (-cell[0], cell[1])):
            kept = sorted(split_cells[cell], key=lambda entry: entry[:2])[: most if split == "test" else size]
            rows += [
                {"text_id": identity, "text": text.text, "label": text.label, "author_group": text.group,
                 "author_id": text.author or identity, "split": split,
                 "balanced": position < size and cell[1] in complete}
                for position, (_, identity, text) in enumerate(kept)
            ]  # fmt: skip
    return pa.Table.from_pylist(rows, schema=AUTHORED_TEXTS)


def side_of(group: str) -> str:
    """The group of a classifier's training: a, or b for all others."""
    return "a" if group == "a" else "b"


def _refuse(
    key: str,
    split: str,
    cells: Mapping[str, Mapping[tuple[int, str], list[tuple[float, str, AuthoredText]]]],
    left_out: Mapping[str, int] | None,
) -> None:
    groups = sorted({"a", "b"} | {group for split_cells in cells.values() for _, group in split_cells})
    combinations = [(label, group) for label in (1, 0) for group in groups]
    totals = Counter(
        {cell: sum(len(split_cells.get(cell, ())) for split_cells in cells.values()) for cell in combinations}
    )
    summary = ", ".join(
        f"{'positive' if label else 'negative'} of group {group}: {totals[label, group]:,}"
        for label, group in combinations
    )
    label, group = next(cell for cell in combinations if not cells[split].get(cell))
    summary += "".join(f"; left out, {reason}: {count:,}" for reason, count in (left_out or {}).items())
    raise FairnessError(
        f"corpus '{key}': no {'positive' if label else 'negative'} text of group {group} for the split '{split}'; "
        f"texts found: {summary}. Two groups with both labels are needed: look at 'labels' and 'groups', or add texts"
    )


def parts_of(balance_rate: str) -> tuple[int, int]:
    """The positive and negative parts of group a at a balance rate such as `4:1`; group b has them in reverse.

    Raises:
        FairnessError: the text is no balance rate.
    """
    match = re.fullmatch(r"([1-9]\d*):([1-9]\d*)", balance_rate)
    if not match:
        raise FairnessError(
            f"balance rate: expected positive:negative of group a, such as '4:1', found {balance_rate!r}"
        )
    return int(match[1]), int(match[2])


def skewed(texts: pa.Table, rates: Iterable[str]) -> pa.Table:
    """A table of `SKEWED_SETS`, of equal size at every rate: labels and groups 1:1 overall, skewed within the groups.

    Texts are taken in their order.

    Raises:
        FairnessError: a rate is not valid, or leaves a combination of label and group without texts.
    """
    rates = list(dict.fromkeys(rates))
    widest = max(max(parts) / sum(parts) for parts in map(parts_of, rates))
    rows = []
    for split in SPLITS[:2]:
        cells = _cells(texts, split)
        size = min(len(ids) for ids in cells.values()) / widest  # the size of each group
        for rate in rates:
            positive, negative = parts_of(rate)
            shares = {(1, "a"): positive, (0, "a"): negative, (1, "b"): negative, (0, "b"): positive}
            for cell, parts in shares.items():
                count = int(size * parts / (positive + negative) + 1e-9)
                if not count:
                    raise FairnessError(
                        f"balance rate {rate}: the split '{split}' has {len(cells[cell])} texts of each label and "
                        "group, which is too few for it; take a rate nearer to 1:1, or add texts"
                    )
                rows += [{"balance_rate": rate, "split": split, "text_id": text_id} for text_id in cells[cell][:count]]
    return pa.Table.from_pylist(rows, schema=SKEWED_SETS)


def added(texts: pa.Table, taken: pa.Table, split: str) -> list[str]:
    """The ids of the texts to add so that a skewed set becomes 1:1 in both groups (Liu 2022, section 4.5.2, Data Aug).

    Args:
        texts: A table of `AUTHORED_TEXTS`.
        taken: The rows of `SKEWED_SETS` for one rate.
        split: The split to fill up.
    """
    used = {row["text_id"] for row in taken.to_pylist() if row["split"] == split}
    cells = _cells(texts, split)
    size = max(sum(identity in used for identity in cell) for cell in cells.values())
    return [identity for cell in cells.values() for identity in cell[:size] if identity not in used]


def _cells(texts: pa.Table, split: str) -> dict[tuple[int, str], list[str]]:
    cells: dict[tuple[int, str], list[str]] = {(label, group): [] for label in (1, 0) for group in "ab"}
    for row in texts.select(["text_id", "label", "author_group", "split"]).to_pylist():
        if row["split"] == split:
            cells[row["label"], side_of(row["author_group"])].append(row["text_id"])
    return cells


def _texts(corpus: AuthoredCorpus, folder: Path, left_out: Counter[str]) -> Iterator[AuthoredText]:
    if corpus.grammar:
        drawn = AuthoredGrammarFile.load(corpus.grammar.file).texts(corpus.grammar.texts, corpus.grammar.seed)
        yield from (AuthoredText(*text) for text in drawn)
    elif corpus.cells:
        yield from _of_cells(corpus.cells, folder)
    else:
        yield from _mapped(corpus, folder, left_out)


def _of_cells(cells: Cells, folder: Path) -> Iterator[AuthoredText]:
    files = {name: file.resolve(folder) for name, file in cells.files().items()}
    words = [line for _, line in read_lines(files["vocab"])]
    groups = (cells.positive_group, "b" if cells.positive_group == "a" else "a")
    for name in CELLS:
        label, group = int(name.startswith("pos")), groups[not name.endswith("pos")]
        for number, line in read_lines(files[name]):
            try:
                yield AuthoredText(" ".join(words[int(code)] for code in line.split()), label, group)
            except (ValueError, IndexError):
                raise FairnessError(
                    f"{files[name]}, line {number}: expected numbers of words, 0 to {len(words) - 1} (lines of "
                    f"{files['vocab'].name}), found {line[:60]!r}"
                ) from None


class _Row(NamedTuple):
    """A row whose label and group are not mapped yet."""

    where: str
    text: str
    label: str
    group: str
    author: str | None


def _mapped(corpus: AuthoredCorpus, folder: Path, left_out: Counter[str]) -> Iterator[AuthoredText]:
    """The rows of tables or chat rooms, with their labels and groups mapped."""
    if corpus.chat_rooms:
        posts = read_chat_rooms(located(corpus.chat_rooms, folder))
        rows: Iterator[_Row] = (_Row(post.where, post.text, post.kind, post.ages, post.author) for post in posts)
    else:
        rows = chain.from_iterable(_rows(file, folder, left_out) for file in corpus.files)
    classes = {**dict.fromkeys(corpus.labels.positive, 1), **dict.fromkeys(corpus.labels.negative, 0)}
    dialect = corpus.groups.dialect
    model = dialect_model(corpus, folder)
    unknown: dict[str, Counter[str]] = {"label": Counter(), "group": Counter()}
    first: dict[tuple[str, str], str] = {}
    seen: Counter[str] = Counter()
    for row in rows:
        text = row.text
        seen[row.label] += 1
        label: int | None
        if corpus.mention:
            text = _MENTION.sub(" ", row.text)
            label = int(text != row.text)
        else:
            label = classes.get(row.label)
        if model and dialect:
            group, known = model.group(text, dialect.confidence), True
        else:
            group, known = corpus.groups.group_of(row.group), is_ignored(row.group, corpus.groups.ignored)
        for kind, value, is_known in (
            ("label", row.label, label is not None or is_ignored(row.label, corpus.labels.ignored)),
            ("group", row.group, group is not None or known),
        ):
            if not is_known:
                unknown[kind][value] += 1
                first.setdefault((kind, value), row.where)
        if label is None or group is None:
            left_out["of another label" if label is None else "of no group"] += 1
            continue
        yield AuthoredText(text, label, group, row.author)
    for kind, counts in unknown.items():
        if counts:
            examples = ", ".join(f"{value!r} ({count:,})" for value, count in counts.most_common(_EXAMPLES))
            value = next(iter(counts))
            keys = {
                "label": "labels.positive, labels.negative (of more than two labels.classes) or labels.ignored",
                "group": "groups.a.values, groups.b.values (of more than two groups.each) or groups.ignored",
            }[kind]
            raise FairnessError(
                f"{first[kind, value]}: {kind} {value!r} is not mapped; {number_of(len(counts), 'unmapped value')}: "
                f"{examples}. Put each under {keys} ('*' is every other)"
            )
    _check_seen(corpus, seen)


def dialect_model(corpus: AuthoredCorpus, folder: Path) -> DialectModel | None:
    """The model that decides the group from the words of a text; None if the corpus names the groups itself."""
    dialect = corpus.groups.dialect
    return DialectModel(located(dialect.counts, folder), located(dialect.vocabulary, folder)) if dialect else None


def _check_seen(corpus: AuthoredCorpus, seen: Counter[str]) -> None:
    """Raises an error for a file without rows and for a class without texts."""
    where = ", ".join(file.path for file in corpus.all_files()[:2])
    if not seen:
        raise FairnessError(f"{where}: expected rows, found none")
    for name in ("positive", "negative"):
        values = getattr(corpus.labels, name)
        if not corpus.mention and not any(label in seen for label in values):
            examples = ", ".join(f"{value!r} ({count:,})" for value, count in seen.most_common(_EXAMPLES))
            expected = " or ".join(map(repr, values))
            raise FairnessError(
                f"{where}: no row has the label {expected}; labels found: {examples}; see 'labels.{name}'"
            )


def _rows(file: AuthoredFile, folder: Path, left_out: Counter[str]) -> Iterator[_Row]:
    path, columns = located(file, folder), file.columns
    skipped = left_out if file.skip_malformed else None
    for where, record in read_records(path, file.encoding, separator=file.separator, skipped=skipped):
        text = str(column(where, record, columns.text))
        if file.padding:
            words = text.split()
            while words and words[0] == file.padding:
                words.pop(0)
            text = " ".join(words)
        label, group, author = (
            str(column(where, record, name)).strip() if name else ""
            for name in (columns.label, columns.group, columns.author)
        )
        yield _Row(where, text, label, group, author or None)


def is_ignored(cell: str, ignored: tuple[str, ...]) -> bool:
    """Whether a cell is among the ignored values."""
    return cell in ignored or OTHERS in ignored
