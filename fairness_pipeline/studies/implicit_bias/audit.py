"""Takes what `fairness-pipeline audit` is given for this study: a classifier, an endpoint, a file of predictions."""

import argparse
from pathlib import Path
from typing import Any

from fairness_pipeline.cli.given import Given, endpoint, put
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.models.classifiers.specification import ClassifierSpecification
from fairness_pipeline.studies.implicit_bias.commands import import_predictions
from fairness_pipeline.studies.implicit_bias.profile import NAME, ImplicitBiasPart

KIND = "classifiers"
PROFILE = """\
# Written by `fairness-pipeline init {name}`; yours to change. Every key with its meaning: docs/reference.md.
description: {key}, audited before each release
seed: 1                          # of every draw: the same seed gives the same tables
dimensions: [gender]             # of the other studies; this one's groups are those of its corpora

implicit_bias:
  corpora: [authored_sample]     # generated opinions; your own table: docs/text-classifiers.md
  splits: {{train: 0, valid: 0, test: 1}}    # nothing is trained here
  classifiers:
    {key}: {{}}                    # its file is classifiers/{key}.yaml; keys here override it for this profile
  significance:
    margin: {{cohens_h: 0.05}}     # the largest difference of rates that does not matter
"""
MODEL_COMMENTS = {
    "name": "a folder, or an id (pin it with revision)",
    "positive": "its labels that mean the positive class",
    "base_url": "OpenAI's protocol; it is asked for yes or no",
    "key_variable": "the environment variable that holds the key",
}
_POSITIVE = ("positive", "pos", "label_1")


def takes(given: Given) -> bool:
    """Whether this study can audit the given classifier or file."""
    if given.kind == "file":
        return "text_id" in given.columns
    return given.kind == "address" or given.architecture.endswith("ForSequenceClassification")


def give(part: ImplicitBiasPart, given: Given, name: str, arguments: argparse.Namespace) -> str:
    """Stores a given classifier or file in the workspace; returns a line that says how it was understood.

    Raises:
        FairnessError: the profile already has a classifier of this name, or the label of the positive class is unclear.
    """
    if given.kind == "file":
        target, count = import_predictions(part, Path(given.name), next(iter(part.corpora)), name)
        return f"'{name}': {count:,} predictions in {target}"
    if name in part.settings.classifiers:
        raise FairnessError(
            f"--name: profile '{part.project.name}' has a classifier '{name}' already; choose another name"
        )
    document = specification(part, given, arguments)
    path = part.given_classifier(name)
    put(path, document, ClassifierSpecification, name, part.project.name)
    positive = document.get("huggingface", {}).get("positive")
    meaning = f"positive: {', '.join(positive)}" if positive else "positive: yes"
    return f"'{name}' ({document['architecture']}; {meaning}): {path}"


def specification(part: ImplicitBiasPart, given: Given, arguments: argparse.Namespace) -> dict[str, Any]:
    """The content of the file of a given classifier."""
    if given.kind == "address":
        return {"architecture": "endpoint", "endpoint": endpoint(given, arguments)}
    source: dict[str, Any] = {"name": given.name, **({"revision": given.revision} if given.revision else {})}
    return {"architecture": "huggingface", "huggingface": {**source, "positive": _positive(given, arguments.label)}}


def _positive(given: Given, options: list[str]) -> list[str]:
    """The labels that mean the positive class: the user's choice, or else by their names."""
    known = [str(label) for label in given.configuration.get("id2label", {}).values()]
    if options:
        labels = [pair.partition("=") for pair in options]
        wrong = [name for name, _, label in labels if name != "positive" or label.lower() not in map(str.lower, known)]
        if wrong:
            raise FairnessError(
                f"--label: expected positive=LABEL for {NAME}, LABEL one of {', '.join(known)}; "
                f"found {', '.join(options)}"
            )
        return [label for _, _, label in labels]
    matches = [label for label in known if label.lower() in _POSITIVE]
    if len(matches) != 1:
        raise FairnessError(
            f"{given.name}: has labels {', '.join(known) or 'none'}; say which mean the positive class: "
            f"--label positive={known[-1] if known else 'LABEL'}"
        )
    return matches
