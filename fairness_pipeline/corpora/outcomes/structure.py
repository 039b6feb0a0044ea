"""Guesses what the columns of a table are: by structure first, by words in their values second, by their names last.

The item is the finest column whose values meet at least 80% of the groups. Guessing by name took a tool's `doc_id`, a
row number, for it. What two columns could be alike is asked, and never decided silently.
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
"""What a column can be, besides an outcome."""
NONE = "none"
"""In place of a column: there is none with this role."""
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
"""Parts of names that make a guess sure."""
_MOST_GROUPS = 60
_MEETS = 0.8
"""The share of the groups that an item's values meet."""
_LONG = 40
"""Characters of a text, on average."""
_REPEATED = 1.5
"""Rows of an item and a group, on average, from which on it is asked what they are."""
_CODES = {-999.0, -99.0, 999.0, 9999.0}
"""Numbers that often stand for a missing one."""
_LOOKED_AT = 1_000_000
"""Rows of a larger table that are looked at."""
_DEBRIS = re.compile(r"(?:</?s>|<unk>|<pad>|<eos>|<bos>|<\|[^|<>]{1,30}\|>|\[/?INST\]|<end_of_turn>)\s*$")
_ENDS = re.compile(r"[.!?\"'”’)\]}:;。！？…`*]\s*$")
_MOST_OUTCOMES = 3
"""More columns that could be outcomes are asked about."""


@dataclass(frozen=True)
class Guess:
    """What the columns of a table seem to be.

    Attributes:
        roles: Columns by role.
        outcomes: By name.
        unsure: By role what else it could be, in words.
        notes: What else is worth knowing of the table, a sentence each.
    """

    roles: Mapping[str, tuple[str, ...]]
    outcomes: Mapping[str, Outcome]
    unsure: Mapping[str, str]
    notes: Sequence[str]

    def one(self, role: str) -> str | None:
        """The column of a role that one column has."""
        return next(iter(self.roles.get(role, ())), None)


@dataclass
class _Doctor:
    """What is guessed so far."""

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
        return [own for own in self.columns if own.name not in taken and own.distinct > 1 and not own.row_number]


def guess(table: pa.Table, given: Mapping[str, Sequence[str]] | None = None) -> Guess:
    """What the columns of a table seem to be.

    Args:
        table: As `table_files.read_table` reads it.
        given: Columns by role that the user names; `outcome` among them.
    """
    known = {role: tuple(names) for role, names in (given or {}).items() if names}
    doctor = _Doctor(Columns(table.slice(0, _LOOKED_AT)), known)
    doctor.roles.update({role: () if names == (NONE,) else names for role, names in known.items() if role != "outcome"})
    doctor.notes += _plain_facts(doctor)
    _guess_groups(doctor)
    _guess_name(doctor)
    _guess_item(doctor)
    _guess_cluster(doctor)
    _ask_about_crossed(doctor)
    outcomes = _guess_outcomes(doctor)
    _ask_about_repeats(doctor)
    _guess_texts(doctor)
    used = {own.column for own in outcomes.values()} | doctor.taken()
    if unused := [own.name for own in doctor.columns if own.name not in used and own.distinct > 1]:
        doctor.notes.append(f"not used: {some(unused, 8)}")
    return Guess(doctor.roles, outcomes, doctor.unsure, doctor.notes)


def _plain_facts(doctor: _Doctor) -> Iterator[str]:
    constant = [own.name for own in doctor.columns if own.distinct <= 1]
    if constant:
        yield f"constant: {some(constant, 6)}"
    numbers = [own.name for own in doctor.columns if own.row_number and own.length <= _LONG]
    if numbers:
        yield f"row numbers, another value in each row: {some(numbers, 6)}"
    for own in doctor.columns:
        if own.distinct == 1 and _called(own, "group"):
            yield f"{own.name} has one value, '{own.values[0]}': nothing to compare"
        if own.missing and own.distinct:
            yield f"missing: {own.name} in {number_of(own.missing, 'row')}"
        if own.distinct <= _MOST_GROUPS and own.numbers is None:
            if alike := own.alike:
                yield f"{own.name}: values that differ only in case or spaces: {alike}"
        elif own.numbers is not None and not own.row_number and (codes := sorted({*own.numbers.tolist()} & _CODES)):
            yield f"{own.name} has the value {codes[0]:g}: if that is a code for a missing one, leave the cell empty"
    words = group_words()
    wide = [own.name for own in doctor.columns if own.measured and own.name.lower() in words]
    if len(wide) > 1:
        yield f"columns named as groups: {some(wide)}; make a row of each, with the group in a column"


def _called(column: Column, role: str) -> bool:
    """Whether a column's name is one of those of a role."""
    return re.search(_NAMES[role], column.name.lower()) is not None


def group_words() -> frozenset[str]:
    """Words that name groups of people."""
    lines = data_file(GROUP_WORDS).read_text(encoding="utf-8").splitlines()
    return frozenset(word for line in lines if not line.startswith("#") for word in line.split())


def _guess_groups(doctor: _Doctor) -> None:
    if "group" in doctor.roles:
        return
    words = group_words()
    likely = [own for own in doctor.free() if own.distinct <= _MOST_GROUPS and own.length <= _LONG and not own.measured]
    told = [own for own in likely if _share_of_groups(own, words) >= (1.0 if _called(own, "condition") else 0.5)]
    # A column that another one repeats (`gender` beside `sex`) is the same attribute.
    kept: list[Column] = []
    for own in told:
        if not any(
            doctor.columns.nested(own.name, other.name) or doctor.columns.nested(other.name, own.name) for other in kept
        ):
            kept.append(own)
    if not kept:
        kept = [own for own in likely if _called(own, "group") and own.numbers is None][:2]
    if kept:
        doctor.roles["group"] = tuple(own.name for own in kept[:3])
        return
    crossing = [own for own in likely if own.numbers is None]
    if crossing:
        doctor.roles["group"] = (crossing[0].name,)
        doctor.unsure["group"] = (
            f"no value of a column names a group that is known; could be {some([own.name for own in crossing], 6)}"
        )
    else:
        doctor.unsure["group"] = "no column has few values that could be groups"


def _share_of_groups(column: Column, words: frozenset[str]) -> float:
    named = [any(word in words for word in re.findall(r"[\w-]+", text.lower())) for text in column.values]
    return sum(named) / len(named) if named else 0.0


def _guess_name(doctor: _Doctor) -> None:
    """A column with several values a group, each of one group, that meet items."""
    groups = doctor.roles.get("group", ())
    if "name" in doctor.roles or len(groups) != 1:
        return
    count = doctor.columns.combinations(*groups)
    for own in doctor.free():
        repeated = own.distinct * 2 <= len(own.code)
        likely = own.numbers is None and own.length <= _LONG and own.distinct >= 2 * count and repeated
        if "name" in doctor.roles or not likely or not doctor.columns.nested(own.name, *groups):
            continue
        others = [each for each in doctor.free() if each.name != own.name and not each.measured]
        if _called(own, "name") or any(doctor.columns.meets(each.name, (own.name,)) >= _MEETS for each in others):
            doctor.roles["name"] = (own.name,)


def _guess_item(doctor: _Doctor) -> None:
    groups = doctor.roles.get("group", ())
    if not groups:
        return
    candidates = [
        own
        for own in doctor.free()
        if not own.measured
        and not doctor.columns.nested(own.name, *groups)
        and doctor.columns.meets(own.name, groups) >= _MEETS
    ]
    candidates = [own for own in candidates if not _is_outcome(doctor, own)]
    for role in ("condition", "draw"):
        if role not in doctor.roles:
            _guess_crossed(doctor, role, candidates)
    left = [own for own in candidates if own.name not in doctor.taken()]
    if "item" in doctor.roles:
        return
    if not left:
        doctor.notes.append("no column meets the groups within its values: not paired, so only rates can be shown")
        return
    finest = max(left, key=lambda own: own.distinct)
    doctor.roles["item"] = (finest.name,)
    if finest.distinct < FEWEST_TO_TELL:
        doctor.unsure["item"] = f"{finest.name} has {number_of(finest.distinct, 'value')}: too few to tell anything"


def _ask_about_crossed(doctor: _Doctor) -> None:
    """A column that varies within an item and a group, and has no role, would be pooled silently."""
    item, groups = next(iter(doctor.roles.get("item", ())), None), doctor.roles.get("group", ())
    if item is None or not groups or doctor.roles.get("condition") == ():
        return
    crossed = [
        own.name
        for own in doctor.free()
        if not own.measured
        and own.distinct <= _MOST_GROUPS
        and not _is_outcome(doctor, own)
        and not doctor.columns.nested(item, own.name)
        and not doctor.columns.nested(own.name, *groups)
        and min(doctor.columns.meets(own.name, groups), doctor.columns.meets(own.name, (item,))) >= _MEETS
    ]
    if crossed:
        columns = some(crossed, 6)
        doctor.unsure["condition"] = (
            f"{columns}: varies within an item and a group; a condition, a draw, part of the item, or to be ignored?"
        )


def _ask_about_repeats(doctor: _Doctor) -> None:
    """Several rows of an item and a group are repeated draws, or different cases that only share the item's value."""
    item = doctor.roles.get("item", ())
    if not item or "draw" in doctor.roles or not doctor.roles.get("group"):
        return
    trial = [name for role in ("item", "group", "name", "condition") for name in doctor.roles.get(role, ())]
    rows, trials = len(doctor.columns[item[0]].code), doctor.columns.combinations(*trial)
    if rows > _REPEATED * trials and "condition" not in doctor.unsure:
        doctor.unsure["draw"] = (
            f"{rows / trials:.3g} rows for a value of {item[0]} and a group: repeated draws (--column draw={NONE}), or "
            f"different cases, which share no item (--column item={NONE})?"
        )


def _guess_crossed(doctor: _Doctor, role: str, candidates: Sequence[Column]) -> None:
    """A condition or draw by its name: it crosses what is left, and is not the finest column."""
    named = [
        own
        for own in candidates
        if own.name not in doctor.taken()
        and _called(own, role)
        and not (_called(own, "item") and role == "condition")
        and any(
            other is not own
            and other.name not in doctor.taken()
            and doctor.columns.meets(other.name, (own.name,)) >= _MEETS
            for other in candidates
        )
    ]
    if role == "draw":
        named = [own for own in named if own.whole] or named
    if named:
        doctor.roles[role] = (min(named, key=lambda own: own.distinct).name if role == "condition" else named[0].name,)


def _guess_cluster(doctor: _Doctor) -> None:
    item = next(iter(doctor.roles.get("item", ())), None)
    if item is None or "cluster" in doctor.roles:
        return
    items = doctor.columns[item].distinct
    over = [
        own
        for own in doctor.free()
        if own.distinct < items
        and not own.measured
        and own.length <= 4 * _LONG
        and doctor.columns.nested(item, own.name)
    ]
    over = [own for own in over if not _called(own, "label")]
    many = [own for own in over if own.distinct >= FEWEST_TO_TELL]
    few = [own for own in over if own.distinct < FEWEST_TO_TELL]
    if many:
        coarsest = min(many, key=lambda own: own.distinct)
        doctor.roles["cluster"] = (coarsest.name,)
    if few:
        names = ", ".join(f"{own.name} ({own.distinct})" for own in few)
        doctor.notes.append(f"items also share {names}: as clusters these would be too few to tell anything")


def _is_outcome(doctor: _Doctor, column: Column) -> bool:
    """Whether a column looks like an outcome: called so, or numbers, or yes and no, that no design has balanced."""
    if _called(column, "draw") or _called(column, "item"):
        return False
    if _called(column, "outcome") and column.distinct <= 12:
        return True
    low = {text.strip().lower() for text in column.values}
    return ((low <= {*_YES_NO} or column.numbers is not None) and not column.even) or _is_rank(doctor, column)


def _is_rank(doctor: _Doctor, column: Column) -> bool:
    """Whether its values are places: from 1 on, and each once within an item, a condition and a draw."""
    item = doctor.roles.get("item", ())
    if not item or not column.whole or column.numbers is None or column.numbers.min() != 1:
        return False
    trials = (*item, *doctor.roles.get("condition", ()), *doctor.roles.get("draw", ()))
    return column.distinct <= _MOST_GROUPS and doctor.columns.combinations(*trials, column.name) == len(column.code)


def _says_yes_or_no(column: Column) -> bool:
    """Whether nearly all rows say yes or no; the reader names the others by line."""
    said = np.array([text.strip().lower() in _YES_NO for text in column.texts] + [True])
    return bool(said[column.code].mean() >= MOSTLY)


_YES_NO = ("0", "1", "0.0", "1.0", "true", "false", "yes", "no", "y", "n")


def _guess_outcomes(doctor: _Doctor) -> dict[str, Outcome]:
    if named := doctor.given.get("outcome"):
        return _of_kinds(doctor, [doctor.columns[name] for name in named])
    design = [*doctor.roles.get("group", ()), *doctor.roles.get("item", ())]
    numeric = [
        own
        for own in doctor.columns
        if own.name not in doctor.taken()
        and own.distinct > 1
        and (own.measured or not own.row_number)
        and (own.numbers is not None or _says_yes_or_no(own) or own.mostly_numbers or _is_decision(own))
        and not any(doctor.columns.nested(role, own.name) for role in design if doctor.columns[role].distinct > 1)
    ]
    labels = [own for own in numeric if _called(own, "label") and not _called(own, "outcome")]
    found = [own for own in numeric if own not in labels] or labels
    if labels and found is not labels and "label" not in doctor.roles:
        doctor.roles["label"] = (labels[0].name,)
    if len(found) > _MOST_OUTCOMES:
        named_so = [own for own in found if _called(own, "outcome")]
        doctor.unsure["outcome"] = f"{len(found)} columns could be: {some([own.name for own in found], 8)}"
        found = (named_so or found)[:_MOST_OUTCOMES]
    if not found:
        texts = [own for own in doctor.free() if own.length > _LONG and own.distinct > len(own.code) / 50]
        named_so = [own for own in doctor.free() if _called(own, "outcome")]
        found = [own for own in texts if own in named_so] or named_so[:1] or texts[-1:]
        if not found:
            doctor.unsure["outcome"] = "no column varies within an item and a group"
    return _of_kinds(doctor, found)


def _is_decision(column: Column) -> bool:
    """Whether it is called an outcome, and has a few words for values: one of them is what counts."""
    return _called(column, "outcome") and column.numbers is None and column.distinct <= 12 and column.length <= _LONG


def _of_kinds(doctor: _Doctor, columns: Sequence[Column]) -> dict[str, Outcome]:
    """The columns as outcomes of the kind that their values have."""
    outcomes = {}
    for own in columns:
        kind = _kind(doctor, own)
        few = own.distinct <= _MOST_GROUPS and own.length <= _LONG
        if kind == "signed" or (kind == "text" and few):
            values = some([f"'{value}'" for value in own.values], 6)
            doctor.unsure["outcome"] = f"{own.name} has the values {values}: yes_no with one that counts, or {kind}?"
        outcomes[key_of(own.name)] = Outcome(kind=kind, column=own.name)
    return outcomes


def _kind(doctor: _Doctor, column: Column) -> Kind:
    if _says_yes_or_no(column):
        return "yes_no"
    if column.numbers is None:
        return "number" if column.mostly_numbers else "text"
    values = set(column.numbers.tolist())
    if values <= {-1.0, 0.0, 1.0}:
        return "signed"
    if _is_rank(doctor, column):
        return "rank"
    return "number"


def _guess_texts(doctor: _Doctor) -> None:
    """What was asked and answered, debris at the ends of texts, and texts that were cut off."""
    texts = [own for own in doctor.columns if own.numbers is None and own.length > _LONG and own.distinct > 20]
    asked = [own for own in texts if re.search(r"prompt|input|question|context|asked", own.name.lower())]
    answers = [
        own for own in texts if re.search(r"answer|response|output|generation|text|completion", own.name.lower())
    ]
    for role, found in (("asked", asked), ("answer", answers)):
        free = [own.name for own in found if own.name not in doctor.taken()]
        if role not in doctor.roles and free:
            doctor.roles[role] = (free[0],)
    for own in texts:
        shown = [own.texts[place] for place in own.code[:5000] if place >= 0]
        if (debris := sum(_DEBRIS.search(text) is not None for text in shown)) > 0.01 * len(shown):
            share = f"{100 * debris / len(shown):.0f}%"
            doctor.notes.append(
                f"debris: {share} of the texts in {own.name} end in a mark such as </s>; strip it first"
            )
        words = np.array([len(text.split()) for text in shown])
        longest = words >= 0.9 * np.quantile(words, 0.99)
        open_end = np.array([_ENDS.search(text) is None for text in shown])
        if own.name in doctor.roles.get("answer", ()) and longest.any() and (open_end & longest).mean() > 0.02:
            share = f"{100 * (open_end & longest).mean():.0f}%"
            doctor.notes.append(
                f"truncated: {share} of the texts in {own.name} are among the longest and end in the middle"
            )


def as_document(found: Guess, table: pa.Table) -> dict[str, Any]:
    """The guess as a file of `data/tables` says it, without the file.

    Args:
        found: The guess.
        table: The table.
    """
    document: dict[str, Any] = {
        role: found.one(role)
        for role in ("item", "cluster", "name", "draw", "condition", "asked", "answer")
        if found.one(role)
    }
    document["group"] = list(found.roles.get("group", ()))
    if column := found.one("condition"):
        keys: dict[str, str] = {}
        for value in Column(column, table[column]).values:
            key = key_of(value)
            keys[key if key not in keys else f"{key}-{len(keys)}"] = value
        document["conditions"] = keys
    label = found.one("label")
    document["outcomes"] = {
        name: own.model_dump(exclude_unset=True, mode="json")
        | ({"label": label} if label and own.kind == "yes_no" else {})
        for name, own in found.outcomes.items()
    }
    return document
