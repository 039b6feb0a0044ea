"""Finds out which columns of a file of labels hold items, raters, labels and the raters' traits.

Rater, item and label are looked for by name, and checked by structure: a rater labels several items, an item has
several raters. Traits are found by structure: columns that say the same in all rows of a rater.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fairness_pipeline.corpora.annotators.annotated_corpus import FEWEST_RATERS
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.plain_text import some

if TYPE_CHECKING:
    import pandas as pd

ITEM, RATER, LABEL, TEXT = "item_id", "annotator_id", "label", "text"
"""The columns of the table that is kept."""
ROLES = ("item", "rater", "label", "text", "trait")
"""What a user can say a column is."""
_NAMES = {
    "rater": (
        "annotator_id", "annotatorid", "annotator", "rater_id", "raterid", "rater", "worker_id", "workerid", "worker",
        "coder", "labeler", "labeller", "judge", "user_id", "userid", "participant_id", "unique_contributor_id",
    ),
    "item": (
        "item_id", "itemid", "item", "comment_id", "instance_id", "rev_id", "post_id", "text_id", "tweet_id",
        "utterance_id", "question_id", "task_id", "id", "comment", "post", "text",
    ),
    "label": (
        "label", "rating", "annotation", "answer", "q_overall", "binary_rating", "raw_rating", "toxic_score",
        "toxicity", "offensiveness", "offensiveyn", "hatespeech", "score", "choice", "value",
    ),
    "text": ("text", "comment_text", "comment", "post", "reply", "sentence", "response", "utterance"),
}  # fmt: skip
_UNKNOWN = re.compile(
    r"(|na|nan|none|null|n/a|unknown|data_expired|consent_revoked|(i )?(would )?(prefer|rather) not.*)",
    re.IGNORECASE,
)
_YES = ("1", "yes", "true", "positive", "toxic", "offensive", "unsafe", "hateful", "accept")
_NO = ("0", "no", "false", "negative", "not toxic", "inoffensive", "safe", "reject")
_MOST_CLASSES, _MOST_GROUPS, _SCALE = 10, 15, 3
_AGES = {"under 30": (0, 29.99), "30 to 44": (30, 44.99), "45 and over": (45, 120)}


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


def names_a_rater(columns: Sequence[str]) -> bool:
    """Whether a file's columns name raters."""
    return any(name.lower() in _NAMES["rater"] for name in columns)


def find_columns(
    rows: "pd.DataFrame",
    raters: "pd.DataFrame | None",
    roles: Mapping[str, list[str]],
    positive: str | None,
    path: Path,
) -> LabelColumns:
    """What the columns are.

    Args:
        rows: A row for each label, all text; empty where nothing stands.
        raters: A row for each rater, if that is another file.
        roles: The columns that the user names, by role.
        positive: The label that is the positive class, or the number from which a scale is; None if the user says none.
        path: The file, for messages.

    Raises:
        FairnessError: a role is not found; says which columns there are and what to write.
    """
    rater = _one("rater", roles, rows, path, lambda name: rows[name].nunique() < len(rows))
    if rows[rater].nunique() < 2:
        raise FairnessError(
            f"{path}: all labels are by one rater ({rows[rater].iloc[0]}); groups of raters need several"
        )
    item = _one("item", roles, rows, path, lambda name: _is_item(rows, name, rater), unlike=(rater,))
    label = _one("label", roles, rows, path, lambda name: _is_label(rows, name, rater, item), unlike=(rater, item))
    rows = rows.assign(**{label: _one_spelling(rows[label])})
    text = next(iter(roles.get("text", [])), None) or _text(rows, item, (rater, label))
    if raters is not None:
        own = _one("rater", {}, raters, path, lambda name: raters[name].is_unique)
        known = rows[rater].isin(raters[own])
        if not known.any():
            raise FairnessError(
                f"{path}: no rater of '{rater}' stands in '{own}' of the raters' file, which has such as "
                f"{some(list(map(str, raters[own])), 3)}"
            )
        more = raters.set_index(own).add_prefix("" if not set(raters) & set(rows) - {own} else "rater ")
        rows = rows.join(more, on=rater).fillna("")
    table, lines = (
        rows,
        [f"  rater      {rater} ({rows[rater].nunique():,})", f"  item       {item} ({rows[item].nunique():,})"],
    )
    labels, said = _labels(rows[label], positive, path)
    lines.append(f"  label      {label}: {said}")
    others = [n for n in _names(rows) if n not in (label, item, rater) and n.lower() in _NAMES["label"]]
    if others and "label" not in roles:
        lines.append(f"             also labels, perhaps: {', '.join(others)} (--column label={others[0]})")
    lines.append(f"  text       {text or 'none'}")
    traits, categories = _traits(rows, rater, (item, rater, label, text), roles.get("trait", []), path)
    for name, trait in categories.items():
        groups = ", ".join(f"{group} ({count:,})" for group, count in trait.pop("counts").items())
        lines.append(f"  trait      {name}: {groups}")
    if not categories:
        lines.append("  trait      none: groups are not compared. A second file with them: --raters FILE")
    kept = {ITEM: rows[item], RATER: rows[rater], LABEL: rows[label], TEXT: rows[text] if text else "", **traits}
    table, again = _once(type(rows)(kept), labels)
    lines += [f"             {again}"] if again else []
    document = {
        "task": label,
        "annotations": [{"columns": {"item": ITEM, "annotator": RATER, "label": LABEL, "text": TEXT}}],
        "labels": labels,
        "categories": categories,
        "repeated": "first",
        "inconsistent": "unknown",
        "licence": "yours",
        "citation": path.name,
    }
    return LabelColumns(table, document, lines)


def _names(rows: "pd.DataFrame") -> list[str]:
    return [str(name) for name in rows.columns]


def _one(
    role: str, roles: Mapping[str, list[str]], rows: "pd.DataFrame", path: Path, fits: Any, unlike: Sequence[str] = ()
) -> str:
    """The column with a role: as the user says, else the first of the known names that fits."""
    if said := roles.get(role):
        if said[0] not in rows:
            raise FairnessError(f"--column {role}={said[0]}: {path} has no such column, but {some(_names(rows), 12)}")
        return said[0]
    known = {name.lower(): name for name in _names(rows) if name not in unlike}
    found = next((known[name] for name in _NAMES[role] if name in known and fits(known[name])), None)
    if found is None and role != "rater":  # by structure alone, where that tells
        named = {name for other, own in _NAMES.items() if other != role for name in own}
        others = [name for lower, name in known.items() if lower not in named and fits(name)]
        found = others[0] if len(others) == 1 else None
    if found is None:
        why = {
            "item": "; several raters label an item, and a rater several items",
            "label": "; it has two values or more, which vary within raters and items",
        }.get(role, "")
        raise FairnessError(
            f"{path}: which column holds the {role}{why}? Say it: --column {role}=NAME, one of {some(_names(rows), 14)}"
        )
    return found


def _is_item(rows: "pd.DataFrame", name: str, rater: str) -> bool:
    """Whether a column's values have labels of several raters, and a rater several of them, each once or so."""
    pairs = rows[[name, rater]].drop_duplicates()
    several = len(pairs) >= 1.2 * pairs[name].nunique() and len(pairs) >= 1.2 * pairs[rater].nunique()
    return bool(several and (name.lower() in _NAMES["item"] or len(pairs) > 0.95 * len(rows.drop_duplicates())))


def _is_label(rows: "pd.DataFrame", name: str, rater: str, item: str) -> bool:
    """Whether a column has a few values that vary within raters and within items."""
    if not 2 <= rows[name].nunique() <= 102:
        return False
    within = [(rows.groupby(key)[name].nunique() > 1).mean() for key in (rater, item)]
    return min(within) > 0 and (name.lower() in _NAMES["label"] or within[0] > 0.5)


def _one_spelling(column: "pd.Series") -> "pd.Series":
    """Labels that differ in capitals alone, as the commonest of them is written."""
    common = {value.lower(): value for value in reversed(column.value_counts().index.tolist())}
    return column.map(lambda value: common[value.lower()])


def _once(table: "pd.DataFrame", labels: Mapping[str, Any]) -> tuple["pd.DataFrame", str]:
    """The table with one label of an item by a rater: of a scale their mean, else the first counts when it is read."""
    again = int(table.duplicated([ITEM, RATER]).sum())
    if not again:
        return table, ""
    if "at_least" not in labels:
        return table, f"{again:,} labels of an item again by the same rater: the first counts"
    kept = table[~table[LABEL].isin(labels["ignored"])]
    means = kept[LABEL].astype(float).groupby([kept[ITEM], kept[RATER]]).mean().rename("mean")
    first = kept.drop_duplicates([ITEM, RATER]).join(means, on=[ITEM, RATER])
    return first.assign(**{LABEL: first["mean"].map("{:g}".format)}).drop(columns="mean"), (
        f"{again:,} labels of an item again by the same rater: their mean counts"
    )


def _text(rows: "pd.DataFrame", item: str, others: Sequence[str]) -> str | None:
    known = {name.lower(): name for name in _names(rows) if name not in others}
    return next((known[name] for name in _NAMES["text"] if name in known), None)


def _labels(column: "pd.Series", positive: str | None, path: Path) -> tuple[dict[str, Any], str]:
    """The section `labels`, and what it says for a reader."""
    values = [value for value in map(str, column.value_counts().index) if not _UNKNOWN.fullmatch(value)]
    ignored = [value for value in map(str, column.unique()) if value not in values]
    numbers = sorted(float(value) for value in values if re.fullmatch(r"-?\d+(\.\d+)?", value))
    if len(numbers) == len(values) >= _SCALE:
        if numbers[0] == -1 and numbers[1] >= 0:  # "not understood" of a scale from 0
            ignored += [value for value in values if float(value) == -1]
            numbers = numbers[1:]
        least = float(positive) if positive else float(-(-(numbers[0] + numbers[-1]) // 2))
        said = f"a scale from {numbers[0]:g} to {numbers[-1]:g}; {least:g} or more is positive"
        said += f" (--label positive={least:g}; classes that are numbers: see the file named below)"
        return {"at_least": least, "ignored": ignored}, f"{said}{_left(ignored)}"
    known = {value.lower().removesuffix(".0"): value for value in values}
    yes = positive or next((known[word] for word in _YES if word in known), None)
    no = [value for value in values if value != yes]
    if yes is not None and yes not in values:
        raise FairnessError(f"--label positive={yes}: {path} has the labels {some(values, 8)}")
    if len(values) == 3 and yes and next((word for word in _NO if word in known), None):  # yes, no, unsure
        unsure = [v for v in no if v.lower().removesuffix(".0") not in _NO]
        ignored, no = ignored + unsure, [value for value in no if value not in unsure]
    if len(no) == 1 or positive or len(values) == 2:
        yes = yes or values[-1]  # the rarer one
        no = [value for value in values if value not in (yes, *ignored)]
        names = {} if {yes, *no} <= {"0", "1", "0.0", "1.0"} else {"names": [yes, " or ".join(no)]}
        spellings = {"positive": _spelled([yes]), "negative": _spelled(no), "ignored": ignored}
        return (
            spellings | names,
            f"{yes} is positive, {', '.join(no)} negative (--label positive={yes}){_left(ignored)}",
        )
    if not 3 <= len(values) <= _MOST_CLASSES:
        raise FairnessError(
            f"{path}: {len(values)} labels ({some(values, 8)}); expected two, a scale of numbers, or up to "
            f"{_MOST_CLASSES} classes. Which is positive? --label positive={values[0] if values else 'LABEL'}"
        )
    classes = {value: [value] for value in values}
    return {"classes": classes, "ignored": ignored}, f"{len(values)} classes: {some(values, 8)}{_left(ignored)}"


def _spelled(values: list[str]) -> list[str]:
    """A label, and the way in which a whole number may also stand in the file."""
    return [own for value in values for own in dict.fromkeys((value, value.removesuffix(".0")))]


def _left(ignored: Sequence[str]) -> str:
    shown = [value or "empty" for value in ignored]
    return f"; left out: {', '.join(shown)}" if shown else ""


def _traits(
    rows: "pd.DataFrame", rater: str, others: Sequence[str | None], said: Sequence[str], path: Path
) -> tuple[dict[str, "pd.Series"], dict[str, dict[str, Any]]]:
    """The columns that divide raters into groups, and the section `categories` with counts of raters."""
    people = rows.drop_duplicates(rater).set_index(rater)
    wanted = [name for name in said or _names(rows) if name not in others and name in rows]
    if missing := [name for name in said if name not in rows]:
        raise FairnessError(f"--column trait={missing[0]}: {path} has no such column, but {some(_names(rows), 12)}")
    same = [n for n in wanted if said or (rows.groupby(rater)[n].nunique(dropna=False) <= 1).mean() > 0.95]
    columns: dict[str, pd.Series] = {}
    for name, members in _families(people, same):
        columns[name] = _merged(rows, name, members) if len(members) > 1 else rows[members[0]]
    traits, categories = {}, {}
    for name, column in columns.items():
        of_people = column[~rows[rater].duplicated()]
        found = _category(name, of_people[~of_people.map(lambda v: bool(_UNKNOWN.fullmatch(v)))])
        if found:
            traits[name], categories[name] = column, {"column": name, **found, "ignored": ["*"]}
    return traits, categories


def _families(people: "pd.DataFrame", names: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """Columns by themselves; yes-or-no columns of one beginning (race_white, race_black, ...) together."""
    flags = [n for n in names if set(people[n].str.lower()) <= {"true", "false", "1", "0", "1.0", "0.0", ""}]
    done: set[str] = set()
    for name in names:
        stem = name.rpartition("_")[0]
        while name in flags and stem and sum(other.startswith(f"{stem}_") for other in flags) < _SCALE:
            stem = stem.rpartition("_")[0]
        family = [other for other in flags if stem and other.startswith(f"{stem}_")] if name in flags else []
        if name in done:
            continue
        if len(family) >= _SCALE and stem.lower() not in ("annotator", "rater", "worker"):
            done.update(family)
            yield stem, family
        else:
            yield name, [name]


def _merged(rows: "pd.DataFrame", stem: str, members: list[str]) -> "pd.Series":
    """One column of several yes-or-no columns; `several` where more than one is yes."""
    yes = rows[members].apply(lambda column: column.str.lower().isin(("true", "1", "1.0")))
    chosen = yes.to_numpy()
    names = np.array([name.removeprefix(f"{stem}_") for name in members])
    count = chosen.sum(axis=1)
    named = np.where(count > 1, "several", np.where(count == 1, names[chosen.argmax(axis=1)], ""))
    import pandas as pd

    return pd.Series(named, index=rows.index)


def _category(name: str, people: "pd.Series") -> dict[str, Any] | None:
    """The groups of a trait with their numbers of raters; None if it has no two groups of raters enough."""
    counts = people.value_counts()
    numbers = people.map(lambda value: bool(re.fullmatch(r"\d+(\.\d+)?", value)))
    if "age" in name.lower() and len(counts) > _MOST_CLASSES and numbers.mean() > 0.9:
        ages = people[numbers].astype(float)
        groups = {group: {"between": list(between)} for group, between in _AGES.items()}
        sizes = {group: int(ages.between(low, high).sum()) for group, (low, high) in _AGES.items()}
        groups = {group: own for group, own in groups.items() if sizes[group] >= FEWEST_RATERS}
        return {"groups": groups, "counts": {g: sizes[g] for g in groups}} if len(groups) > 1 else None
    large = counts[counts >= FEWEST_RATERS]
    if not 2 <= len(large) <= _MOST_GROUPS:
        return None
    return {"groups": {str(value): [str(value)] for value in large.index}, "counts": large.to_dict()}
