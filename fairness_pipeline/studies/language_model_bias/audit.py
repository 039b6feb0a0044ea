"""Takes what `fairness-pipeline audit` is given for this study: a causal or masked language model by folder or id."""

import argparse
from typing import Any

from fairness_pipeline.cli.given import Given, put, scoring_architecture, scoring_model
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.models.language.specification import LanguageModelSpecification
from fairness_pipeline.studies.language_model_bias.profile import NAME, LanguageModelPart

KIND = "models"
PROFILE = """\
# Written by `fairness-pipeline init {name}`; yours to change. Every key with its meaning: docs/reference.md.
description: {key}, audited before each release
seed: 1                          # of every draw: the same seed gives the same tables
dimensions: [gender, race, religion1, religion2, orientation]
models:
  {key}: {{}}                      # its file is models/{key}.yaml; keys here override it for this profile

language_model_bias:
  corpus: reddit_sample          # generated phrases; RedditBias's own: redditbias
  significance:
    margin: {{absolute: 0.05}}     # the largest difference of log-perplexities that does not matter: 5% of a perplexity
"""
MODEL_COMMENTS = {
    "studies": "which studies audit it",
    "name": "a folder, or an id (pin it with revision)",
}


def takes(given: Given) -> bool:
    """Whether this study can audit the given model."""
    return scoring_architecture(given) is not None


def give(part: LanguageModelPart, given: Given, name: str, arguments: argparse.Namespace) -> str:
    """Stores a given model in the workspace; returns a line that says how it was understood.

    Raises:
        FairnessError: the profile already has a model of this name, or log-probabilities were imported under it.
    """
    path = part.given_model(name)
    if name in part.project.profile.models or part.given.get(name, path) != path:
        raise FairnessError(f"--name: profile '{part.project.name}' has a model '{name}' already; choose another name")
    document = specification(part, given, arguments)
    put(path, document, LanguageModelSpecification, name, part.project.name)
    return f"'{name}' ({document['architecture']}, asked for the perplexity of phrases): {path}"


def specification(part: LanguageModelPart, given: Given, arguments: argparse.Namespace) -> dict[str, Any]:
    """The content of the file of a given model."""
    return {**scoring_model(given), "studies": [NAME]}
