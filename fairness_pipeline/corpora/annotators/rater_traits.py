"""Finds the columns of a file of labels that divide its raters into groups, by structure: such a column has the same
value in all rows of a rater."""

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fairness_pipeline.corpora.annotators.annotated_corpus import FEWEST_RATERS
from fairness_pipeline.corpora.annotators.label_values import SCALE, UNKNOWN
from fairness_pipeline.foundation.plain_text import number_of, some

if TYPE_CHECKING:
    import pandas as pd

_MOST_AGES, _MOST_GROUPS = 10, 15
"""The most ages that are not divided into ranges, and the most groups of a trait."""
_AGES = {"under 30": (0, 29.99), "30 to 44": (30, 44.99), "45 and over": (45, 120)}


class RaterTraits(NamedTuple):
    """The traits that divide raters into groups.

    Attributes:
        columns: The cells of all rows, by trait.
        categories: The section `categories` of a corpus.
        lines: A line for each trait that was taken or left out, with the reason.
    """

    columns: dict[str, "pd.Series"]
    categories: dict[str, dict[str, Any]]
    lines: list[str]


def find_traits(rows: "pd.DataFrame", rater: str, candidates: Sequence[str], *, named: bool) -> RaterTraits:
    """Finds the columns that divide raters into groups.

    Args:
        rows: One row for each label, all text.
        rater: The column of raters.
        candidates: The columns that may be traits.
        named: Whether the user names these columns.
    """
    raters = rows.drop_duplicates(rater).set_index(rater)
    constant = [n for n in candidates if named or (rows.groupby(rater)[n].nunique(dropna=False) <= 1).mean() > 0.95]
    columns: dict[str, pd.Series] = {}
    for name, members in _families(raters, constant):
        columns[name] = _merged(rows, name, members) if len(members) > 1 else rows[members[0]]
    traits = RaterTraits({}, {}, [])
    for name, column in columns.items():
        inconsistent = column.groupby(rows[rater]).nunique() > 1
        values = column[~rows[rater].duplicated() & ~rows[rater].map(inconsistent)]
        known = values[~values.map(lambda v: bool(UNKNOWN.fullmatch(v)))]
        if known.nunique() < 2 or known.is_unique:  # no information, or a second id of each rater
            continue
        groups = _groups(name, known)
        if isinstance(groups, str):
            traits.lines.append(f"  no trait   {name}: {groups}")
            continue
        sizes, others = groups.pop("counts"), groups.pop("others")
        unknown = len(raters) - sum(sizes.values()) - sum(others.values())
        traits.lines.append(
            f"  trait      {name}: {_sizes_in_words(sizes)}{f'; unknown ({unknown:,})' if unknown else ''}"
        )
        if others:
            note = f"of fewer than {FEWEST_RATERS} raters, so unknown: {_sizes_in_words(others)}"
            traits.lines.append(f"             {note}")
        if inconsistent.any():
            examples = some([str(rater_id) for rater_id in inconsistent[inconsistent].index], 3)
            traits.lines.append(
                f"             {number_of(int(inconsistent.sum()), 'rater')} in two groups, so unknown: {examples}"
            )
        traits.columns[name] = column
        traits.categories[name] = {"column": name, **groups, "ignored": ["*"]}
    return traits


def _sizes_in_words(sizes: dict[str, int]) -> str:
    parts = [f"{group} ({count:,})" for group, count in sizes.items()]
    return some(parts, _MOST_GROUPS)


def _families(raters: "pd.DataFrame", names: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """Yields each column; yes-or-no columns with a common beginning (race_white, race_black, ...) together."""
    flags = [n for n in names if set(raters[n].str.lower()) <= {"true", "false", "1", "0", "1.0", "0.0", ""}]
    done: set[str] = set()
    for name in names:
        stem = name.rpartition("_")[0]
        while name in flags and stem and sum(flag.startswith(f"{stem}_") for flag in flags) < SCALE:
            stem = stem.rpartition("_")[0]
        family = [flag for flag in flags if stem and flag.startswith(f"{stem}_")] if name in flags else []
        if name in done:
            continue
        if len(family) >= SCALE and stem.lower() not in ("annotator", "rater", "worker"):
            done.update(family)
            yield stem, family
        else:
            yield name, [name]


def _merged(rows: "pd.DataFrame", stem: str, members: list[str]) -> "pd.Series":
    """Merges yes-or-no columns into one column; a cell is `several` if more than one is yes."""
    yes = rows[members].apply(lambda column: column.str.lower().isin(("true", "1", "1.0")))
    chosen = yes.to_numpy()
    names = np.array([name.removeprefix(f"{stem}_") for name in members])
    count = chosen.sum(axis=1)
    merged = np.where(count > 1, "several", np.where(count == 1, names[chosen.argmax(axis=1)], ""))
    import pandas as pd

    return pd.Series(merged, index=rows.index)


def _groups(name: str, values: "pd.Series") -> dict[str, Any] | str:
    """The groups of a trait, and those that are too small, with their sizes; or why the trait is left out."""
    counts = values.value_counts()
    is_number = values.map(lambda value: bool(re.fullmatch(r"\d+(\.\d+)?", value)))
    if "age" in name.lower() and len(counts) > _MOST_AGES and is_number.mean() > 0.9:
        ages = values[is_number].astype(float)
        sizes = {group: int(ages.between(low, high).sum()) for group, (low, high) in _AGES.items()}
        large = {group: size for group, size in sizes.items() if size >= FEWEST_RATERS}
        groups: dict[str, Any] = {group: {"between": list(_AGES[group])} for group in large}
    else:
        sizes = {str(value): int(count) for value, count in _in_order(counts).items()}
        large = {group: size for group, size in sizes.items() if size >= FEWEST_RATERS}
        groups = {group: [group] for group in large}
    if len(large) < 2 and len(counts) > _MOST_GROUPS and is_number.mean() > 0.9:
        return f"{len(counts)} numbers; they are divided where the column's name says age, else declare groups of them"
    if len(large) < 2:
        examples = f": {_sizes_in_words(dict(list(sizes.items())[:4]))}" if 1 < len(sizes) <= _MOST_GROUPS else ""
        return f"{number_of(len(sizes), 'value')}, fewer than two of {FEWEST_RATERS} raters or more{examples}"
    if len(large) > _MOST_GROUPS:
        return f"{len(sizes)} values, too many for groups; declare groups of them (docs/annotators.md)"
    return {"groups": groups, "counts": large, "others": {g: n for g, n in sizes.items() if g not in large and n}}


def _in_order(counts: "pd.Series[int]") -> "pd.Series[int]":
    """Sorts groups by size, or by their numbers (ages, years) if all have one, with `<18` before `18-24`."""
    numbers = {value: int(digits[0]) for value in counts.index if (digits := re.findall(r"\d+", value))}
    if len(numbers) < len(counts):
        return counts
    return counts[sorted(numbers, key=lambda value: (numbers[value], value[:1].isdigit()))]
