"""How many pairs of real text are wrong, by what readers said of them, and how many right ones are lost.

`pair_labels/<dimension>.csv` names pairs by corpus, dialogue and a hash of the exchanged text, without the text. Readers
who saw no rules labelled 420 random pairs a dimension, as the pipeline made them on 2026-11-25: `right`, `wrong` (with
the kind of error) or `unsure`. The set `dev` is for who writes rules; `test` only measures.

    FAIRNESS_CORPORA=... python -m fairness_pipeline_tests.lexicons.pair_errors
"""

import csv
from collections import Counter
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from fairness_pipeline.corpora.dialogue.dialogues import read_dialogues
from fairness_pipeline.lexicons.contexts import find_contexts, make_pairs
from fairness_pipeline.lexicons.swapping import Swapper
from fairness_pipeline.project.project import Project

LABELS = Path(__file__).with_name("pair_labels")
CORPORA = ("twitter_real", "reddit_real")
Name = tuple[str, str, str]
"""Corpus, dialogue, and the hash of the exchanged text."""


class Label(NamedTuple):
    """What a reader said of a pair."""

    set: str
    label: str
    kind: str


class Errors(NamedTuple):
    """Of the labelled pairs that are made now: how many, how many of them are wrong; and the right ones not made."""

    made: int
    wrong: int
    lost: int
    right: int


def labels(dimension: str) -> dict[Name, Label]:
    """The labels of a dimension."""
    with (LABELS / f"{dimension}.csv").open(encoding="utf-8", newline="") as file:
        return {
            (row["corpus"], row["dialogue_id"], row["exchanged"]): Label(row["set"], row["label"], row["kind"])
            for row in csv.DictReader(file)
        }


def made_pairs(project: Project, dimension: str) -> set[Name]:
    """The names of the pairs that the pipeline makes now of all real dialogues."""
    part, own = project.parts["dialogue_fairness"], project.dimensions[dimension]
    settings, found = part.settings.pairs, set()
    for key in CORPORA:
        table = read_dialogues(key, *part.corpora[key], part.settings.splits.model_dump(), 1).table
        place = table.column_names.index("split")
        everything = table.set_column(place, "split", pa.repeat("audit", table.num_rows))
        contexts = find_contexts(everything, Swapper(own, pronouns=settings.pronouns)).table
        pairs = make_pairs(
            contexts, own, maximum=10**9, seed=1, both_sides=settings.both_sides, pronouns=settings.pronouns,
            articles=settings.articles,
        ).table  # fmt: skip
        for row in pairs.select(["dialogue_id", "source_side", "context_a", "context_b"]).to_pylist():
            exchanged = row["context_b"] if row["source_side"] == "a" else row["context_a"]
            found.add((key, row["dialogue_id"], hashed(exchanged)))
    return found


def hashed(text: str) -> str:
    """The hash that stands for an exchanged text."""
    return blake2b(text.encode(), digest_size=8).hexdigest()


def errors(labelled: dict[Name, Label], made: set[Name], of: str) -> Errors:
    """The errors among the labelled pairs of one set.

    Args:
        labelled: The labels.
        made: The pairs that are made now.
        of: `dev` or `test`.
    """
    own = {name: label for name, label in labelled.items() if label.set == of and label.label != "unsure"}
    counts = Counter((label.label, name in made) for name, label in own.items())
    kept = counts["right", True] + counts["wrong", True]
    return Errors(kept, counts["wrong", True], counts["right", False], counts["right", True] + counts["right", False])


def main() -> None:
    """Prints a table, a row for each dimension and set."""
    project = Project("real")
    print("| dimension | set | pairs made | wrong | right ones lost | kinds |\n| --- | --- | --- | --- | --- | --- |")
    for dimension in project.dimensions:
        labelled, made = labels(dimension), made_pairs(project, dimension)
        for own in ("dev", "test"):
            found = errors(labelled, made, own)
            kinds = Counter(
                label.kind for name, label in labelled.items() if label.set == own and label.kind and name in made
            )
            said = ", ".join(f"{kind} {count}" for kind, count in kinds.most_common())
            print(f"| {dimension} | {own} | {found.made} | {found.wrong / max(1, found.made):.0%} | "
                  f"{found.lost} of {found.right} | {said} |", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
