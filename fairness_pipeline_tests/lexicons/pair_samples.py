"""Draws real pairs for readers, and takes over their labels.

    FAIRNESS_CORPORA=... python -m fairness_pipeline_tests.lexicons.pair_samples draw FOLDER
    python -m fairness_pipeline_tests.lexicons.pair_samples take FOLDER

`draw` writes `<dimension>.csv` with the texts, so the folder must lie outside the repository. Readers write
`<dimension>.reader1.csv` and, for a part of the pairs, `<dimension>.reader2.csv` beside it, with the columns `n`, `label`,
`kind` and `plausible`. `take` adds their labels to `pair_labels`, without the texts.
"""

import argparse
import csv
import random
from hashlib import blake2b
from pathlib import Path
from typing import Any

from fairness_pipeline.project.project import Project
from fairness_pipeline_tests.lexicons.pair_errors import LABELS, TURNS, all_pairs, labels, name_of

PAIRS = 150
SEED = 20261128
HELD_OUT = "held_out"
SAMPLE = ("n", "corpus", "dialogue_id", "exchanged", "source_side", "original", "exchanged_text", "terms")
COLUMNS = ("corpus", "dialogue_id", "exchanged", "set", "label", "kind", "second", "plausible")
ANSWERS = {"label": ("right", "wrong", "unsure"), "plausible": ("yes", "no")}


def drawn(project: Project, dimension: str, count: int = PAIRS, seed: int = SEED) -> list[dict[str, Any]]:
    """Draws random pairs that the rules make, of one word or several, from texts that nobody has looked at. Labelled
    dialogues are left out, and contexts that were read while the rules were written (dialogues with an even hash)."""
    known = {name[1] for of in ("dev", "test", "after", HELD_OUT) for name in labels(dimension, of)}
    samples: dict[str, dict[str, Any]] = {}
    contexts: set[str] = set()
    for key, texts, pairs in all_pairs(project, dimension, "rules", TURNS):
        answers = key.endswith(".response")
        contexts.update(() if answers else texts["context"].to_pylist())
        for row in pairs.to_pylist():
            source, target = "ab" if row["source_side"] == "a" else "ba"
            original = row[f"context_{source}"]
            fresh = original not in contexts if answers else _is_odd(row["dialogue_id"])
            if fresh and row["dialogue_id"] not in known:
                samples[original] = {
                    "corpus": key,
                    "dialogue_id": row["dialogue_id"],
                    "exchanged": name_of(key, row)[2],
                    "source_side": row["source_side"],
                    "original": original,
                    "exchanged_text": row[f"context_{target}"],
                    "terms": "; ".join(f"{term[source]} -> {term[target]}" for term in row["terms"]),
                }
    rows = random.Random(f"{seed} {dimension}").sample(
        sorted(samples.values(), key=lambda row: row["exchanged"]), len(samples)
    )
    return [{"n": number, **row} for number, row in enumerate(rows[:count], start=1)]


def _is_odd(dialogue: str) -> bool:
    return blake2b(f"half{dialogue}".encode(), digest_size=2).digest()[0] % 2 == 1


def taken(folder: Path, dimension: str) -> list[dict[str, str]]:
    """The sample's pairs with the readers' labels, as rows of `pair_labels`.

    Raises:
        ValueError: a reader's file lists a pair twice, lacks one, or holds a label that the guidelines do not allow.
    """
    sample = {row["n"]: row for row in _rows(folder / f"{dimension}.csv")}
    first, second = (_answers(folder / f"{dimension}.reader{reader}.csv") for reader in (1, 2))
    if missing := sorted(sample.keys() - first.keys(), key=int):
        raise ValueError(f"{dimension}.reader1.csv: no label for {', '.join(missing)}")
    return [
        {
            **{name: row[name] for name in COLUMNS[:3]},
            "set": HELD_OUT,
            "label": first[n]["label"],
            "kind": first[n]["kind"],
            "second": second.get(n, {}).get("label", ""),
            "plausible": first[n]["plausible"],
        }
        for n, row in sample.items()
    ]


def _answers(path: Path) -> dict[str, dict[str, str]]:
    """A reader's labels by the pair's number; empty if there is no such reader."""
    answers: dict[str, dict[str, str]] = {}
    for row in _rows(path) if path.exists() else ():
        for column, allowed in ANSWERS.items():
            if row[column] not in allowed:
                raise ValueError(f"{path.name}: {row['n']}: {column} is '{row[column]}', expected {', '.join(allowed)}")
        if row["n"] in answers or bool(row["kind"]) != (row["label"] == "wrong"):
            raise ValueError(
                f"{path.name}: {row['n']}: labelled twice, or a kind without 'wrong', or 'wrong' without one"
            )
        answers[row["n"]] = row
    return answers


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _write(path: Path, columns: tuple[str, ...], rows: list[dict[str, Any]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def main() -> None:
    """Runs `draw` or `take`."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("what", choices=("draw", "take"))
    parser.add_argument("folder", type=Path)
    arguments = parser.parse_args()
    if arguments.what == "draw":
        project = Project("real")
        arguments.folder.mkdir(parents=True, exist_ok=True)
        for dimension in project.dimensions:
            rows = drawn(project, dimension)
            _write(arguments.folder / f"{dimension}.csv", SAMPLE, rows)
            print(f"{dimension}: {len(rows)} pairs", flush=True)
        return
    for path in sorted(LABELS.glob("*.csv")):
        before = [row for row in _rows(path) if row["set"] != HELD_OUT]
        _write(path, COLUMNS, [*before, *taken(arguments.folder, path.stem)])


if __name__ == "__main__":
    main()
