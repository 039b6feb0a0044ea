"""Finds out which columns of a file of labels hold items, raters, labels and the raters' traits.

Rater, item and label are looked for by name, and checked by structure: a rater labels several items, an item has
several raters. Traits are found by structure: columns that say the same in all rows of a rater.
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
"""What a user can say a column is."""
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
"""Columns with the same few values, from which on a file seems to hold one for each rater."""
_MOST_VALUES, _FEW_VALUES = 102, 10
"""Values of a column of labels; of a column of one rater's."""


class LabelColumns(NamedTuple):
    """What was found in a file of labels.

    Attributes:
        table: A row for each label: item, rater, label, text, and a column for each trait, all text.
        document: The file of `data/corpora` that reads the table, but for its path.
        lines: What was taken for what, for a reader.
    """

    table: "pd.DataFrame"
    document: dict[str, Any]
    lines: list[str]


class Raters(NamedTuple):
    """Another file that tells of raters: a row for each, all text."""

    table: "pd.DataFrame"
    path: Path


def names_a_rater(columns: Sequence[str]) -> bool:
    """Whether a file's columns name raters."""
    return any(_plain(name) in _NAMES["rater"] for name in columns)


def find_columns(
    rows: "pd.DataFrame", raters: Raters | None, roles: Mapping[str, list[str]], positive: str | None, path: Path
) -> LabelColumns:
    """What the columns are.

    Args:
        rows: A row for each label, all text; empty where nothing stands.
        raters: The raters' file, if that is another.
        roles: The columns that the user names, by role; a rater's in either file, or in both.
        positive: As in `label_section`.
        path: The file, for messages.

    Raises:
        FairnessError: a role is not found; says which columns there are and what to write.
    """
    own = dict(roles)
    if raters is not None and roles.get("rater", [""])[0] in raters.table and roles["rater"][0] not in rows:
        own.pop("rater")
    rater = _one("rater", own, rows, path, lambda name: rows[name].nunique() < len(rows))
    if rows[rater].nunique() < 2:
        raise FairnessError(
            f"{path}: all labels are by one rater ({rows[rater].iloc[0]}); groups of raters need several"
        )
    item = _one("item", own, rows, path, lambda name: _is_item(rows, name, rater), unlike=(rater,))
    label = _one("label", own, rows, path, lambda name: _is_label(rows, name, rater, item), unlike=(rater, item))
    rows = rows.assign(**{label: one_spelling(rows[label])})
    text = next(iter(own.get("text", [])), None) or _known(
        "text", rows, (rater, label), lambda name: _is_text(rows, name)
    )
    gold = _gold(rows, item, label, own)
    joined: list[str] = []
    if raters is not None:
        rows, joined = _with_traits(rows, raters, rater, roles.get("rater", []), path)
    lines = [f"  rater      {rater} ({rows[rater].nunique():,})", f"  item       {item} ({rows[item].nunique():,})"]
    labels, said = label_section(rows[label], positive, path)
    lines += [f"  label      {label}: {said[0]}", *(f"             {more}" for more in said[1:])]
    others = [n for n in _names(rows) if n not in (label, item, rater, text) and _plain(n) in _NAMES["label"]]
    if others and "label" not in roles:
        lines.append(f"             also labels, perhaps: {', '.join(others)} (--column label={others[0]})")
    lines += [f"  text       {text or 'none'}", *([f"  gold       {gold}"] if gold else []), *joined]
    for name in roles.get("trait", []):
        if name not in rows:
            raise FairnessError(f"--column trait={name}: {path} has no such column, but {some(_names(rows), 12)}")
    wanted = roles.get("trait") or [n for n in _names(rows) if n not in (item, rater, label, text, gold)]
    traits = find_traits(rows, rater, wanted, said="trait" in roles)
    lines += traits.lines
    if not traits.categories:
        lines.append("  trait      none: groups are not compared. A second file with them: --raters FILE")
    kept = {ITEM: rows[item], RATER: rows[rater], LABEL: rows[label], TEXT: rows[text] if text else ""}
    columns = {"item": ITEM, "annotator": RATER, "label": LABEL, "text": TEXT}
    if gold:
        kept[GOLD], columns["gold"] = rows[gold], GOLD
    table, again = _once(type(rows)(kept | traits.columns), labels)
    lines += [f"             {again}"] if again else []
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
    """The first column of the names that are known for a role that fits."""
    known = {_plain(name): name for name in reversed(_names(rows)) if name not in unlike}
    return next((known[name] for name in _NAMES[role] if name in known and fits(known[name])), None)


def _one(
    role: str,
    roles: Mapping[str, list[str]],
    rows: "pd.DataFrame",
    path: Path,
    fits: Callable[[str], bool],
    unlike: Sequence[str] = (),
) -> str:
    """The column with a role: as the user says, else the first of the known names that fits."""
    if said := roles.get(role):
        if said[0] not in rows:
            raise FairnessError(f"--column {role}={said[0]}: {path} has no such column, but {some(_names(rows), 12)}")
        return said[0]
    found = _known(role, rows, unlike, fits)
    if found is None and role != "rater":  # by structure alone, where that tells
        named = {name for other, own in _NAMES.items() if other != role for name in own}
        others = [name for name in _names(rows) if name not in unlike and _plain(name) not in named and fits(name)]
        found = others[0] if len(others) == 1 else None
    if found is None:
        why = {
            "item": "; several raters label an item, and a rater several items",
            "label": "; it has two values or more, which vary within raters and items",
        }.get(role, "")
        raise FairnessError(
            f"{path}: which column holds the {role}{why}? Say it: --column {role}=NAME, one of "
            f"{some(_names(rows), 14)}{_hint(role, rows, unlike)}"
        )
    return found


def _hint(role: str, rows: "pd.DataFrame", unlike: Sequence[str]) -> str:
    """What may be wrong with a file in which a role is not found."""
    if role == "label":
        alike = [
            name
            for name in _names(rows)
            if name not in unlike and _plain(name) in _NAMES[role] and rows[name].nunique() == 1
        ]
        return f". All cells of '{alike[0]}' are {rows[alike[0]].iloc[0]}: nothing differs" if alike else ""
    few = [frozenset(rows[name]) - {""} for name in rows if rows[name].nunique() <= _FEW_VALUES]
    common = max(few, key=few.count, default=frozenset[str]())
    if few.count(common) >= _FEWEST_COLUMNS:
        return (
            ". Is it a column for each rater? Then write a row for each label: item, rater, label (pandas: table.melt("
            "id_vars=['item'], var_name='rater', value_name='label').dropna())"
        )
    return ""


def _is_item(rows: "pd.DataFrame", name: str, rater: str) -> bool:
    """Whether a column's values have labels of several raters, and a rater several of them, each once or so."""
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
    """Whether a column holds texts, not names of them."""
    return bool(rows[name].str.strip().str.contains(r"\s").any())


def _gold(rows: "pd.DataFrame", item: str, label: str, roles: Mapping[str, list[str]]) -> str | None:
    """The column of true labels: one value for each item, all of which are labels, or numbers if labels are."""
    said = set(rows[label]) - {""}

    def fits(name: str) -> bool:
        true = set(rows[name]) - {""}
        known = true <= said or all(NUMBER.fullmatch(value) for value in true | said)
        return known and bool((rows.groupby(item)[name].nunique() == 1).all())

    return next(iter(roles.get("gold", [])), None) or _known("gold", rows, (item, label), fits)


def _with_traits(
    rows: "pd.DataFrame", raters: Raters, rater: str, said: Sequence[str], path: Path
) -> tuple["pd.DataFrame", list[str]]:
    """The rows with what the raters' file tells of each; its column of raters is the one whose values are theirs, or
    those of another name that each rater has (an e-mail address)."""
    table = raters.table
    ids = [name for name in (said if said and said[0] in table else _names(table)) if table[name].is_unique]
    if not ids:
        raise FairnessError(
            f"{raters.path}: expected a row for each rater, found no column whose values all differ; keep one row for "
            "each"
        )
    people = rows.drop_duplicates(rater)
    names = [rater] + [
        name
        for name in _names(rows)
        if name != rater and people[name].is_unique and (rows.groupby(rater)[name].nunique() == 1).all()
    ]
    people, table = (
        own.assign(**{name: _plainly(own[name]) for name in keys}) for own, keys in ((people, names), (table, ids))
    )
    mine, own = max(
        ((one, other) for one in names for other in ids), key=lambda p: people[p[0]].isin(table[p[1]]).sum()
    )
    known = int(people[mine].isin(table[own]).sum())
    if not known:
        raise FairnessError(
            f"{raters.path}: none of its columns has the raters of {path}, such as {some(list(people[rater]), 3)}; "
            f"'{own}' has such as {some(list(table[own]), 3)}. Which is it? --column rater=NAME"
        )
    more = table.set_index(own).add_prefix("" if not set(table) & set(rows) - {own} else "rater ")
    told = f"  raters     {raters.path.name}, by {own}: {known:,} of {number_of(len(people), 'rater')}"
    missing = f"; not in it, so unknown: {some(list(people[~people[mine].isin(table[own])][rater]), 3)}"
    found = rows.assign(**{_KEY: _plainly(rows[mine])}).join(more, on=_KEY).drop(columns=_KEY).fillna("")
    return found, [told + (missing if known < len(people) else "")]


_KEY = "\0"


def _plainly(column: "pd.Series") -> "pd.Series":
    """Names of raters without what capitals and blanks make different."""
    return column.str.strip().str.lower()


def _positive_in_words(labels: Mapping[str, Any]) -> str:
    if "at_least" in labels:
        return f", {labels['at_least']:g} or more"
    return f": {labels['positive'][0]}" if "positive" in labels else ""


def _once(table: "pd.DataFrame", labels: Mapping[str, Any]) -> tuple["pd.DataFrame", str]:
    """The table with one label of an item by a rater: of a scale their mean, else the first counts when it is read."""
    again = int(table.duplicated([ITEM, RATER]).sum())
    if not again:
        return table, ""
    if "at_least" not in labels:
        otherwise = int((table.groupby([ITEM, RATER])[LABEL].nunique() > 1).sum())
        told = f", {number_of(otherwise, 'time')} another" if otherwise else ", always the same"
        return table, f"{again:,} labels of an item again by the same rater{told}: the first counts"
    kept = table[~table[LABEL].isin(labels["ignored"])]
    means = kept[LABEL].astype(float).groupby([kept[ITEM], kept[RATER]]).mean().rename("mean")
    first = kept.drop_duplicates([ITEM, RATER]).join(means, on=[ITEM, RATER])
    share = 100 * float((first["mean"] >= labels["at_least"]).mean())
    return first.assign(**{LABEL: first["mean"].map("{:g}".format)}).drop(columns="mean"), (
        f"{again:,} labels of an item again by the same rater: their mean counts, so that {share:.0f}% are positive"
    )
