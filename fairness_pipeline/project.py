"""A profile with everything it names, read and checked: what runs, with which settings, into which workspace."""

import re
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from fairness_pipeline import paths
from fairness_pipeline.corpora.equity_sentences import DIMENSIONS as EQUITY_DIMENSIONS
from fairness_pipeline.corpora.specification import CorpusSpecification
from fairness_pipeline.debiasing.registry import check_method
from fairness_pipeline.errors import FairnessError
from fairness_pipeline.lake import Key
from fairness_pipeline.lexicons.dimensions import Dimension
from fairness_pipeline.models.specification import ModelSpecification
from fairness_pipeline.models.systems.specification import AFFECTS, SystemSpecification
from fairness_pipeline.profiles import Profile
from fairness_pipeline.rounds import read_rounds
from fairness_pipeline.yaml_files import S, load, read_yaml, validate

MODELS_STUDY, SYSTEMS_STUDY = "dialogue_fairness", "sentiment_equity"
"""The study that a dialogue model belongs to, and that of a sentiment system."""

FIXED_MEASURES = ("diversity", "distinct_1", "distinct_2", "offense_rate", "sentiment_positive", "sentiment_negative")
"""Of study 1, besides one measure for each attribute list of a dimension."""


class Source(NamedTuple):
    """A corpus's specification and the folder its relative paths start at."""

    specification: CorpusSpecification
    folder: Path


class Project:
    """One profile, resolved.

    Args:
        profile: The profile's key.

    Raises:
        FairnessError: the profile, or a file that it names, is missing or wrong.
    """

    def __init__(self, profile: str) -> None:
        self.name = profile
        path = _find("profiles", profile)
        self.profile = load(Profile, path)
        self.corpora = {key: _corpus(_find("corpora", key, path, "corpora")) for key in self.profile.corpora}
        self.dimensions = {
            key: load(Dimension, _find("dimensions", key, path, "dimensions")) for key in self.profile.dimensions
        }
        self.models: dict[str, ModelSpecification] = {}
        for key in self.profile.models:
            self._add_model(key, path)
        for file in sorted((self.workspace / "imports").glob("*/model.yaml")):
            self._add_import(file)
        self.systems = {key: self._system(key, changes, path) for key, changes in self.profile.systems.items()}
        if shared := sorted(self.models.keys() & self.systems.keys()):
            raise FairnessError(f"{path}: systems: '{shared[0]}' is the name of a model too; rename one of the files")
        self.score_files: dict[str, Path] = {}
        for file in sorted((self.workspace / "scores").glob("[!.]*")):
            if file.is_file():
                self._add_scores(file)
        if self.systems and not self.systems_dimensions:
            raise FairnessError(
                f"{path}: dimensions: sentiment systems are audited in {' and '.join(EQUITY_DIMENSIONS)}; expected "
                f"one of them, found {', '.join(self.dimensions)}"
            )
        for key in self.profile.debias or ():
            if key not in self.dimensions:
                raise FairnessError(
                    f"{path}: debias: '{key}' is none of the profile's dimensions: {', '.join(self.dimensions)}"
                )
        measures = [*FIXED_MEASURES, *(f"{name}_words" for d in self.dimensions.values() for name in d.attribute_words)]
        for measure in self.profile.significance.margins:
            if measure not in ("default", *measures):
                raise FairnessError(
                    f"{path}: significance.margins: unknown measure '{measure}'; known: {', '.join(measures)}"
                )
        for key, model in self.models.items():
            if model.corpus not in self.corpora:
                raise FairnessError(
                    f"{path}: model '{key}' belongs to corpus '{model.corpus}', which the profile does not list; "
                    f"its corpora: {', '.join(self.corpora)}"
                )

    @property
    def systems_dimensions(self) -> list[str]:
        """The profile's dimensions in which sentiment systems are audited."""
        return [key for key in self.dimensions if key in EQUITY_DIMENSIONS]

    def check_selection(self, study: str | None, dimension: str | None, model: str | None) -> None:
        """Whether there is such a part of the profile; None stands for all. A `model` may be a sentiment system.

        Raises:
            FairnessError: there is none; names what there is.
        """
        known: dict[str | None, list[str]] = {
            MODELS_STUDY: list(self.models),
            SYSTEMS_STUDY: list(self.systems),
            None: [*self.models, *self.systems],
        }
        within = study or (SYSTEMS_STUDY if model in self.systems else None)
        dimensions = self.systems_dimensions if within == SYSTEMS_STUDY else list(self.dimensions)
        for kind, value, choices in (
            ("study", study, [MODELS_STUDY, SYSTEMS_STUDY]),
            ("model", model, known.get(study, [])),
            ("dimension", dimension, dimensions),
        ):
            if value is not None and value not in choices:
                where = f"study '{within}' of profile" if within and kind != "study" else "profile"
                raise FairnessError(
                    f"unknown {kind} '{value}' in {where} '{self.name}'; known: {', '.join(choices) or 'none'}"
                )

    def _add_model(self, key: str, profile: Path) -> ModelSpecification:
        """Reads a model, and its base before it."""
        if key in self.models:
            return self.models[key]
        path = _find("models", key, profile, "models")
        declared = read_yaml(path)
        if "base" in declared or "debiasing" in declared:
            model = self._debiased(key, declared, path, profile)
        else:
            declared = validate(ModelSpecification, declared, path).model_dump(exclude_unset=True)
            model = _changed(ModelSpecification, key, declared, self.profile.models[key], path, profile).located(
                path.parent
            )
        self.models[key] = model
        return model

    def _system(self, key: str, changes: dict[str, Any], profile: Path) -> SystemSpecification:
        path = _find("systems", key, profile, "systems")
        declared = load(SystemSpecification, path).model_dump(exclude_unset=True)
        if declared["architecture"] == "scores":
            raise FairnessError(
                f"{path}: architecture: 'scores' needs no file here: give the scores to fairness-pipeline import-scores"
            )
        return _changed(SystemSpecification, key, declared, changes, path, profile).located(path.parent)

    def _add_scores(self, file: Path) -> None:
        """A file in the workspace's `scores` is a system of its own, named after it; what it holds is read later."""
        key = re.sub(r"[^a-z0-9_.-]+", "_", file.stem.lower()).lstrip("_.-0123456789") or "scores"
        while key in self.systems or key in self.models:
            key += "-file"
        self.systems[key] = SystemSpecification(architecture="scores", affects=AFFECTS)
        self.score_files[key] = file

    def _debiased(self, key: str, declared: dict[str, Any], path: Path, profile: Path) -> ModelSpecification:
        """A model made from another: what its file does not say is as its base has it."""
        changes = self.profile.models[key]
        whole = _merge(declared, changes)
        method = check_method(whole.get("debiasing"), path)
        base_key = whole.get("base")
        if not isinstance(base_key, str) or base_key not in self.profile.models:
            raise FairnessError(
                f"{path}: base: '{base_key}' is no model of {profile}; '{key}' is made from it, so list both under "
                f"'models'; listed: {', '.join(self.profile.models)}"
            )
        if read_yaml(_find("models", base_key, profile, "models")).keys() & {"base", "debiasing"}:
            raise FairnessError(f"{path}: base: '{base_key}' is debiased itself; name the model that it was made from")
        base = self._add_model(base_key, profile)
        if base.architecture not in method.architectures:
            raise FairnessError(
                f"{path}: debiasing: '{whole['debiasing']}' is not defined for architecture '{base.architecture}' "
                f"(of '{base_key}'); it is for: {', '.join(method.architectures)}"
            )
        inherited = base.model_dump(exclude_unset=True, exclude={"published_as"})
        validate(ModelSpecification, _merge(inherited, declared), path)
        model = _changed(ModelSpecification, key, _merge(inherited, declared), changes, path, profile).located(
            path.parent
        )
        if not model.trained:
            raise FairnessError(f"{path}: key 'training' is missing: '{base_key}' has none, and this method trains")
        if model.corpus != base.corpus:
            raise FairnessError(f"{path}: corpus: expected that of '{base_key}', {base.corpus}, found '{model.corpus}'")
        if method.starts_from_base and (model.seq2seq, model.retrieval) != (base.seq2seq, base.retrieval):
            raise FairnessError(
                f"{path}: '{whole['debiasing']}' goes on from the weights of '{base_key}', so its sizes are those; "
                f"change them in '{base_key}'"
            )
        where = path if "settings" in declared and "settings" not in changes else profile
        validate(method.settings, model.settings or {}, where, under=("settings",))
        for dimension in model.dimensions or ():
            if dimension not in self.dimensions:
                raise FairnessError(
                    f"{path}: dimensions: '{dimension}' is none of {profile}; its dimensions: "
                    f"{', '.join(self.dimensions)}"
                )
        return model

    def base_of(self, key: Key) -> Key | None:
        """The same partition of the model's base; None where the model has none, or no model is named."""
        base = self.models[key["model"]].base if "model" in key else None
        return {**key, "model": base} if base else None

    def made_by_default(self, key: Key) -> bool:
        """Whether a partition is made without being asked for: a debiased model's only where the profile says so."""
        wanted = self.profile.debias
        return wanted is None or "dimension" not in key or key["dimension"] in wanted or not self.base_of(key)

    def is_made_for(self, model: str, dimension: str) -> bool:
        """Whether a model answers in a dimension: one that names its `dimensions` does in those."""
        dimensions = self.models[model].dimensions
        return dimensions is None or dimension in dimensions

    def _add_import(self, file: Path) -> None:
        key, model = file.parent.name, load(ModelSpecification, file)
        if key in self.models:
            raise FairnessError(
                f"model '{key}' is declared in the profile, and responses under this name were imported into "
                f"{file.parent}; rename one, or delete the folder"
            )
        if model.corpus not in self.corpora:
            raise FairnessError(
                f"{file.parent}: responses to corpus '{model.corpus}' were imported, which profile '{self.name}' does "
                "not list any more; delete the folder, or list the corpus"
            )
        self.models[key] = model

    @cached_property
    def workspace(self) -> Path:
        """The folder that holds everything this profile makes."""
        return paths.workspace_folder(self.name)

    @cached_property
    def rounds(self) -> dict[str, str]:
        """When the present round of asking each model or system began."""
        return read_rounds(self.workspace)

    def imported_responses(self, model: str, dimension: str) -> Path:
        """Where imported responses of a model lie."""
        return self.workspace / "imports" / model / f"{dimension}.parquet"


def load_dimension(key: str) -> Dimension:
    """The dimension `key`; raises FairnessError if there is none or its file is wrong."""
    return load(Dimension, _find("dimensions", key))


def _corpus(path: Path) -> Source:
    return Source(load(CorpusSpecification, path), path.parent)


def _changed(
    schema: type[S], key: str, declared: dict[str, Any], changes: dict[str, Any], path: Path, profile: Path
) -> S:
    try:
        return validate(schema, _merge(declared, changes), profile)
    except FairnessError as error:
        raise FairnessError(f"{error}\n  (in what {profile} changes of '{key}' of {path})") from None


def _merge(base: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in changes.items():
        merged[key] = _merge(base[key], value) if isinstance(value, dict) and isinstance(base.get(key), dict) else value
    return merged


def _find(kind: str, key: str, named_in: Path | None = None, field: str = "") -> Path:
    known = paths.yaml_files(kind)
    if key not in known:
        where = f"{named_in}: {field}: " if named_in else ""
        raise FairnessError(
            f"{where}unknown {kind.removesuffix('s').replace('corpora', 'corpus')} '{key}'; "
            f"known: {', '.join(known) or 'none'} (one YAML file each in {paths.data_folders()[0] / kind})"
        )
    return known[key]
