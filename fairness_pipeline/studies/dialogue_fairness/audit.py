"""Takes what `fairness-pipeline audit` is given for this study: a dialogue model, an endpoint, a file of answers."""

import argparse
from pathlib import Path
from typing import Any

from fairness_pipeline.cli.given import Given, answering_architecture, answering_model, put
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.models.dialogue.specification import ModelSpecification
from fairness_pipeline.models.specification import CONTEXT
from fairness_pipeline.studies.dialogue_fairness.commands import import_responses
from fairness_pipeline.studies.dialogue_fairness.models import NAME
from fairness_pipeline.studies.dialogue_fairness.profile import DialoguePart

ASKED_WITH = ("context_pairs", "no_effect_contexts")
"""The assets to make first: the answers in a file are answers to these contexts."""
KIND, NOUN = "models", "bot"
PROFILE = """\
# Written by `fairness-pipeline init {name}`; yours to change. Every key with its meaning: docs/reference.md.
description: {key}, audited before each release
seed: 1                          # of every draw: the same seed gives the same tables
dimensions: [gender, dialect, race, religion1, religion2, orientation]
models:
  {key}: {{}}                      # its file is models/{key}.yaml; keys here override it for this profile

dialogue_fairness:
  corpora: [{corpus}]            # whose contexts are asked; your own: docs/add-a-corpus.md
  pairs:
    maximum: 400                 # pairs per dimension; each costs two answers, more show smaller differences
    pronouns: extended           # swaps him, himself and hers too; `published` keeps to the paper's list
  significance:
    margins:                     # the largest difference that does not matter
      rates: {{cohens_h: 0.05}}    # 2.5 points at 50%, 0.5 at 1%; `absolute: 1` would be one point everywhere
      counts: {{standard_deviations: 0.05}}
      diversity: {{relative: 0.05}}  # of the mean
"""
SPLITS = "  splits: {train: 0.6, valid: 0.08, test: 0.04, audit: 0.28}   # the audit's threads are never trained on\n"
MODEL_COMMENTS = {
    "studies": "which studies audit it",
    "corpus": "whose contexts it answers",
    "name": "a folder, or an id (pin it with revision)",
    "prompt": "what stands around a context",
    "chat": "the tokenizer's own chat template goes around it",
    "base_url": "OpenAI's protocol",
    "key_variable": "the environment variable that holds the key",
    "max_tokens": "of an answer",
    "stop": "an answer ends there",
    "training": "it is trained here, on the corpus's split 'train'",
}
STARTER: dict[str, Any] = {
    "architecture": "seq2seq",
    "studies": [NAME],
    "corpus": "twitter_sample",
    "seq2seq": {"layers": 1, "hidden": 96, "embedding": 64, "vocabulary": 2000},
    "training": {
        "optimiser": "adam", "learning_rate": 0.008, "clipping": 1.0, "batch_tokens": 2048, "epochs": 4, "patience": 3,
    },
}  # fmt: skip
"""A small model that runs without changes, trained on the generated sample with planted bias."""
STARTER_COMMENT = (
    "A small model, trained on generated tweets with planted bias, to try every step once. For your own model:\n"
    "#   fairness-pipeline init NAME --model FOLDER_OR_ID_OR_ADDRESS"
)


def takes(given: Given) -> bool:
    """Whether this study can audit the given model or file."""
    if given.kind == "file":
        exported = {"pair_id", "side", "context"} <= {*given.columns}  # `response` may be missing: the import says so
        return exported or ("response" in given.columns and not {"pair_id", "context"}.isdisjoint(given.columns))
    return given.kind == "address" or answering_architecture(given) is not None


def give(part: DialoguePart, given: Given, name: str, arguments: argparse.Namespace) -> str:
    """Stores a given model or file in the workspace; returns a line that says how it was understood.

    Raises:
        FairnessError: the profile already has a model of this name, or the file does not answer the pairs.
    """
    if given.kind == "file":
        counts = import_responses(part, Path(given.name), name, arguments.dimension, keep_empty=arguments.keep_empty)
        return f"'{name}': {sum(counts.values()):,} answers to {', '.join(counts)}"
    if name in part.project.profile.models or (part.project.workspace / "imports" / name).exists():
        raise FairnessError(f"--name: profile '{part.project.name}' has a model '{name}' already; choose another name")
    document = specification(part, given, arguments)
    path = part.given_model(name)
    longest = put(path, document, ModelSpecification, name, part.project.name).decoding.max_tokens
    return f"'{name}' ({document['architecture']}), {_prompt(document)}, answers of at most {longest} tokens: {path}"


def _prompt(document: dict[str, Any]) -> str:
    """The text that the model reads: the prompt, or the filled-in chat template."""
    from fairness_pipeline.models.pretrained import chat_prompt, load_tokenizer
    from fairness_pipeline.models.specification import Prompted

    source = document.get("huggingface") or document["endpoint"]
    if not source.get("chat"):
        return f"prompt {source.get('prompt', CONTEXT)!r}"
    _, tokenizer = load_tokenizer(source["name"], source.get("revision"), "MODEL")
    turns = Prompted(system=source.get("system")).messages(CONTEXT)
    return f"chat template {chat_prompt(tokenizer, turns)!r}"


def specification(part: DialoguePart, given: Given, arguments: argparse.Namespace) -> dict[str, Any]:
    """The content of the file of a given model."""
    return {**answering_model(given, arguments), "studies": [NAME], "corpus": next(iter(part.corpora))}
