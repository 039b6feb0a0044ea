"""A profile with everything it names, read and checked: what runs, with which settings, into which workspace."""

from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from fairness_pipeline import paths
from fairness_pipeline.corpora.specification import CorpusSpecification
from fairness_pipeline.errors import FairnessError
from fairness_pipeline.lexicons.dimensions import Dimension
from fairness_pipeline.models.specification import ModelSpecification
from fairness_pipeline.profiles import Profile
from fairness_pipeline.rounds import read_rounds
from fairness_pipeline.yaml_files import load, read_yaml, validate

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
        self.models = {key: _model(key, changes, path) for key, changes in self.profile.models.items()}
        for file in sorted((self.workspace / "imports").glob("*/model.yaml")):
            self._add_import(file)
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
        """When each model's present round of asking began."""
        return read_rounds(self.workspace)

    def imported_responses(self, model: str, dimension: str) -> Path:
        """Where imported responses of a model lie."""
        return self.workspace / "imports" / model / f"{dimension}.parquet"


def load_dimension(key: str) -> Dimension:
    """The dimension `key`; raises FairnessError if there is none or its file is wrong."""
    return load(Dimension, _find("dimensions", key))


def _corpus(path: Path) -> Source:
    return Source(load(CorpusSpecification, path), path.parent)


def _model(key: str, changes: dict[str, Any], profile: Path) -> ModelSpecification:
    path = _find("models", key, profile, "models")
    declared = validate(ModelSpecification, read_yaml(path), path)
    merged = _merge(declared.model_dump(exclude_unset=True), changes)
    try:
        return validate(ModelSpecification, merged, profile).located(path.parent)
    except FairnessError as error:
        raise FairnessError(f"{error}\n  (in what {profile} changes of model '{key}')") from None


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
