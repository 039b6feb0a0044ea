"""Reads the dialogue models of a profile: declared, debiased, imported, or given to `audit`; one entry per seed."""

import re
from collections.abc import Collection
from pathlib import Path
from typing import Any

from fairness_pipeline.cli.given import check_free
from fairness_pipeline.debiasing.dialogue.registry import METHODS
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.yaml_files import load, read_yaml, validate
from fairness_pipeline.models.dialogue.specification import ModelSpecification
from fairness_pipeline.project.project import Project, changed, check_known, check_settings, find, merged, method_named

NAME = "dialogue_fairness"


def seed_name(model: str, number: int) -> str:
    """The key of one training of a model with several seeds; the first training has the key of the model itself."""
    return model if number == 1 else f"{model}.seed{number}"


def first_seed(model: str) -> str:
    """The key of the model that a training belongs to."""
    return re.sub(r"\.seed\d+$", "", model)


def is_seed(model: str) -> bool:
    """Whether a key is that of the second or a later training of a model."""
    return first_seed(model) != model


def answers_in(model: ModelSpecification, dimension: str) -> bool:
    """Whether a model answers in a dimension; a model without `dimensions` answers in all."""
    return model.dimensions is None or dimension in model.dimensions


def dialogue_models(project: Project, corpora: Collection[str]) -> dict[str, ModelSpecification]:
    """Every model that the study audits, by key.

    Raises:
        FairnessError: a model's file is missing or wrong, or two models have the same name.
    """
    reader = _Reader(project, corpora)
    for key in project.profile.models:
        reader.add(key)
    reader.add_seeds()
    for file in sorted((project.workspace / "imports").glob("*/model.yaml")):
        reader.add_import(file)
    for file in sorted((project.workspace / "models").glob("*.yaml")):
        reader.add_given(file)
    return reader.models


class _Reader:
    def __init__(self, project: Project, corpora: Collection[str]) -> None:
        self._project = project
        self._corpora = corpora
        self.models: dict[str, ModelSpecification] = {}

    def add_seeds(self) -> None:
        """Adds an entry for each further seed of a model; a debiased model starts from the same seed of its base."""
        for key, model in list(self.models.items()):
            if model.seeds > 1 and not model.trained:
                raise FairnessError(f"model '{key}': 'seeds' is for models that are trained here; this one is not")
            base = self.models[model.base] if model.base else None
            if base and model.seeds > base.seeds:
                raise FairnessError(
                    f"model '{key}': {model.seeds} seeds, but its base '{model.base}' has only {base.seeds}; "
                    "give the base as many"
                )
            for number in range(2, model.seeds + 1):
                name = seed_name(key, number)
                if name in self.models:
                    raise FairnessError(f"model '{name}': the name is taken by another seed of '{key}'; rename it")
                changes = {"base": seed_name(model.base, number)} if model.base else {}
                self.models[name] = model.model_copy(update={"published_as": model.published_as or key, **changes})

    def add(self, key: str) -> None:
        """Reads a model, and its base before it; skips a model that only other studies audit."""
        if key in self.models:
            return
        studies = self._project.named_studies(key)
        if studies is not None and NAME not in studies:
            return
        path, profile = find("models", key, self._project.path, "models"), self._project.path
        declared, changes = read_yaml(path), self._project.profile.models[key]
        if "base" in declared or "debiasing" in declared:
            model = self._debiased(key, declared, path)
        else:
            declared = validate(ModelSpecification, declared, path).model_dump(exclude_unset=True)
            model = changed(ModelSpecification, ("models", key), declared, changes, path, profile).located(path.parent)
        self.models[key] = model

    def _debiased(self, key: str, declared: dict[str, Any], path: Path) -> ModelSpecification:
        """A model made from another one; it inherits every key that its file leaves out."""
        profile, changes = self._project.path, self._project.profile.models[key]
        document = merged(declared, changes)
        source = profile if "debiasing" in changes else path
        method = method_named(METHODS, document.get("debiasing"), source)
        base_key = self._project.base_named(key, path)
        if read_yaml(find("models", base_key, profile, "models")).keys() & {"base", "debiasing"}:
            raise FairnessError(f"{path}: base: '{base_key}' is debiased itself; name the model that it was made from")
        self.add(base_key)
        base = self.models[base_key]
        if base.architecture not in method.architectures:
            raise FairnessError(
                f"{source}: debiasing: '{document['debiasing']}' is not defined for architecture '{base.architecture}' "
                f"(of '{base_key}'); it is for: {', '.join(method.architectures)}"
            )
        inherited = base.model_dump(exclude_unset=True, exclude={"published_as"})
        validate(ModelSpecification, merged(inherited, declared), path)
        model = changed(
            ModelSpecification, ("models", key), merged(inherited, declared), changes, path, profile
        ).located(path.parent)
        if method.trains and not model.trained:
            raise FairnessError(f"{path}: key 'training' is missing: '{base_key}' has none, and this method trains")
        if model.corpus != base.corpus:
            raise FairnessError(f"{path}: corpus: expected that of '{base_key}', {base.corpus}, found '{model.corpus}'")
        if method.starts_from_base and (model.seq2seq, model.retrieval) != (base.seq2seq, base.retrieval):
            raise FairnessError(
                f"{path}: '{document['debiasing']}' goes on from the weights of '{base_key}', so it must keep the "
                f"sizes of '{base_key}'; change them there"
            )
        check_settings(method.settings, model.settings, declared, changes, path, profile, ("models", key))
        for dimension in model.dimensions or ():
            check_known(dimension, self._project.dimensions, f"{path}: dimensions", f"{profile}; its dimensions")
        return model

    def add_import(self, file: Path) -> None:
        key, model = file.parent.name, load(ModelSpecification, file)
        if key in self.models:
            raise FairnessError(
                f"model '{key}' is declared in the profile, and responses under this name were imported into "
                f"{file.parent}; rename one, or delete the folder"
            )
        if model.corpus not in self._corpora:
            raise FairnessError(
                f"{file.parent}: responses to corpus '{model.corpus}' were imported, which profile "
                f"'{self._project.name}' does not list any more; delete the folder, or list the corpus"
            )
        self.models[key] = model

    def add_given(self, file: Path) -> None:
        check_free(file, self.models, self._project.name)
        self.models[file.stem] = load(ModelSpecification, file)
