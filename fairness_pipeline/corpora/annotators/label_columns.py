"""Finds out which columns of a file of labels hold items, raters, labels and the raters' traits.

Rater, item and label are looked for by name, and checked by structure: a rater labels several items, an item has
several raters. Traits are found by structure: such a column has the same value in all rows of a rater.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from fairness_pipeline.corpora.annotators.label_values import NUMBER, label_section, one_spelling
from fairness_pipeline.corpora.annotators.rater_traits import find_traits
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.plain_text import number_of, some

if TYPE_CHECKING:
    import pandas as pd

ITEM, RATER, LABEL, TEXT, GOLD = "item_id", "annotator_id", "label", "text", "gold"
"""The columns of the table that is kept."""
ROLES = ("item", "rater", "label", "text", "gold", "trait")
"""The roles that a user can give a column."""
_NAMES = {
    "rater": (
        "annotator_id", "annotatorid", "annotator", "rater_id", "raterid", "rater", "worker_id", "workerid", "worker",
        "amt_worker_ids", "amt_worker_id", "coder", "labeler", "labeller", "judge", "moderator", "user_id", "userid",
        "participant_id", "unique_contributor_id",
    ),
    "item": (
        "item_id", "itemid", "item", "comment_id", "instance_id", "rev_id", "post_id", "text_id", "tweet_id",
        "utterance_id", "question_id", "task_id", "orig_id", "id", "question", "comment", "post", "text",
    ),
    "label": (
        "label", "rating", "annotation", "answer", "q_overall", "binary_rating", "raw_rating", "toxic_score",
        "toxicity", "offensiveness", "offensiveyn", "hatespeech", "score", "choice", "value", "response",
    ),
    "text": ("text", "comment_text", "comment", "post", "reply", "sentence", "response", "utterance"),
    "gold": ("gold", "gold_label", "gold_standard"),
}  # fmt: skip
_FEWEST_COLUMNS = 3
"""If at least this many columns have the same few values, the file seems to have a column for each rater."""
_MOST_VALUES, _FEW_VALUES = 102, 10
"""The most values of a column of labels, and of a column with one rater's labels."""


class LabelColumns(NamedTuple):
    """The columns of a file of labels.

    Attributes:
        table: One row for each label: item, rater, label, text, and a column for each trait, all text.
        document: The contents of a file of `data/corpora` for the table, without its path.
        lines: The role of each column, in words for a reader.
    """

    table: "pd.DataFrame"
    document: dict[str, Any]
    lines: list[str]


class Raters(NamedTuple):
    """A second file about the raters: one row for each, all text."""

    table: "pd.DataFrame"
    path: Path


def names_a_rater(columns: Sequence[str]) -> bool:
    """Whether a file's columns name raters."""
    return any(_plain(name) in _NAMES["rater"] for name in columns)


def find_columns(
    rows: "pd.DataFrame", raters: Raters | None, roles: Mapping[str, list[str]], positive: str | None, path: Path
) -> LabelColumns:
    """Finds the role of each column.

    Args:
        rows: One row for each label, all text; a missing cell is empty.
        raters: The raters' file, if there is a second file.
        roles: The columns that the user names, by role; the rater's column may be in either file, or in both.
        positive: As in `label_section`.
        path: The file, for messages.

    Raises:
        FairnessError: a role is not found; lists the columns and says what to write.
    """
    file_roles = dict(roles)
    if raters is not None and roles.get("rater", [""])[0] in raters.table and roles["rater"][0] not in rows:
        file_roles.pop("rater")
    rater = _column_of("rater", file_roles, rows, path, lambda name: rows[name].nunique() < len(rows))
    if rows[rater].nunique() < 2:
        raise FairnessError(
            f"{path}: all labels are by one rater ({rows[rater].iloc[0]}); groups of raters need several"
        )
    item = _column_of("item", file_roles, rows, path, lambda name: _is_item(rows, name, rater), unlike=(rater,))
    label = _column_of(
        "label", file_roles, rows, path, lambda name: _is_label(rows, name, rater, item), unlike=(rater, item)
    )
    rows = rows.assign(**{label: one_spelling(rows[label])})
    text = next(iter(file_roles.get("text", [])), None) or _known(
        "text", rows, (rater, label), lambda name: _is_text(rows, name)
    )
    gold = _gold(rows, item, label, file_roles)
    rater_lines: list[str] = []
    if raters is not None:
        rows, rater_lines = _with_traits(rows, raters, rater, roles.get("rater", []), path)
    lines = [f"  rater      {rater} ({rows[rater].nunique():,})", f"  item       {item} ({rows[item].nunique():,})"]
    labels, label_lines = label_section(rows[label], positive, path)
    lines += [f"  label      {label}: {label_lines[0]}", *(f"             {line}" for line in label_lines[1:])]
    other_labels = [n for n in _names(rows) if n not in (label, item, rater, text) and _plain(n) in _NAMES["label"]]
    if other_labels and "label" not in roles:
        lines.append(f"             also labels, perhaps: {', '.join(other_labels)} (--column label={other_labels[0]})")
    lines += [f"  text       {text or 'none'}", *([f"  gold       {gold}"] if gold else []), *rater_lines]
    for name in roles.get("trait", []):
        if name not in rows:
            raise FairnessError(f"--column trait={name}: {path} has no such column, but {some(_names(rows), 12)}")
    candidates = roles.get("trait") or [n for n in _names(rows) if n not in (item, rater, label, text, gold)]
    traits = find_traits(rows, rater, candidates, named="trait" in roles)
    lines += traits.lines
    if not traits.categories:
        lines.append("  trait      none: groups are not compared. A second file with them: --raters FILE")
    table_columns = {ITEM: rows[item], RATER: rows[rater], LABEL: rows[label], TEXT: rows[text] if text else ""}
    columns = {"item": ITEM, "annotator": RATER, "label": LABEL, "text": TEXT}
    if gold:
        table_columns[GOLD], columns["gold"] = rows[gold], GOLD
    table, repeats = _once(type(rows)(table_columns | traits.columns), labels)
    lines += [f"             {repeats}"] if repeats else []
    document = {
        "task": label + _positive_in_words(labels),
        "annotations": [{"columns": columns}],
        "labels": labels,
        "categories": traits.categories,
        "repeated": "first",
        "inconsistent": "unknown",
        "licence": "yours",
        "citation": path.name,
    }
    return LabelColumns(table, document, lines)


def _plain(name: str) -> str:
    """A column's name without capitals and marks (`!amt_worker_ids`, `Worker ID`)."""
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")


def _names(rows: "pd.DataFrame") -> list[str]:
    return [str(name) for name in rows.columns]


def _known(role: str, rows: "pd.DataFrame", unlike: Sequence[str], fits: Callable[[str], bool]) -> str | None:
    """The first column that has a known name for a role and fits."""
    known = {_plain(name): name for name in reversed(_names(rows)) if name not in unlike}
    return next((known[name] for name in _NAMES[role] if name in known and fits(known[name])), None)


def _column_of(
    role: str,
    roles: Mapping[str, list[str]],
    rows: "pd.DataFrame",
    path: Path,
    fits: Callable[[str], bool],
    unlike: Sequence[str] = (),
) -> str:
    """The column with a role: the one that the user names, else the first with a known name that fits."""
    if given := roles.get(role):
        if given[0] not in rows:
            raise FairnessError(f"--column {role}={given[0]}: {path} has no such column, but {some(_names(rows), 12)}")
        return given[0]
    column = _known(role, rows, unlike, fits)
    if column is None and role != "rater":  # by structure alone, if exactly one column fits
        reserved = {name for other_role, known_names in _NAMES.items() if other_role != role for name in known_names}
        candidates = [
            name for name in _names(rows) if name not in unlike and _plain(name) not in reserved and fits(name)
        ]
        column = candidates[0] if len(candidates) == 1 else None
    if column is None:
        explanation = {
            "item": "; several raters label an item, and a rater several items",
            "label": "; it has two values or more, which vary within raters and items",
        }.get(role, "")
        raise FairnessError(
            f"{path}: no column was recognised as the {role}{explanation}; name it: --column {role}=NAME, one of "
            f"{some(_names(rows), 14)}{_hint(role, rows, unlike)}"
        )
    return column


def _hint(role: str, rows: "pd.DataFrame", unlike: Sequence[str]) -> str:
    """What may be wrong with a file in which a role is not found."""
    if role == "label":
        constant = [
            name
            for name in _names(rows)
            if name not in unlike and _plain(name) in _NAMES[role] and rows[name].nunique() == 1
        ]
        return f". All cells of '{constant[0]}' are {rows[constant[0]].iloc[0]}: nothing differs" if constant else ""
    few = [frozenset(rows[name]) - {""} for name in rows if rows[name].nunique() <= _FEW_VALUES]
    common = max(few, key=few.count, default=frozenset[str]())
    if few.count(common) >= _FEWEST_COLUMNS:
        return (
            ". Is it a column for each rater? Then write a row for each label: item, rater, label (pandas: table.melt("
            "id_vars=['item'], var_name='rater', value_name='label').dropna())"
        )
    return ""


def _is_item(rows: "pd.DataFrame", name: str, rater: str) -> bool:
    """Whether a column's values have several raters each, raters have several values, and pairs hardly repeat."""
    pairs = rows[[name, rater]].drop_duplicates()
    several = len(pairs) >= 1.2 * pairs[name].nunique() and len(pairs) >= 1.2 * pairs[rater].nunique()
    return bool(several and (_plain(name) in _NAMES["item"] or len(pairs) > 0.95 * len(rows.drop_duplicates())))


def _is_label(rows: "pd.DataFrame", name: str, rater: str, item: str) -> bool:
    """Whether a column has a few values that vary within raters and within items."""
    if not 2 <= rows[name].nunique() <= _MOST_VALUES:
        return False
    within = [(rows.groupby(key)[name].nunique() > 1).mean() for key in (rater, item)]
    return min(within) > 0 and (_plain(name) in _NAMES["label"] or within[0] > 0.5)


def _is_text(rows: "pd.DataFrame", name: str) -> bool:
    """Whether a column holds texts and not ids."""
    return bool(rows[name].str.strip().str.contains(r"\s").any())


def _gold(rows: "pd.DataFrame", item: str, label: str, roles: Mapping[str, list[str]]) -> str | None:
    """The column of true labels: one value for each item, and only labels (or only numbers, as the labels)."""
    labels = set(rows[label]) - {""}

    def fits(name: str) -> bool:
        values = set(rows[name]) - {""}
        known = values <= labels or all(NUMBER.fullmatch(value) for value in values | labels)
        return known and bool((rows.groupby(item)[name].nunique() == 1).all())

    return next(iter(roles.get("gold", [])), None) or _known("gold", rows, (item, label), fits)


def _with_traits(
    rows: "pd.DataFrame", raters: Raters, rater: str, given: Sequence[str], path: Path
) -> tuple["pd.DataFrame", list[str]]:
    """The rows joined with the raters' file. Its column of raters is the one that matches the rows' rater column, or
    another column with an id of each rater (an e-mail address)."""
    table = raters.table
    id_columns = [name for name in (given if given and given[0] in table else _names(table)) if table[name].is_unique]
    if not id_columns:
        raise FairnessError(
            f"{raters.path}: expected a row for each rater, found no column whose values all differ; keep one row for "
            "each"
        )
    people = rows.drop_duplicates(rater)
    row_columns = [rater] + [
        name
        for name in _names(rows)
        if name != rater and people[name].is_unique and (rows.groupby(rater)[name].nunique() == 1).all()
    ]
    people, table = (
        frame.assign(**{name: _normalized(frame[name]) for name in keys})
        for frame, keys in ((people, row_columns), (table, id_columns))
    )
    row_key, rater_key = max(
        ((row_column, id_column) for row_column in row_columns for id_column in id_columns),
        key=lambda pair: people[pair[0]].isin(table[pair[1]]).sum(),
    )
    matched = int(people[row_key].isin(table[rater_key]).sum())
    if not matched:
        raise FairnessError(
            f"{raters.path}: none of its columns has the raters of {path}, such as {some(list(people[rater]), 3)}; "
            f"'{rater_key}' has values such as {some(list(table[rater_key]), 3)}. Name the column: --column rater=NAME"
        )
    traits = table.set_index(rater_key).add_prefix("" if not set(table) & set(rows) - {rater_key} else "rater ")
    line = f"  raters     {raters.path.name}, by {rater_key}: {matched:,} of {number_of(len(people), 'rater')}"
    missing = f"; not in it, so unknown: {some(list(people[~people[row_key].isin(table[rater_key])][rater]), 3)}"
    joined = rows.assign(**{_KEY: _normalized(rows[row_key])}).join(traits, on=_KEY).drop(columns=_KEY).fillna("")
    return joined, [line + (missing if matched < len(people) else "")]


_KEY = "\0"


def _normalized(column: "pd.Series") -> "pd.Series":
    """Ids of raters in lower case, without surrounding blanks."""
    return column.str.strip().str.lower()


def _positive_in_words(labels: Mapping[str, Any]) -> str:
    if "at_least" in labels:
        return f", {labels['at_least']:g} or more"
    return f": {labels['positive'][0]}" if "positive" in labels else ""


def _once(table: "pd.DataFrame", labels: Mapping[str, Any]) -> tuple["pd.DataFrame", str]:
    """The table with one label for each item and rater: on a scale the mean, else the first when the table is read."""
    repeats = int(table.duplicated([ITEM, RATER]).sum())
    if not repeats:
        return table, ""
    if "at_least" not in labels:
        conflicts = int((table.groupby([ITEM, RATER])[LABEL].nunique() > 1).sum())
        note = f", {number_of(conflicts, 'time')} another" if conflicts else ", always the same"
        return table, f"{repeats:,} repeated labels (same item and rater){note}: the first counts"
    kept = table[~table[LABEL].isin(labels["ignored"])]
    means = kept[LABEL].astype(float).groupby([kept[ITEM], kept[RATER]]).mean().rename("mean")
    first = kept.drop_duplicates([ITEM, RATER]).join(means, on=[ITEM, RATER])
    share = 100 * float((first["mean"] >= labels["at_least"]).mean())
    return first.assign(**{LABEL: first["mean"].map("{:g}".format)}).drop(columns="mean"), (
        f"{repeats:,} repeated labels (same item and rater): their mean counts, so that {share:.0f}% are positive"
    )
