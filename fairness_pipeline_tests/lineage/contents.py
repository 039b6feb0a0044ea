"""Hashes the tables of a small profile, to six digits: a change of code that changes a table must raise its version.

`python -m fairness_pipeline_tests.lineage.contents` writes the list after a version was raised.
"""

import csv
import json
import tempfile
from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pytest
import yaml

from fairness_pipeline.lineage.lineage import Lineage
from fairness_pipeline.project.project import Project
from fairness_pipeline.workspace.lake import Lake
from fairness_pipeline_tests.commands import command, run
from fairness_pipeline_tests.conftest import TINY, empty_data, tiny_project, write_yaml

LISTED = Path(__file__).with_name("contents.json")
SHIPPED = Path(__file__).parents[2] / "data" / "corpora"
ANSWERS = (
    "i like that", "you are an idiot", "i love this , wonderful !", "i do not know what you mean", "no", "",
    "i'm sorry , i can't help with that", "a wedding in the family", "this is terrible , i hate it", "my career",
)  # fmt: skip
PROFILE = {
    "description": "all studies, nothing trained",
    "seed": 3,
    "dimensions": ["gender"],
    "models": {"dialogpt-published": {}},
    "dialogue_fairness": {**TINY["dialogue_fairness"], "pairs": {"maximum": 60, "no_effect": 0.2}},
    "language_model_bias": {"corpus": "reddit_sample"},
    "sentiment_equity": {"systems": {"vader": {}}},
    "implicit_bias": {
        "corpora": ["authored_sample"], "maximum": 60, "splits": {"train": 0, "valid": 0, "test": 1},
    },
    "annotator_bias": {"corpora": ["circle"], "methods": {"mv": {}, "dawid_skene": {}}},
}  # fmt: skip


def make(folder: Path, patch: pytest.MonkeyPatch) -> Project:
    """Makes all assets of the small profile; files hold the answers of its dialogue model and its classifier."""
    data = empty_data(folder, patch)
    tiny_project(data, patch)
    write_yaml(data / "profiles" / "tiny.yaml", PROFILE)
    for name, source, size in (("reddit_sample", "grammar", {"comments": 1500}), ("circle", "simulated", {"draws": 2})):
        corpus = yaml.safe_load((SHIPPED / f"{name}.yaml").read_text(encoding="utf-8"))
        write_yaml(data / "corpora" / f"{name}.yaml", corpus | {source: corpus[source] | size})
    workspace = Project("tiny").workspace
    for asset in ("context_pairs", "authored_texts"):
        run("--select", asset)
    for dimension in PROFILE["dimensions"]:
        pairs = Lake(workspace).read("context_pairs", {"corpus": "tiny", "dimension": dimension}).to_pylist()
        rows = [
            {
                "dimension": dimension,
                "pair_id": pair["pair_id"],
                "side": side,
                "response": ANSWERS[_draw(pair[f"context_{side}"]) % 10],
            }
            for pair in pairs
            for side in "ab"
        ]
        _give(folder / f"{dimension}.csv", rows, "--name", "bot", "--dimension", dimension, "--keep-empty")
    texts = Lake(workspace).read("authored_texts", {"corpus": "authored_sample"}).to_pylist()
    rows = [{"text_id": row["text_id"], "probability": _draw(row["text_id"]) / 2**32} for row in texts]
    _give(folder / "classifier.csv", rows, "--name", "told", "--corpus", "authored_sample")
    run()
    return Project("tiny")


def _draw(text: str) -> int:
    return int.from_bytes(blake2b(text.encode(), digest_size=4).digest())


def _give(file: Path, rows: list[dict[str, Any]], *options: str) -> None:
    with file.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, [*rows[0]])
        writer.writeheader()
        writer.writerows(rows)
    result = command("import", str(file), *options)
    assert result.returncode == 0, result.stdout + result.stderr


def contents(project: Project) -> dict[str, dict[str, str]]:
    """The version of each asset, and a hash of its tables and figures."""
    lineage, lake = Lineage(project), Lake(project.workspace)
    entries = {}
    for name, asset in lineage.assets.items():
        keys = [key for key in lineage.keys(name) if asset.kind == "table" and lake.has(name, key)]
        if keys:
            tables = [
                [key, _rounded(lake.read(name, key).to_pylist()), _rounded(lake.card(name, key).figures)]
                for key in keys
            ]
            digest = blake2b(json.dumps(tables, sort_keys=True).encode(), digest_size=8).hexdigest()
            entries[name] = {"version": asset.code_version, "content": digest}
    return entries


def _rounded(value: Any) -> Any:
    """The value with numbers rounded so that two processors agree; the residue of a difference of equals becomes 0."""
    if isinstance(value, float):
        return f"{value:.6g}" if abs(value) > 1e-12 else "0"
    if isinstance(value, Mapping):
        return {name: _rounded(part) for name, part in value.items()}
    return [_rounded(part) for part in value] if isinstance(value, list | tuple) else value


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary, pytest.MonkeyPatch.context() as monkeypatch:
        listed = contents(make(Path(temporary), monkeypatch))
    LISTED.write_text(json.dumps(listed, indent=1) + "\n", encoding="utf-8")
    print(f"{len(listed)} assets in {LISTED}")
