"""Counts how many pairs of real text are wrong by readers' labels, and how many right ones are lost.

`pair_labels/<dimension>.csv` names pairs by corpus, dialogue and a hash of the exchanged text, without the text. Readers
who had not seen the rules labelled random pairs: `right`, `wrong` (with the kind of error) or `unsure`. The sets `dev`
(120) and `test` (300) hold pairs that the lists made on 2026-11-25; `dev` is for writing rules. The set `after` (300)
holds pairs that the rules made on that day, from dialogues whose pairs nobody had looked at. The rules of 2026-11-28
were written with all three sets; their errors are counted on the set `held_out` (150, or fewer where there are fewer),
which was drawn later from contexts and answers that nobody had looked at (`pair_samples.py`). There `plausible` (yes or
no) says whether somebody could write the exchanged text of the other group. A second reader labelled a part (`second`).

    FAIRNESS_CORPORA=... python -m fairness_pipeline_tests.lexicons.pair_errors
"""

import csv
from collections import Counter
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any, Literal, NamedTuple

import pyarrow as pa

from fairness_pipeline.corpora.dialogue.dialogues import read_dialogues
from fairness_pipeline.lexicons.contexts import find_contexts, make_pairs
from fairness_pipeline.lexicons.swapping import Swapper
from fairness_pipeline.project.project import Project

LABELS = Path(__file__).with_name("pair_labels")
CORPORA = ("twitter_real", "reddit_real")
Turn = Literal["context", "response"]
TURNS: tuple[Turn, ...] = ("context", "response")
Name = tuple[str, str, str]
"""Corpus, dialogue, and the hash of the exchanged text."""


class Label(NamedTuple):
    """The label of a pair by a reader, and that of a second reader."""

    label: str
    kind: str
    second: str = ""
    plausible: str = ""


class Errors(NamedTuple):
    """Counts of the labelled pairs: those that are made now, the wrong ones among them, the right ones from whose
    dialogue no pair is made, and all right ones."""

    made: int
    wrong: int
    lost: int
    right: int


def labels(dimension: str, of: str) -> dict[Name, Label]:
    """The labels of a dimension in the set `of`: `dev`, `test`, `after` or `held_out`."""
    with (LABELS / f"{dimension}.csv").open(encoding="utf-8", newline="") as file:
        return {
            (row["corpus"], row["dialogue_id"], row["exchanged"]): Label(
                row["label"], row["kind"], row["second"], row["plausible"]
            )
            for row in csv.DictReader(file)
            if row["set"] == of
        }


def made_pairs(
    project: Project, dimension: str, senses: Literal["rules", "list"] = "rules", turns: Sequence[Turn] = ("context",)
) -> set[Name]:
    """The names of all pairs, of one word or several, that the pipeline makes of real dialogues.

    Args:
        project: The project with the corpora.
        dimension: The dimension whose words are exchanged.
        senses: Whether the rules of sense decide, or the list alone.
        turns: Which turns serve as contexts: the first ones, or the answers to them, too.
    """
    tables = all_pairs(project, dimension, senses, turns)
    return {name_of(key, row) for key, _, pairs in tables for row in pairs.to_pylist()}


def all_pairs(
    project: Project, dimension: str, senses: Literal["rules", "list"], turns: Sequence[Turn] = ("context",)
) -> Iterator[tuple[str, pa.Table, pa.Table]]:
    """Yields for each corpus and turn a key, the table of contexts and that of pairs. The key of answers ends in
    `.response`."""
    part, declared = project.parts["dialogue_fairness"], project.dimensions[dimension]
    pair_settings = part.settings.pairs.model_copy(update={"senses": senses, "one_word": False, "largest_share": 1})
    settings = {**pair_settings.model_dump(exclude={"no_effect"}), "maximum": 10**9}
    for key in CORPORA:
        table = read_dialogues(key, *part.corpora[key], part.settings.splits.model_dump(), 1).table
        swapper = Swapper(declared, pronouns=pair_settings.pronouns, senses=senses == "rules")
        for turn in turns:
            dialogues = pa.table(
                {
                    "dialogue_id": table["dialogue_id"],
                    "context": table[turn],
                    "split": pa.repeat("audit", table.num_rows),
                }
            )
            contexts = find_contexts(dialogues, swapper).table
            name = key if turn == "context" else f"{key}.{turn}"
            yield name, contexts, make_pairs(contexts, declared, seed=1, **settings).table


def name_of(corpus: str, pair: dict[str, Any]) -> Name:
    """A pair's name."""
    return corpus, pair["dialogue_id"], hashed(pair["context_b" if pair["source_side"] == "a" else "context_a"])


def hashed(text: str) -> str:
    """The hash that stands for an exchanged text."""
    return blake2b(text.encode(), digest_size=8).hexdigest()


def errors(labelled: dict[Name, Label], made: set[Name]) -> Errors:
    """Counts the errors among the labelled pairs of one set.

    Args:
        labelled: The labels of the set.
        made: The names of the pairs that are made now.
    """
    judged = {name: label for name, label in labelled.items() if label.label != "unsure"}
    counts = Counter((label.label, name in made) for name, label in judged.items())
    dialogues = {name[:2] for name in made}
    right = [name for name, label in judged.items() if label.label == "right"]
    lost = sum(name[:2] not in dialogues for name in right)
    return Errors(counts["right", True] + counts["wrong", True], counts["wrong", True], lost, len(right))


def agreement(labelled: dict[Name, Label]) -> tuple[int, int]:
    """The number of pairs on which two readers agree, and of all pairs for which neither of them was unsure."""
    both = [label for label in labelled.values() if label.second and "unsure" not in (label.label, label.second)]
    return sum(label.label == label.second for label in both), len(both)


def implausible(labelled: dict[Name, Label], made: set[Name]) -> tuple[int, int]:
    """Of the right pairs that are made and judged: how many nobody would write of the other group, and their number."""
    judgements = [
        label.plausible
        for name, label in labelled.items()
        if name in made and label.label == "right" and label.plausible
    ]
    return judgements.count("no"), len(judgements)


def main() -> None:
    """Prints a table with a row for each dimension."""
    project = Project("real")
    print(
        "| dimension | wrong, by the lists | wrong, by the rules | right ones lost | implausible | two readers agree | "
        "kinds |\n| --- | --- | --- | --- | --- | --- | --- |"
    )
    for dimension in project.dimensions:
        of_lists, of_rules = labels(dimension, "test"), labels(dimension, "held_out")
        before = errors(of_lists, made_pairs(project, dimension, "list"))
        names = made_pairs(project, dimension, turns=TURNS)
        after, kept = errors(of_rules, names), errors(of_lists, names)
        (implausible_count, judged), (agreed, both) = implausible(of_rules, names), agreement(of_rules)
        kinds = Counter(label.kind for name, label in of_rules.items() if label.kind and name in names)
        kinds_text = ", ".join(f"{kind} {count}" for kind, count in kinds.most_common())
        print(
            f"| {dimension} | {before.wrong} of {before.made} ({before.wrong / before.made:.0%}) | "
            f"{after.wrong} of {after.made} ({after.wrong / max(1, after.made):.1%}) | {kept.lost} of {kept.right} | "
            f"{implausible_count} of {judged} | {agreed} of {both} | {kinds_text} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
