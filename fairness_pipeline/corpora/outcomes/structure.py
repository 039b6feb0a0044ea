"""Guesses the roles of a table's columns: first by structure, then by words in their values, last by their names.

The item is the finest column whose values meet at least 80% of the groups. Guessing by name took a tool's `doc_id`, a
row number, for the item. A role that two columns could have is asked for, and never decided silently.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from fairness_pipeline.corpora.outcomes.columns import MOSTLY, Column, Columns
from fairness_pipeline.corpora.outcomes.specification import Kind, Outcome, key_of
from fairness_pipeline.foundation.paths import data_file
from fairness_pipeline.foundation.plain_text import number_of, some
from fairness_pipeline.statistics.clusters import FEWEST_TO_TELL

ROLES = ("item", "group", "cluster", "name", "draw", "condition", "label", "asked", "answer", "ignore")
"""The roles of columns, besides outcomes."""
NONE = "none"
"""Instead of a column: no column has this role."""
GROUP_WORDS = "lexicon/group_words.txt"

_NAMES = {
    "group": r"group|race|gender|sex|ethnicit|religion|nationality|age_group|identity|demographic|orientation|disab",
    "item": r"item|question|vignette|template|scenario|prompt_id|ranking|stem|task",
    "draw": r"draw|repeat|repetition|seed|epoch|sample|generation|trial|iteration|attempt|response_number|replicate",
    "condition": r"^prompt$|condition|format|prompt_style|model|setting|version|system|temperature|variant|arm",
    "name": r"name|persona|person",
    "label": r"label|gold|truth|target|qualified|reference_answer",
    "outcome": r"score|outcome|decision|logit|prob|rating|agree|select|hired|advance|accept|rank|place|toxicity|"
    r"sentiment|correct|refus|response|answer|result|length|words|approved",
}
"""Parts of column names that support a guess."""
_MOST_GROUPS = 60
_MEETS = 0.8
"""The share of the groups that an item's values meet."""
_LONG = 40
"""Columns with more characters per value, on average, hold texts."""
_REPEATED = 1.5
"""With more rows of an item and a group, on average, the user is asked what they are."""
_CODES = {-999.0, -99.0, 999.0, 9999.0}
"""Numbers that often stand for a missing one."""
_LOOKED_AT = 1_000_000
"""The number of rows of a larger table that are examined."""
_DEBRIS = re.compile(r"(?:</?s>|<unk>|<pad>|<eos>|<bos>|<\|[^|<>]{1,30}\|>|\[/?INST\]|<end_of_turn>)\s*$")
_ENDS = re.compile(r"[.!?\"'”’)\]}:;。！？…`*]\s*$")
_MOST_OUTCOMES = 3
"""If more columns could be outcomes, the user is asked."""


@dataclass(frozen=True)
class Guess:
    """The guessed roles of a table's columns.

    Attributes:
        roles: Columns by role.
        outcomes: Outcomes by name.
        unsure: By role, the alternatives in words.
        notes: Further remarks on the table, one sentence each.
    """

    roles: Mapping[str, tuple[str, ...]]
    outcomes: Mapping[str, Outcome]
    unsure: Mapping[str, str]
    notes: Sequence[str]

    def one(self, role: str) -> str | None:
        """The column with a role; None if there is none."""
        return next(iter(self.roles.get(role, ())), None)


@dataclass
class _Draft:
    """The guess so far."""

    columns: Columns
    given: Mapping[str, tuple[str, ...]]
    roles: dict[str, tuple[str, ...]] = field(default_factory=dict)
    unsure: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def taken(self) -> set[str]:
        """The columns that have a role."""
        return {name for names in (*self.roles.values(), self.given.get("outcome", ())) for name in names}

    def free(self) -> list[Column]:
        """Columns without a role that are neither constant nor row numbers."""
        taken = self.taken()
        return [
            column
            for column in self.columns
            if column.name not in taken and column.distinct > 1 and not column.row_number
        ]


def guess(table: pa.Table, given: Mapping[str, Sequence[str]] | None = None) -> Guess:
    """Guesses the roles of a table's columns. The user names some, `given` by role; `outcome` is among them."""
    known = {role: tuple(names) for role, names in (given or {}).items() if names}
    draft = _Draft(Columns(table.slice(0, _LOOKED_AT)), known)
    draft.roles.update({role: () if names == (NONE,) else names for role, names in known.items() if role != "outcome"})
    draft.notes += _plain_facts(draft)
    _guess_groups(draft)
    _guess_name(draft)
    _guess_item(draft)
    _guess_cluster(draft)
    _ask_about_crossed(draft)
    outcomes = _guess_outcomes(draft)
    _ask_about_repeats(draft)
    _guess_texts(draft)
    used = {outcome.column for outcome in outcomes.values()} | draft.taken()
    if unused := [column.name for column in draft.columns if column.name not in used and column.distinct > 1]:
        draft.notes.append(f"not used: {some(unused, 8)}")
    return Guess(draft.roles, outcomes, draft.unsure, draft.notes)


def _plain_facts(draft: _Draft) -> Iterator[str]:
    constant = [column.name for column in draft.columns if column.distinct <= 1]
    if constant:
        yield f"constant: {some(constant, 6)}"
    row_numbers = [column.name for column in draft.columns if column.row_number and column.length <= _LONG]
    if row_numbers:
        yield f"row numbers, another value in each row: {some(row_numbers, 6)}"
    for column in draft.columns:
        if column.distinct == 1 and _name_suggests(column, "group"):
            yield f"{column.name} has one value, '{column.values[0]}': nothing to compare"
        if column.missing and column.distinct:
            yield f"missing: {column.name} in {number_of(column.missing, 'row')}"
        if column.distinct <= _MOST_GROUPS and column.numbers is None:
            if alike := column.alike:
                yield f"{column.name}: values that differ only in case or spaces: {alike}"
        elif (
            column.numbers is not None
            and not column.row_number
            and (codes := sorted({*column.numbers.tolist()} & _CODES))
        ):
            yield f"{column.name} has the value {codes[0]:g}: if that is a code for a missing one, leave the cell empty"
    words = group_words()
    wide = [column.name for column in draft.columns if column.measured and column.name.lower() in words]
    if len(wide) > 1:
        yield f"columns named as groups: {some(wide)}; make a row of each, with the group in a column"


def _name_suggests(column: Column, role: str) -> bool:
    """Whether a column's name suggests a role."""
    return re.search(_NAMES[role], column.name.lower()) is not None


def group_words() -> frozenset[str]:
    """Words that name groups of people."""
    lines = data_file(GROUP_WORDS).read_text(encoding="utf-8").splitlines()
    return frozenset(word for line in lines if not line.startswith("#") for word in line.split())


def _guess_groups(draft: _Draft) -> None:
    if "group" in draft.roles:
        return
    words = group_words()
    likely = [
        column
        for column in draft.free()
        if column.distinct <= _MOST_GROUPS and column.length <= _LONG and not column.measured
    ]
    naming = [
        column
        for column in likely
        if _share_of_groups(column, words) >= (1.0 if _name_suggests(column, "condition") else 0.5)
    ]
    # A column that another one repeats (`gender` beside `sex`) is the same attribute.
    kept: list[Column] = []
    for column in naming:
        if not any(
            draft.columns.nested(column.name, kept_column.name) or draft.columns.nested(kept_column.name, column.name)
            for kept_column in kept
        ):
            kept.append(column)
    if not kept:
        kept = [column for column in likely if _name_suggests(column, "group") and column.numbers is None][:2]
    if kept:
        draft.roles["group"] = tuple(column.name for column in kept[:3])
        return
    textual = [column for column in likely if column.numbers is None]
    if textual:
        draft.roles["group"] = (textual[0].name,)
        draft.unsure["group"] = (
            f"no value of a column names a group that is known; could be {some([column.name for column in textual], 6)}"
        )
    else:
        draft.unsure["group"] = "no column has few values that could be groups"


def _share_of_groups(column: Column, words: frozenset[str]) -> float:
    matches = [any(word in words for word in re.findall(r"[\w-]+", text.lower())) for text in column.values]
    return sum(matches) / len(matches) if matches else 0.0


def _guess_name(draft: _Draft) -> None:
    """Guesses the column of names: each value is of one group, a group has several, and they meet items."""
    groups = draft.roles.get("group", ())
    if "name" in draft.roles or len(groups) != 1:
        return
    count = draft.columns.combinations(*groups)
    for column in draft.free():
        repeated = column.distinct * 2 <= len(column.code)
        likely = column.numbers is None and column.length <= _LONG and column.distinct >= 2 * count and repeated
        if "name" in draft.roles or not likely or not draft.columns.nested(column.name, *groups):
            continue
        others = [other for other in draft.free() if other.name != column.name and not other.measured]
        if _name_suggests(column, "name") or any(
            draft.columns.meets(other.name, (column.name,)) >= _MEETS for other in others
        ):
            draft.roles["name"] = (column.name,)


def _guess_item(draft: _Draft) -> None:
    groups = draft.roles.get("group", ())
    if not groups:
        return
    candidates = [
        column
        for column in draft.free()
        if not column.measured
        and not draft.columns.nested(column.name, *groups)
        and draft.columns.meets(column.name, groups) >= _MEETS
    ]
    candidates = [column for column in candidates if not _is_outcome(draft, column)]
    for role in ("condition", "draw"):
        if role not in draft.roles:
            _guess_crossed(draft, role, candidates)
    remaining = [column for column in candidates if column.name not in draft.taken()]
    if "item" in draft.roles:
        return
    if not remaining:
        draft.notes.append("no column meets the groups within its values: not paired, so only rates can be shown")
        return
    finest = max(remaining, key=lambda column: column.distinct)
    draft.roles["item"] = (finest.name,)
    if finest.distinct < FEWEST_TO_TELL:
        draft.unsure["item"] = f"{finest.name} has {number_of(finest.distinct, 'value')}: too few to tell anything"


def _ask_about_crossed(draft: _Draft) -> None:
    """Asks about columns without a role that vary within an item and a group; they would be pooled silently."""
    item, groups = next(iter(draft.roles.get("item", ())), None), draft.roles.get("group", ())
    if item is None or not groups or draft.roles.get("condition") == ():
        return
    crossed = [
        column.name
        for column in draft.free()
        if not column.measured
        and column.distinct <= _MOST_GROUPS
        and not _is_outcome(draft, column)
        and not draft.columns.nested(item, column.name)
        and not draft.columns.nested(column.name, *groups)
        and min(draft.columns.meets(column.name, groups), draft.columns.meets(column.name, (item,))) >= _MEETS
    ]
    if crossed:
        columns = some(crossed, 6)
        draft.unsure["condition"] = (
            f"{columns}: varies within an item and a group; a condition, a draw, part of the item, or to be ignored?"
        )


def _ask_about_repeats(draft: _Draft) -> None:
    """Asks whether rows of the same item and group are repeated draws, or cases that only share the item's value."""
    item = draft.roles.get("item", ())
    if not item or "draw" in draft.roles or not draft.roles.get("group"):
        return
    trial = [name for role in ("item", "group", "name", "condition") for name in draft.roles.get(role, ())]
    rows, trials = len(draft.columns[item[0]].code), draft.columns.combinations(*trial)
    if rows > _REPEATED * trials and "condition" not in draft.unsure:
        draft.unsure["draw"] = (
            f"{rows / trials:.3g} rows for a value of {item[0]} and a group: repeated draws (--column draw={NONE}), or "
            f"different cases, which share no item (--column item={NONE})?"
        )


def _guess_crossed(draft: _Draft, role: str, candidates: Sequence[Column]) -> None:
    """A condition or draw by its name: it crosses what is left, and is not the finest column."""
    named = [
        column
        for column in candidates
        if column.name not in draft.taken()
        and _name_suggests(column, role)
        and not (_name_suggests(column, "item") and role == "condition")
        and any(
            other is not column
            and other.name not in draft.taken()
            and draft.columns.meets(other.name, (column.name,)) >= _MEETS
            for other in candidates
        )
    ]
    if role == "draw":
        named = [column for column in named if column.whole] or named
    if named:
        draft.roles[role] = (
            min(named, key=lambda column: column.distinct).name if role == "condition" else named[0].name,
        )


def _guess_cluster(draft: _Draft) -> None:
    item = next(iter(draft.roles.get("item", ())), None)
    if item is None or "cluster" in draft.roles:
        return
    items = draft.columns[item].distinct
    coarser = [
        column
        for column in draft.free()
        if column.distinct < items
        and not column.measured
        and column.length <= 4 * _LONG
        and draft.columns.nested(item, column.name)
    ]
    coarser = [column for column in coarser if not _name_suggests(column, "label")]
    many = [column for column in coarser if column.distinct >= FEWEST_TO_TELL]
    few = [column for column in coarser if column.distinct < FEWEST_TO_TELL]
    if many:
        coarsest = min(many, key=lambda column: column.distinct)
        draft.roles["cluster"] = (coarsest.name,)
    if few:
        names = ", ".join(f"{column.name} ({column.distinct})" for column in few)
        draft.notes.append(f"items also share {names}: as clusters these would be too few to tell anything")


def _is_outcome(draft: _Draft, column: Column) -> bool:
    """Whether a column looks like an outcome: by its name, or by numbers or yes and no that no design balances."""
    if _name_suggests(column, "draw") or _name_suggests(column, "item"):
        return False
    if _name_suggests(column, "outcome") and column.distinct <= 12:
        return True
    values = {text.strip().lower() for text in column.values}
    return ((values <= {*_YES_NO} or column.numbers is not None) and not column.even) or _is_rank(draft, column)


def _is_rank(draft: _Draft, column: Column) -> bool:
    """Whether its values are places: from 1 on, and each once within an item, a condition and a draw."""
    item = draft.roles.get("item", ())
    if not item or not column.whole or column.numbers is None or column.numbers.min() != 1:
        return False
    trials = (*item, *draft.roles.get("condition", ()), *draft.roles.get("draw", ()))
    return column.distinct <= _MOST_GROUPS and draft.columns.combinations(*trials, column.name) == len(column.code)


def _is_yes_or_no(column: Column) -> bool:
    """Whether nearly all rows say yes or no; the reader names the others by line."""
    answers = np.array([text.strip().lower() in _YES_NO for text in column.texts] + [True])
    return bool(answers[column.code].mean() >= MOSTLY)


_YES_NO = ("0", "1", "0.0", "1.0", "true", "false", "yes", "no", "y", "n")


def _guess_outcomes(draft: _Draft) -> dict[str, Outcome]:
    if given := draft.given.get("outcome"):
        return _with_kinds(draft, [draft.columns[name] for name in given])
    design = [*draft.roles.get("group", ()), *draft.roles.get("item", ())]
    numeric = [
        column
        for column in draft.columns
        if column.name not in draft.taken()
        and column.distinct > 1
        and (column.measured or not column.row_number)
        and (column.numbers is not None or _is_yes_or_no(column) or column.mostly_numbers or _is_decision(column))
        and not any(
            draft.columns.nested(design_column, column.name)
            for design_column in design
            if draft.columns[design_column].distinct > 1
        )
    ]
    labels = [column for column in numeric if _name_suggests(column, "label") and not _name_suggests(column, "outcome")]
    candidates = [column for column in numeric if column not in labels] or labels
    if labels and candidates is not labels and "label" not in draft.roles:
        draft.roles["label"] = (labels[0].name,)
    if len(candidates) > _MOST_OUTCOMES:
        likely = [column for column in candidates if _name_suggests(column, "outcome")]
        draft.unsure["outcome"] = (
            f"{len(candidates)} columns could be: {some([column.name for column in candidates], 8)}"
        )
        candidates = (likely or candidates)[:_MOST_OUTCOMES]
    if not candidates:
        texts = [column for column in draft.free() if column.length > _LONG and column.distinct > len(column.code) / 50]
        likely = [column for column in draft.free() if _name_suggests(column, "outcome")]
        candidates = [column for column in texts if column in likely] or likely[:1] or texts[-1:]
        if not candidates:
            draft.unsure["outcome"] = "no column varies within an item and a group"
    return _with_kinds(draft, candidates)


def _is_decision(column: Column) -> bool:
    """Whether its name suggests an outcome and its values are a few words, one of which counts as yes."""
    return (
        _name_suggests(column, "outcome")
        and column.numbers is None
        and column.distinct <= 12
        and column.length <= _LONG
    )


def _with_kinds(draft: _Draft, columns: Sequence[Column]) -> dict[str, Outcome]:
    """The columns as outcomes of the kind that their values have."""
    outcomes = {}
    for column in columns:
        kind = _kind(draft, column)
        few = column.distinct <= _MOST_GROUPS and column.length <= _LONG
        if kind == "signed" or (kind == "text" and few):
            values = some([f"'{value}'" for value in column.values], 6)
            draft.unsure["outcome"] = f"{column.name} has the values {values}: yes_no with one that counts, or {kind}?"
        outcomes[key_of(column.name)] = Outcome(kind=kind, column=column.name)
    return outcomes


def _kind(draft: _Draft, column: Column) -> Kind:
    if _is_yes_or_no(column):
        return "yes_no"
    if column.numbers is None:
        return "number" if column.mostly_numbers else "text"
    values = set(column.numbers.tolist())
    if values <= {-1.0, 0.0, 1.0}:
        return "signed"
    if _is_rank(draft, column):
        return "rank"
    return "number"


def _guess_texts(draft: _Draft) -> None:
    """Guesses what was asked and answered; notes debris at the ends of texts, and texts that were cut off."""
    texts = [
        column for column in draft.columns if column.numbers is None and column.length > _LONG and column.distinct > 20
    ]
    asked = [column for column in texts if re.search(r"prompt|input|question|context|asked", column.name.lower())]
    answers = [
        column
        for column in texts
        if re.search(r"answer|response|output|generation|text|completion", column.name.lower())
    ]
    for role, candidates in (("asked", asked), ("answer", answers)):
        names = [column.name for column in candidates if column.name not in draft.taken()]
        if role not in draft.roles and names:
            draft.roles[role] = (names[0],)
    for column in texts:
        sample = [column.texts[code] for code in column.code[:5000] if code >= 0]
        if (debris := sum(_DEBRIS.search(text) is not None for text in sample)) > 0.01 * len(sample):
            share = f"{100 * debris / len(sample):.0f}%"
            draft.notes.append(
                f"debris: {share} of the texts in {column.name} end in a mark such as </s>; strip it first"
            )
        words = np.array([len(text.split()) for text in sample])
        longest = words >= 0.9 * np.quantile(words, 0.99)
        open_end = np.array([_ENDS.search(text) is None for text in sample])
        if column.name in draft.roles.get("answer", ()) and longest.any() and (open_end & longest).mean() > 0.02:
            share = f"{100 * (open_end & longest).mean():.0f}%"
            draft.notes.append(
                f"truncated: {share} of the texts in {column.name} are among the longest and end in the middle"
            )


def as_document(guessed: Guess, table: pa.Table) -> dict[str, Any]:
    """The guess as the contents of a file of `data/tables`, without the key `file`."""
    document: dict[str, Any] = {
        role: guessed.one(role)
        for role in ("item", "cluster", "name", "draw", "condition", "asked", "answer")
        if guessed.one(role)
    }
    document["group"] = list(guessed.roles.get("group", ()))
    if column := guessed.one("condition"):
        keys: dict[str, str] = {}
        for value in Column(column, table[column]).values:
            key = key_of(value)
            keys[key if key not in keys else f"{key}-{len(keys)}"] = value
        document["conditions"] = keys
    label = guessed.one("label")
    document["outcomes"] = {
        name: outcome.model_dump(exclude_unset=True, mode="json")
        | ({"label": label} if label and outcome.kind == "yes_no" else {})
        for name, outcome in guessed.outcomes.items()
    }
    return document
