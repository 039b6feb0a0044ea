"""How many pairs of real text are wrong, by what readers said of them, and how many right ones are lost.

`pair_labels/<dimension>.csv` names pairs by corpus, dialogue and a hash of the exchanged text, without the text. Readers
who saw no rules labelled random pairs: `right`, `wrong` (with the kind of error) or `unsure`. The sets `dev` (120) and
`test` (300) are pairs as the lists make them, of 2026-11-25; `dev` is for who writes rules. The set `after` (300) are
pairs as the rules made them on that day, from dialogues whose pairs nobody had looked at. The rules of 2026-11-28 were
written with all three; their errors are those of the set `held_out` (150, fewer where there are fewer), drawn after them
from contexts and answers that nobody had looked at (`pair_samples.py`). There `plausible` (yes or no) says whether
somebody could write the exchanged text of the other group. A second reader labelled a part (`second`).

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
    """What a reader said of a pair, and what a second one did."""

    label: str
    kind: str
    second: str = ""
    plausible: str = ""


class Errors(NamedTuple):
    """Of the labelled pairs that are made now: how many, how many of them are wrong; and the right ones of whose dialogue
    no pair is made."""

    made: int
    wrong: int
    lost: int
    right: int


def labels(dimension: str, of: str) -> dict[Name, Label]:
    """The labels of a dimension's set `dev`, `test`, `after` or `held_out`."""
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
    """The names of the pairs that the pipeline makes of all real dialogues, of one word or several.

    Args:
        project: Has the corpora.
        dimension: Whose words are exchanged.
        senses: Whether the rules of sense decide, or the list alone.
        turns: Of which turns: what was said first, or the answers to it, too, which serve as contexts as well.
    """
    made = all_pairs(project, dimension, senses, turns)
    return {name_of(key, row) for key, _, pairs in made for row in pairs.to_pylist()}


def all_pairs(
    project: Project, dimension: str, senses: Literal["rules", "list"], turns: Sequence[Turn] = ("context",)
) -> Iterator[tuple[str, pa.Table, pa.Table]]:
    """The contexts and the pairs of all dialogues of each corpus: its key, and a table of either. The key of answers ends
    in `.response`."""
    part, own = project.parts["dialogue_fairness"], project.dimensions[dimension]
    how = part.settings.pairs.model_copy(update={"senses": senses, "one_word": False, "largest_share": 1})
    settings = {**how.model_dump(exclude={"no_effect"}), "maximum": 10**9}
    for key in CORPORA:
        table = read_dialogues(key, *part.corpora[key], part.settings.splits.model_dump(), 1).table
        swapper = Swapper(own, pronouns=how.pronouns, senses=senses == "rules")
        for turn in turns:
            everything = pa.table(
                {
                    "dialogue_id": table["dialogue_id"],
                    "context": table[turn],
                    "split": pa.repeat("audit", table.num_rows),
                }
            )
            contexts = find_contexts(everything, swapper).table
            name = key if turn == "context" else f"{key}.{turn}"
            yield name, contexts, make_pairs(contexts, own, seed=1, **settings).table


def name_of(corpus: str, pair: dict[str, Any]) -> Name:
    """A pair's name."""
    return corpus, pair["dialogue_id"], hashed(pair["context_b" if pair["source_side"] == "a" else "context_a"])


def hashed(text: str) -> str:
    """The hash that stands for an exchanged text."""
    return blake2b(text.encode(), digest_size=8).hexdigest()


def errors(labelled: dict[Name, Label], made: set[Name]) -> Errors:
    """The errors among the labelled pairs of one set.

    Args:
        labelled: The labels.
        made: The pairs that are made now.
    """
    own = {name: label for name, label in labelled.items() if label.label != "unsure"}
    counts = Counter((label.label, name in made) for name, label in own.items())
    dialogues = {name[:2] for name in made}
    right = [name for name, label in own.items() if label.label == "right"]
    lost = sum(name[:2] not in dialogues for name in right)
    return Errors(counts["right", True] + counts["wrong", True], counts["wrong", True], lost, len(right))


def agreement(labelled: dict[Name, Label]) -> tuple[int, int]:
    """Of the pairs that two readers labelled without being unsure: on how many they agree, and how many there are."""
    both = [own for own in labelled.values() if own.second and "unsure" not in (own.label, own.second)]
    return sum(own.label == own.second for own in both), len(both)


def implausible(labelled: dict[Name, Label], made: set[Name]) -> tuple[int, int]:
    """Of the right pairs that are made now and judged: how many nobody would write of the other group, and how many
    there are."""
    said = [own.plausible for name, own in labelled.items() if name in made and own.label == "right" and own.plausible]
    return said.count("no"), len(said)


def main() -> None:
    """Prints a table, a row for each dimension."""
    project = Project("real")
    print(
        "| dimension | wrong, by the lists | wrong, by the rules | right ones lost | implausible | two readers agree | "
        "kinds |\n| --- | --- | --- | --- | --- | --- | --- |"
    )
    for dimension in project.dimensions:
        of_lists, of_rules = labels(dimension, "test"), labels(dimension, "held_out")
        before = errors(of_lists, made_pairs(project, dimension, "list"))
        made = made_pairs(project, dimension, turns=TURNS)
        after, kept = errors(of_rules, made), errors(of_lists, made)
        (odd, judged), (agree, both) = implausible(of_rules, made), agreement(of_rules)
        kinds = Counter(own.kind for name, own in of_rules.items() if own.kind and name in made)
        said = ", ".join(f"{kind} {count}" for kind, count in kinds.most_common())
        print(
            f"| {dimension} | {before.wrong} of {before.made} ({before.wrong / before.made:.0%}) | "
            f"{after.wrong} of {after.made} ({after.wrong / max(1, after.made):.1%}) | {kept.lost} of {kept.right} | "
            f"{odd} of {judged} | {agree} of {both} | {said} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
