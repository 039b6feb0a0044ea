"""Finds the columns of a file of labels that divide its raters into groups, by structure: they say the same in all rows
of a rater."""

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
"""Values of a column of ages, from which on they are divided; groups."""
_AGES = {"under 30": (0, 29.99), "30 to 44": (30, 44.99), "45 and over": (45, 120)}


class RaterTraits(NamedTuple):
    """What divides raters into groups.

    Attributes:
        columns: Of each trait the cells of all rows.
        categories: The section `categories` of a corpus.
        lines: What was taken, and what was left out and why, a line each.
    """

    columns: dict[str, "pd.Series"]
    categories: dict[str, dict[str, Any]]
    lines: list[str]


def find_traits(rows: "pd.DataFrame", rater: str, wanted: Sequence[str], *, said: bool) -> RaterTraits:
    """The columns that divide raters.

    Args:
        rows: A row for each label, all text.
        rater: The column of raters.
        wanted: The columns that may be traits.
        said: Whether the user names them.
    """
    people = rows.drop_duplicates(rater).set_index(rater)
    same = [n for n in wanted if said or (rows.groupby(rater)[n].nunique(dropna=False) <= 1).mean() > 0.95]
    columns: dict[str, pd.Series] = {}
    for name, members in _families(people, same):
        columns[name] = _merged(rows, name, members) if len(members) > 1 else rows[members[0]]
    found = RaterTraits({}, {}, [])
    for name, column in columns.items():
        in_two = column.groupby(rows[rater]).nunique() > 1
        of_people = column[~rows[rater].duplicated() & ~rows[rater].map(in_two)]
        known = of_people[~of_people.map(lambda v: bool(UNKNOWN.fullmatch(v)))]
        if known.nunique() < 2 or known.is_unique:  # says nothing, or is another name of each rater
            continue
        groups = _groups(name, known)
        if isinstance(groups, str):
            found.lines.append(f"  no trait   {name}: {groups}")
            continue
        sizes, others = groups.pop("counts"), groups.pop("others")
        unknown = len(people) - sum(sizes.values()) - sum(others.values())
        found.lines.append(f"  trait      {name}: {_told(sizes)}{f'; unknown ({unknown:,})' if unknown else ''}")
        if others:
            few = f"of fewer than {FEWEST_RATERS} raters, so unknown: {_told(others)}"
            found.lines.append(f"             {few}")
        if in_two.any():
            names = some([str(own) for own in in_two[in_two].index], 3)
            found.lines.append(
                f"             {number_of(int(in_two.sum()), 'rater')} in two groups, so unknown: {names}"
            )
        found.columns[name] = column
        found.categories[name] = {"column": name, **groups, "ignored": ["*"]}
    return found


def _told(sizes: dict[str, int]) -> str:
    shown = [f"{group} ({count:,})" for group, count in sizes.items()]
    return some(shown, _MOST_GROUPS)


def _families(people: "pd.DataFrame", names: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """Columns by themselves; yes-or-no columns of one beginning (race_white, race_black, ...) together."""
    flags = [n for n in names if set(people[n].str.lower()) <= {"true", "false", "1", "0", "1.0", "0.0", ""}]
    done: set[str] = set()
    for name in names:
        stem = name.rpartition("_")[0]
        while name in flags and stem and sum(other.startswith(f"{stem}_") for other in flags) < SCALE:
            stem = stem.rpartition("_")[0]
        family = [other for other in flags if stem and other.startswith(f"{stem}_")] if name in flags else []
        if name in done:
            continue
        if len(family) >= SCALE and stem.lower() not in ("annotator", "rater", "worker"):
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


def _groups(name: str, people: "pd.Series") -> dict[str, Any] | str:
    """The groups of a trait with their numbers of raters, and those of too few; or why it has no two groups."""
    counts = people.value_counts()
    numbers = people.map(lambda value: bool(re.fullmatch(r"\d+(\.\d+)?", value)))
    if "age" in name.lower() and len(counts) > _MOST_AGES and numbers.mean() > 0.9:
        ages = people[numbers].astype(float)
        sizes = {group: int(ages.between(low, high).sum()) for group, (low, high) in _AGES.items()}
        large = {group: size for group, size in sizes.items() if size >= FEWEST_RATERS}
        groups: dict[str, Any] = {group: {"between": list(_AGES[group])} for group in large}
    else:
        sizes = {str(value): int(count) for value, count in _in_order(counts).items()}
        large = {group: size for group, size in sizes.items() if size >= FEWEST_RATERS}
        groups = {group: [group] for group in large}
    if len(large) < 2 and len(counts) > _MOST_GROUPS and numbers.mean() > 0.9:
        return f"{len(counts)} numbers; they are divided where the column's name says age, else declare groups of them"
    if len(large) < 2:
        shown = f": {_told(dict(list(sizes.items())[:4]))}" if 1 < len(sizes) <= _MOST_GROUPS else ""
        return f"{number_of(len(sizes), 'value')}, fewer than two of {FEWEST_RATERS} raters or more{shown}"
    if len(large) > _MOST_GROUPS:
        return f"{len(sizes)} values, too many for groups; declare groups of them (docs/annotators.md)"
    return {"groups": groups, "counts": large, "others": {g: n for g, n in sizes.items() if g not in large and n}}


def _in_order(counts: "pd.Series[int]") -> "pd.Series[int]":
    """The largest group first; groups that all hold a number (ages, years) by it, and `<18` before `18-24`."""
    numbers = {value: int(found[0]) for value in counts.index if (found := re.findall(r"\d+", value))}
    if len(numbers) < len(counts):
        return counts
    return counts[sorted(numbers, key=lambda value: (numbers[value], value[:1].isdigit()))]
