"""What a user gives to be audited, looked at before anything is loaded: a folder, an id, an address, a file."""

import json
import os
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import yaml

from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.files import replacing
from fairness_pipeline.foundation.yaml_files import Specification, read_yaml, validate

_FORMS = (".csv", ".tsv", ".jsonl")
_LOSSLESS = (".gz", ".zst")
_KEY = "OPENAI_API_KEY"


@dataclass(frozen=True)
class Given:
    """A model of the `transformers` library (folder or id) with its configuration, an endpoint, or a file.

    Args:
        kind: What it is.
        name: The folder's whole path, the id, the address, the file's path.
        configuration: Of a model: its `config.json`, with its tokenizer's `chat_template` (yes or no) and `eos_token`.
        columns: Of a file: what its first line names.
        revision: Of an id.
    """

    kind: Literal["folder", "id", "address", "file"]
    name: str
    configuration: dict[str, Any] = field(default_factory=dict)
    columns: tuple[str, ...] = ()
    revision: str | None = None

    @property
    def architecture(self) -> str:
        """The class that a model was saved from; empty where its configuration does not say."""
        return str((self.configuration.get("architectures") or [""])[0])

    @property
    def said(self) -> str:
        """For a reader."""
        if self.kind in ("folder", "id"):
            return f"a {self.architecture or self.configuration.get('model_type', 'model')}"
        return "an endpoint" if self.kind == "address" else f"a file with the columns {', '.join(self.columns)}"


def look_at(what: str, revision: str | None = None) -> Given:
    """Tells what was given.

    Args:
        what: As the user writes it.
        revision: Of an id.

    Raises:
        FairnessError: there is no such folder, file or model, or it cannot be read.
    """
    from fairness_pipeline.models.pretrained import is_path

    if what.startswith(("http://", "https://")):
        return Given("address", what.rstrip("/"))
    path = Path(what).expanduser()
    if what.strip() and path.is_dir():
        return Given("folder", str(path.resolve()), _configuration(str(path.resolve()), None))
    form = path.with_suffix("").suffix if path.suffix in _LOSSLESS else path.suffix
    if path.is_file():
        if form not in _FORMS:
            raise FairnessError(f"{path}: expected a folder, or a file that ends in {', '.join(_FORMS)}")
        return Given("file", str(path.resolve()), columns=_columns(path, form))
    if form in _FORMS or is_path(what) or not what.strip():
        raise FairnessError(f"{what or 'MODEL'}: there is no such folder or file; check the path")
    return Given("id", what, _configuration(what, revision), revision=revision)


def put(path: Path, document: dict[str, Any], schema: type[Specification], name: str, profile: str) -> None:
    """Writes the file of what was given into the workspace; a name that was given before stays what it was.

    Args:
        path: The file.
        document: What it says.
        schema: What reads it.
        name: The name.
        profile: The profile's.

    Raises:
        FairnessError: the file would be wrong, or there is one of that name that says something else.
    """
    validate(schema, document, path)
    if path.exists() and read_yaml(path) != json.loads(json.dumps(document)):
        raise FairnessError(
            f"--name: '{name}' was given before, with another place or other options ({path}); choose another name, or "
            f"take the first back: fairness-pipeline forget {name} --profile {profile}"
        )
    with replacing(path) as temporary:
        temporary.write_text(yaml.safe_dump(document, sort_keys=False, allow_unicode=True), encoding="utf-8")


def check_free(file: Path, taken: Collection[str], profile: str) -> None:
    """Raises FairnessError if what was given to `audit` in `file` has the name of something else of its profile."""
    if file.stem in taken:
        raise FairnessError(
            f"{file}: '{file.stem}' was given to 'audit', and the profile has another of this name; rename one, or "
            f"take it back: fairness-pipeline forget {file.stem} --profile {profile}"
        )


def endpoint(given: Given, served: str | None, key: str | None) -> dict[str, str]:
    """What a file says of an address: which of its models, and which variable holds its key.

    Args:
        given: The address.
        served: The model; the only one that it serves, where it is None.
        key: The variable; `OPENAI_API_KEY`, where it is None and that is set.

    Raises:
        FairnessError: it cannot be asked which models it serves, or serves several.
    """
    from fairness_pipeline.models.chat import only_model

    variable = key or (_KEY if os.environ.get(_KEY) else None)
    document = {"base_url": given.name, "model": served or only_model(given.name, variable)}
    return {**document, "key_variable": variable} if variable else document


def _configuration(name: str, revision: str | None) -> dict[str, Any]:
    from fairness_pipeline.models.pretrained import load_tokenizer

    if revision is None and Path(name).is_dir() and not (Path(name) / "config.json").is_file():
        raise FairnessError(
            f"{name}: expected a model as save_pretrained writes it, found no config.json; is it the folder of weights "
            "and tokenizer?"
        )
    configuration, tokenizer = load_tokenizer(name, revision, "MODEL")
    found: dict[str, Any] = json.loads(configuration.to_json_string(use_diff=False))
    return {**found, "chat_template": bool(tokenizer.chat_template), "eos_token": tokenizer.eos_token}


def _columns(path: Path, form: str) -> tuple[str, ...]:
    from fairness_pipeline.foundation.text_files import read_csv_rows, read_json_lines, read_lines

    if form == ".jsonl":
        first = next(iter(read_json_lines(path)), None)
        names: list[str] = list(first[1]) if first else []
    elif form == ".csv":
        names = next((cells for _, cells in read_csv_rows(path)), [])
    else:
        names = next((line.split("\t") for _, line in read_lines(path)), [])
    if not names:
        raise FairnessError(f"{path}: expected a file with named columns, found an empty one")
    return tuple(names)
