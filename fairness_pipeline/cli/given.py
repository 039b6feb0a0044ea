"""Examines the input of `audit`, before anything is loaded: a folder, an id, an address or a file."""

import argparse
import json
import os
import re
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar

import yaml

from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.files import write_text
from fairness_pipeline.foundation.yaml_files import Specification, read_yaml, validate
from fairness_pipeline.models.specification import CONTEXT

S = TypeVar("S", bound=Specification)

_KEY = "OPENAI_API_KEY"
_CAUSAL = ("ForCausalLM", "LMHeadModel")
_LONGEST, _LONGEST_OF_ENDPOINT = 40, 60  # tokens of an answer


@dataclass(frozen=True)
class Given:
    """A model of the `transformers` library (folder or id) with its configuration, an endpoint, or a file.

    Args:
        kind: The kind of the input.
        name: The folder's absolute path, the id, the address, or the file's path.
        configuration: For a model: its `config.json`, with its tokenizer's `chat_template` (yes or no) and `eos_token`.
        columns: For a file: the columns that its first line names.
        revision: For an id: its revision.
    """

    kind: Literal["folder", "id", "address", "file"]
    name: str
    configuration: dict[str, Any] = field(default_factory=dict)
    columns: tuple[str, ...] = ()
    revision: str | None = None

    @property
    def architecture(self) -> str:
        """The class that a model was saved from; empty if its configuration does not say."""
        return str((self.configuration.get("architectures") or [""])[0])

    @property
    def description(self) -> str:
        """A description for readers."""
        if self.kind in ("folder", "id"):
            return f"a {self.architecture or self.configuration.get('model_type', 'model')}"
        return "an endpoint" if self.kind == "address" else f"a file with the columns {', '.join(self.columns)}"


def roles_of(options: list[str], known: Collection[str], repeatable: Collection[str]) -> dict[str, list[str]]:
    """The columns that the user's `--column ROLE=COLUMN` name, by role.

    Raises:
        FairnessError: a role is unknown, or is given twice and is not `repeatable`.
    """
    roles: dict[str, list[str]] = {}
    for text in options:
        role, equals, column = text.partition("=")
        if role not in known or not equals:
            raise FairnessError(f"--column: expected ROLE=COLUMN with a role of {', '.join(known)}; found '{text}'")
        if role in roles and role not in repeatable:
            raise FairnessError(f"--column: expected one {role}, found {roles[role][0]} and {column}")
        roles.setdefault(role, []).append(column)
    return roles


def look_at(text: str, revision: str | None = None, *, of_benchmark: bool = False) -> Given:
    """Finds out what was given.

    Args:
        text: The text that the user wrote.
        revision: The revision of an id.
        of_benchmark: Whether a file has answers to a benchmark, so that it need not be a table.

    Raises:
        FairnessError: the folder, file or model does not exist or cannot be read.
    """
    from fairness_pipeline.corpora.annotators.label_files import is_label_file, read_label_rows
    from fairness_pipeline.corpora.outcomes.formats import read_format, recognised
    from fairness_pipeline.corpora.outcomes.table_files import FORMS, PACKED, column_names
    from fairness_pipeline.models.pretrained import is_path

    if text.startswith(("http://", "https://")):
        return Given("address", text.rstrip("/"))
    path = Path(text).expanduser()
    if text.strip() and path.is_dir():
        return Given("folder", str(path.resolve()), _configuration(str(path.resolve()), None))
    if path.is_file() and of_benchmark:
        return Given("file", str(path.resolve()))
    if path.is_file() and is_label_file(path):
        return Given("file", str(path.resolve()), columns=tuple(read_label_rows(path).columns))
    if path.is_file():
        form = recognised(path)
        columns = column_names(path) if form == "table" else tuple(read_format(form, path, {}).column_names)
        return Given("file", str(path.resolve()), columns=columns)
    if (
        text.endswith((*FORMS, *(form + packed for form in FORMS for packed in PACKED)))
        or is_path(text)
        or not text.strip()
    ):
        raise FairnessError(f"{text or 'MODEL'}: there is no such folder or file; check the path")
    return Given("id", text, _configuration(text, revision), revision=revision)


def name_of(location: str) -> str:
    """Makes a key from the last part of a path, id or address."""
    last = re.sub(r"^https?://", "", location).rstrip("/").split("/")
    stem = f"at-{last[0].replace(':', '-')}" if location.startswith("http") else last[-1]
    stem = re.sub(r"\.(csv|jsonl|ndjson|json|eval|tsv|parquet|arrow|feather)(\.gz|\.zst)?$", "", stem)
    return re.sub(r"[^a-z0-9_.-]+", "-", stem.lower()).lstrip("_.-0123456789") or "model"


def put(path: Path, document: dict[str, Any], schema: type[S], name: str, profile: str) -> S:
    """Writes the file of the input into the workspace, and returns what it says; a name that is in use is not given to
    anything else.

    Raises:
        FairnessError: the file would be wrong, or a file of that name exists with another content.
    """
    specification = validate(schema, document, path)
    if path.exists() and read_yaml(path) != json.loads(json.dumps(document)):
        raise FairnessError(
            f"--name: '{name}' already names something from another location or with other options ({path}); "
            f"choose another name, or remove the first: fairness-pipeline forget {name} --profile {profile}"
        )
    write_text(path, yaml.safe_dump(document, sort_keys=False, allow_unicode=True))
    return specification


def check_free(file: Path, taken: Collection[str], profile: str, name: str | None = None) -> None:
    """Raises FairnessError if a file that `audit` wrote has a name that the profile uses for something else.

    Args:
        file: The file that `audit` wrote.
        taken: The names that the profile uses.
        profile: The profile.
        name: The name of the input, if that is not the file's stem.
    """
    name = name or file.stem
    if name in taken:
        raise FairnessError(
            f"{file}: '{name}' was given to 'audit', and the profile declares that name too; rename one, or "
            f"remove it: fairness-pipeline forget {name} --profile {profile}"
        )


def endpoint(given: Given, arguments: argparse.Namespace) -> dict[str, Any]:
    """Returns the section of a file for an address: its model, the variable with its key, and requests at once.

    Args:
        given: The address.
        arguments: `served`, the model (if None, the only one that the address serves); `key`, the variable (if None,
            `OPENAI_API_KEY`, provided that it is set); `concurrency`.

    Raises:
        FairnessError: the address does not say which models it serves, or serves several.
    """
    from fairness_pipeline.models.chat import only_model

    variable = arguments.key or (_KEY if os.environ.get(_KEY) else None)
    model = arguments.served or only_model(given.name, variable)
    document = {"base_url": given.name, "model": model, "key_variable": variable, "concurrency": arguments.concurrency}
    return {name: value for name, value in document.items() if value is not None}


def answering_architecture(given: Given) -> str | None:
    """Returns `causal_lm`, `encoder_decoder` or `endpoint`; None if the input generates no text."""
    if given.kind == "address":
        return "endpoint"
    if given.configuration.get("is_encoder_decoder") and given.architecture.endswith("ConditionalGeneration"):
        return "encoder_decoder"
    return "causal_lm" if given.architecture.endswith(_CAUSAL) else None


def answering_model(given: Given, arguments: argparse.Namespace, longest: int | None = None) -> dict[str, Any]:
    """Returns the content of the file of a model that generates text.

    Args:
        given: The model.
        arguments: `prompt`, `system`, and those of `endpoint`.
        longest: Tokens of an answer, as far as the model has room for them; by default those of small talk, and one
            line if it is no chat model.

    Raises:
        FairnessError: an option does not fit, or an error of `endpoint`.
    """
    prompts = {name: value for name in ("prompt", "system") if (value := getattr(arguments, name)) is not None}
    architecture = answering_architecture(given)
    if given.kind == "address":
        source = endpoint(given, arguments) | prompts
        return {
            "architecture": architecture,
            "endpoint": source,
            "decoding": {"max_tokens": longest or _LONGEST_OF_ENDPOINT},
        }
    chat = given.configuration.get("chat_template", False) and arguments.prompt is None
    if arguments.system is not None and not chat:
        raise FairnessError("--system is for a model with a chat template, without --prompt; write it into --prompt")
    source = {**_huggingface_source(given), **prompts}
    if chat:
        source["chat"] = True
    elif "prompt" not in prompts and _speaks_in_turns(given):
        source["prompt"] = CONTEXT + given.configuration["eos_token"]
    positions = given.configuration.get("max_position_embeddings") or given.configuration.get("n_positions") or 1024
    tokens = min(longest or _LONGEST, positions // 2)
    # A model continues the text and may have nothing to add; one that is no chat model continues for ever.
    decoding = {"max_tokens": tokens, "keep_empty": True, **({} if chat or longest else {"stop": ["\n"]})}
    return {"architecture": architecture, "huggingface": source, "decoding": decoding}


def scoring_architecture(given: Given) -> str | None:
    """Returns `causal_lm` or `masked_lm`; None if the input cannot score texts."""
    if given.kind in ("folder", "id") and given.architecture.endswith(_CAUSAL):
        return "causal_lm"
    return "masked_lm" if given.architecture.endswith("ForMaskedLM") else None


def scoring_model(given: Given) -> dict[str, Any]:
    """Returns the content of the file of a model that scores texts."""
    return {"architecture": scoring_architecture(given), "huggingface": _huggingface_source(given)}


def _huggingface_source(given: Given) -> dict[str, Any]:
    return {"name": given.name, **({"revision": given.revision} if given.revision else {})}


def _speaks_in_turns(given: Given) -> bool:
    """Whether turns end with the end token, as DialoGPT's do; its configuration names this task."""
    return bool(given.configuration.get("eos_token")) and "conversational" in (
        given.configuration.get("task_specific_params") or {}
    )


def _configuration(name: str, revision: str | None) -> dict[str, Any]:
    from fairness_pipeline.models.pretrained import load_tokenizer

    if revision is None and Path(name).is_dir() and not (Path(name) / "config.json").is_file():
        raise FairnessError(
            f"{name}: expected a model as save_pretrained writes it, found no config.json; is it the folder of weights "
            "and tokenizer?"
        )
    configuration, tokenizer = load_tokenizer(name, revision, "MODEL")
    settings: dict[str, Any] = json.loads(configuration.to_json_string(use_diff=False))
    return {**settings, "chat_template": bool(tokenizer.chat_template), "eos_token": tokenizer.eos_token}
