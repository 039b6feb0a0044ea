"""Takes what `fairness-pipeline audit` is given for this study: a classifier or regressor, an endpoint, scores."""

import argparse
from pathlib import Path
from typing import Any

from fairness_pipeline.cli.given import Given, endpoint, put
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.models.sentiment.specification import AFFECTS, SystemSpecification
from fairness_pipeline.studies.sentiment_equity.commands import import_scores
from fairness_pipeline.studies.sentiment_equity.profile import EquityPart

KIND = "systems"
PROFILE = """\
# Written by `fairness-pipeline init {name}`; yours to change. Every key with its meaning: docs/reference.md.
description: {key}, audited before each release
seed: 1                          # of every draw: the same seed gives the same tables
dimensions: [gender, race]       # those of the Equity Evaluation Corpus

sentiment_equity:
  systems:
    {key}: {{}}                    # its file is systems/{key}.yaml; keys here override it for this profile
    vader: {{}}                    # for comparison
  margin: {{absolute: 0.01}}       # the largest difference between the groups' scores (0 to 1) that does not matter
"""
MODEL_COMMENTS = {
    "affects": "what it scores: anger, fear, joy, sadness, valence",
    "name": "a folder, or an id (pin it with revision)",
    "labels": "which label stands for which affect",
    "base_url": "OpenAI's protocol; it is asked for a number",
    "key_variable": "the environment variable that holds the key",
}
_POSITIVE = ("positive", "pos")


def takes(given: Given) -> bool:
    """Whether this study can audit the given system or file."""
    if given.kind == "file":
        return "score" in given.columns and not {"sentence_id", "sentence"}.isdisjoint(given.columns)
    return given.kind == "address" or given.architecture.endswith("ForSequenceClassification")


def give(part: EquityPart, given: Given, name: str, arguments: argparse.Namespace) -> str:
    """Stores a given system or file in the workspace; returns a line that says how it was understood.

    Raises:
        FairnessError: the profile already has a system of this name, or the affect of a label is unclear.
    """
    if given.kind == "file":
        target, scores = import_scores(part, Path(given.name), name)
        return f"'{name}': {scores.num_rows:,} scores in {target}"
    if name in part.settings.systems or name in part.score_files:
        raise FairnessError(f"--name: profile '{part.project.name}' has a system '{name}' already; choose another name")
    document = specification(part, given, arguments)
    path = part.given_system(name)
    put(path, document, SystemSpecification, name, part.project.name)
    labels = document.get("huggingface", {}).get("labels")
    meaning = (
        ", ".join(f"{label} is {affect}" for affect, label in labels.items()) if labels else "one output is valence"
    )
    return f"'{name}' ({document['architecture']}; {meaning}): {path}"


def specification(part: EquityPart, given: Given, arguments: argparse.Namespace) -> dict[str, Any]:
    """The content of the file of a given system."""
    if given.kind == "address":
        source = endpoint(given, arguments)
        return {"architecture": "endpoint", "affects": ["valence"], "endpoint": source}
    model: dict[str, Any] = {"name": given.name, **({"revision": given.revision} if given.revision else {})}
    labels = _labels(given, arguments.label)
    if labels:
        model["labels"] = labels
    return {"architecture": "huggingface", "affects": list(labels) or ["valence"], "huggingface": model}


def _labels(given: Given, options: list[str]) -> dict[str, str]:
    """Which label stands for which affect: the user's choice, or else the labels' names; empty for a single output."""
    known = [str(label) for label in given.configuration.get("id2label", {}).values()]
    if options:
        labels = dict(pair.partition("=")[::2] for pair in options)
        for affect, label in labels.items():
            if affect not in AFFECTS or label.lower() not in map(str.lower, known):
                raise FairnessError(
                    f"--label: expected AFFECT=LABEL, one of {', '.join(AFFECTS)} and one of {', '.join(known)}; "
                    f"found '{affect}={label}'"
                )
        if len(labels) < len(set(options)):
            raise FairnessError(f"--label: expected one label for an affect, found {', '.join(options)}")
        return labels
    if len(known) <= 1:
        return {}
    matches = {affect: label for affect in AFFECTS for label in known if label.lower() == affect}
    if positive := [label for label in known if label.lower() in _POSITIVE]:
        matches["valence"] = positive[0]
    if not matches:
        raise FairnessError(
            f"{given.name}: has labels {', '.join(known)}, none of which is an affect ({', '.join(AFFECTS)}) or "
            f"'positive'; say which stands for which: --label valence={known[-1]}"
        )
    return {affect: matches[affect] for affect in AFFECTS if affect in matches}
