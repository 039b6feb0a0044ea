"""What `fairness-pipeline audit` can give this study: a dialogue model, an endpoint, a file of answers."""

import argparse
import os
from pathlib import Path
from typing import Any

import yaml

from fairness_pipeline.errors import FairnessError
from fairness_pipeline.files import replacing
from fairness_pipeline.given import Given
from fairness_pipeline.models.chat import only_model
from fairness_pipeline.models.dialogue.specification import ModelSpecification
from fairness_pipeline.models.specification import CONTEXT
from fairness_pipeline.studies.dialogue_fairness.commands import import_file
from fairness_pipeline.studies.dialogue_fairness.profile import NAME, DialoguePart
from fairness_pipeline.yaml_files import validate

ASKED_WITH = "context_pairs"
"""What must be made before anything is given: answers in a file are answers to these."""
_KEY = "OPENAI_API_KEY"


def takes(given: Given) -> bool:
    """Whether this study can audit it."""
    if given.kind == "file":
        return "response" in given.columns
    return given.kind == "address" or _architecture(given) is not None


def give(part: DialoguePart, given: Given, name: str, arguments: argparse.Namespace) -> str:
    """Puts it into the workspace, where the profile finds it; gives a line that says what was taken for what.

    Raises:
        FairnessError: the profile has a model of this name, or the file does not answer the pairs.
    """
    if given.kind == "file":
        dimensions = import_file(part, Path(given.name), name, arguments.dimension, keep_empty=arguments.keep_empty)
        return f"'{name}': answers to {', '.join(dimensions)}"
    if name in part.project.profile.models or (part.project.workspace / "imports" / name).exists():
        raise FairnessError(f"--name: profile '{part.project.name}' has a model '{name}' already; choose another name")
    document = specification(part, given, arguments)
    path = part.given_model(name)
    validate(ModelSpecification, document, path)
    with replacing(path) as temporary:
        temporary.write_text(yaml.safe_dump(document, sort_keys=False, allow_unicode=True), encoding="utf-8")
    source = document.get("huggingface") or document["endpoint"]
    return f"'{name}' ({document['architecture']}), prompt {source.get('prompt', CONTEXT)!r}: {path}"


def specification(part: DialoguePart, given: Given, arguments: argparse.Namespace) -> dict[str, Any]:
    """What a model's file says of what was given."""
    corpus = next(iter(part.corpora))
    shared = {"studies": [NAME], "corpus": corpus}
    keep = {"keep_empty": True} if arguments.keep_empty else {}
    said = {name: value for name in ("prompt", "system") if (value := getattr(arguments, name)) is not None}
    if given.kind == "address":
        key = arguments.key or (_KEY if os.environ.get(_KEY) else None)
        endpoint = {
            "base_url": given.name,
            "model": arguments.served or only_model(given.name, key),
            **({"key_variable": key} if key else {}),
            **said,
        }
        return {"architecture": "endpoint", **shared, "endpoint": endpoint, "decoding": {"max_tokens": 60, **keep}}
    chat = given.configuration.get("chat_template", False) and arguments.prompt is None
    source = {"name": given.name, **({"revision": given.revision} if given.revision else {}), **said}
    if chat:
        source["chat"] = True
    elif "prompt" not in said and _speaks_in_turns(given):
        source["prompt"] = CONTEXT + given.configuration["eos_token"]
    # What is no chat model goes on with the text, and may well have nothing to add.
    decoding = {"max_tokens": 40, **(keep if chat else {"stop": ["\n"], "keep_empty": True})}
    return {"architecture": _architecture(given), **shared, "huggingface": source, "decoding": decoding}


def _architecture(given: Given) -> str | None:
    if given.configuration.get("is_encoder_decoder") and given.architecture.endswith("ConditionalGeneration"):
        return "encoder_decoder"
    return "causal_lm" if given.architecture.endswith(("ForCausalLM", "LMHeadModel")) else None


def _speaks_in_turns(given: Given) -> bool:
    """Whether turns end with the end token, as DialoGPT's do: its configuration says so of its task."""
    return bool(given.configuration.get("eos_token")) and "conversational" in (
        given.configuration.get("task_specific_params") or {}
    )
