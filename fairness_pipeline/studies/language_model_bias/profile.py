"""What a profile says of this study: a corpus of stereotyped phrases, language models, and how they are judged."""

import csv
import re
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Literal

from fairness_pipeline.cli.given import check_free
from fairness_pipeline.corpora.language.phrase_corpus import PhraseCorpus
from fairness_pipeline.corpora.language.stereotype_grammar import StereotypeGrammar
from fairness_pipeline.debiasing.language.registry import METHODS
from fairness_pipeline.debiasing.lookup import method_named
from fairness_pipeline.foundation import paths
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.inputs import File
from fairness_pipeline.foundation.yaml_files import Positive, Specification, load, read_yaml, validate
from fairness_pipeline.lexicons.stereotypes import StereotypeTerms, has_stereotypes, stereotypes_of
from fairness_pipeline.measures.language.downstream import ResponseSettings, StateTrackingSettings
from fairness_pipeline.measures.language.phrase_bias import LanguageModelBiasSettings
from fairness_pipeline.measures.language.stereotype import STEREOTYPE
from fairness_pipeline.models.language.log_probability_files import FORMS
from fairness_pipeline.models.language.specification import ARCHITECTURES, LanguageModelSpecification
from fairness_pipeline.project.project import Project, changed, check_settings, find, merged
from fairness_pipeline.project.study import Part
from fairness_pipeline.workspace.imports import imported_file, imported_files
from fairness_pipeline.workspace.lake import Key

NAME = "language_model_bias"
_FIGURES = ("perplexity_a", "perplexity_b")


class LanguageModelBias(Specification):
    """The section of a profile. Models given to `audit`, and imported annotations, come on top of what it names."""

    corpus: str
    """The phrases; a file of data/corpora."""
    debias: tuple[str, ...] | None = None
    """Dimensions in which debiased models are made by default; all dimensions if left out."""
    pairs: Literal["printed", "extended"] = "extended"
    """Over which pairs of words LMD, ADD and HD run: those of the paper's list, or further ones too. Phrases are always
    exchanged with all of them."""
    significance: LanguageModelBiasSettings = LanguageModelBiasSettings()
    """How perplexities are judged."""
    state_tracking: StateTrackingSettings = StateTrackingSettings()
    """How models are tuned to track what a user wants."""
    responses: ResponseSettings = ResponseSettings()
    """How models are tuned to answer."""
    examples: Positive = 8
    """Phrases shown for each audit."""


class LanguageModelPart(Part[LanguageModelBias]):
    """The section, resolved.

    Raises:
        FairnessError: the corpus or a model that the profile names is missing or wrong.
    """

    project: Project

    def __init__(self, project: Project, settings: LanguageModelBias) -> None:
        super().__init__(project, settings)
        path = find("corpora", settings.corpus, project.path, f"{NAME}.corpus")
        self.corpus: PhraseCorpus = load(PhraseCorpus, path)
        self.folder = path.parent
        self.dimensions = {key: own for key, own in project.dimensions.items() if has_stereotypes(own)}
        self.models: dict[str, LanguageModelSpecification] = {}
        for key in project.profile.models:
            self._add_model(key)
        for file in sorted((project.workspace / "language_models").glob("*.yaml")):
            check_free(file, self.models, project.name)
            self.models[file.stem] = load(LanguageModelSpecification, file)
        for key, file in self._log_probabilities.items():
            check_free(file, self.models, project.name)
            self.models[key] = LanguageModelSpecification(architecture="logprobs", studies=(NAME,), logprobs=str(file))
        self.subjects = self.models
        self.axes = {"dimension": list(self.dimensions), "model": list(self.models)}
        if self.models and not self.dimensions:
            raise FairnessError(
                f"{project.path}: dimensions: language models are audited in dimensions with stereotypes; found "
                f"{', '.join(project.dimensions)}: give one a section 'stereotypes', or name another"
            )
        for key in settings.debias or ():
            if key not in self.dimensions:
                raise FairnessError(
                    f"{project.path}: {NAME}.debias: '{key}' is none of the profile's dimensions with stereotypes: "
                    f"{', '.join(self.dimensions)}"
                )
        for key in self.corpus.phrases:
            if key in project.dimensions and key not in self.dimensions:
                raise FairnessError(
                    f"{path}: phrases: dimension '{key}' has no stereotypes; give its file a section 'stereotypes'"
                )

    # What the shared code asks

    @property
    def level(self) -> float:
        """That of its tests."""
        return self.settings.significance.alpha

    def expected(self) -> list[Key]:
        """Every dimension and model that is made for it, or was published in it."""
        keys = ({"dimension": dimension, "model": model} for dimension in self.dimensions for model in self.models)
        return [key for key in keys if self.measured(key)]

    def by_default(self, key: Key, named: Collection[str] = ()) -> bool:
        """Debiased models only in the profile's `debias` dimensions, or in a dimension that is named."""
        wanted = self.settings.debias
        if wanted is None or "dimension" not in key or "model" not in key or "dimension" in named:
            return True
        return key["dimension"] in wanted or not self.base_of(key)

    def base_of(self, key: Key) -> Key | None:
        """The model that a debiased one was made from."""
        base = self.models[key["model"]].base if "model" in key else None
        return {**key, "model": base} if base else None

    def baselines_of(self, key: Key) -> list[Key]:
        """The model of the same base that was trained without a cure, if the profile has one."""
        own = self.models[key["model"]] if "model" in key else None
        plain = [
            name for name, model in self.models.items()
            if own and own.debiasing and name != key["model"] and (model.base, model.debiasing) == (own.base, "plain")
        ]  # fmt: skip
        return [{**key, "model": name} for name in plain[:1]]

    def measures(self) -> list[str]:
        """The row that a verdict hangs on."""
        return [STEREOTYPE]

    @property
    def given(self) -> Mapping[str, Path]:
        """Models given to `audit`, and imported log-probabilities."""
        models = sorted((self.project.workspace / "language_models").glob("*.yaml"))
        return {path.stem: path for path in models} | self._log_probabilities

    @property
    def _log_probabilities(self) -> dict[str, Path]:
        files = imported_files(self.project.workspace / "log_probabilities")
        return {path.stem: path for path in files if path.suffix in FORMS}

    def log_probabilities(self, model: str) -> File | None:
        """The log-probabilities of a model that came in a file: an imported one, or one that the model's file names."""
        if model in self._log_probabilities:
            return imported_file(self._log_probabilities[model], self.project.workspace)
        named = self.models[model].logprobs
        return File.of(Path(named)) if named else None

    def log_probability_file(self, model: str, form: str) -> Path:
        """Where imported log-probabilities of a model lie."""
        return self.project.workspace / "log_probabilities" / f"{model}{form}"

    @property
    def corpora_of_all(self) -> Sequence[str]:
        """The one corpus of the profile."""
        return (self.settings.corpus,)

    # What the study itself asks

    def debiasing_terms(self, dimension: str) -> StereotypeTerms:
        """The terms of a dimension's stereotypes with the pairs over which the debiasing losses run."""
        return stereotypes_of(self.dimensions[dimension], printed=self.settings.pairs == "printed")

    def has_phrases(self, dimension: str) -> bool:
        """Whether there can be labelled phrases in a dimension: generated, sought in comments, released or imported."""
        if self.imported(dimension):
            return True
        if self.grammar:
            return dimension in self.grammar.dimensions
        return dimension in self.corpus.phrases or bool(self.corpus.comments)

    def query_epoch_of(self, model: str) -> str | None:
        """When the present query epoch of a model began."""
        return self.project.query_epochs.get((NAME, model))

    def asked(self, key: Key) -> bool:
        """Whether a model is scored in a dimension."""
        model = self.models[key["model"]]
        made = model.dimensions is None or key["dimension"] in model.dimensions
        return model.scored and made and self.has_phrases(key["dimension"])

    def measured(self, key: Key) -> bool:
        """Whether there are perplexities of a model in a dimension: asked for, or published."""
        model = self.models[key["model"]]
        return self.asked(key) if model.scored else bool(self.published(key))

    def published(self, key: Key) -> list[dict[str, str]]:
        """The published perplexities of a model in a dimension, a phrase a row.

        Raises:
            FairnessError: as `published_perplexities` does.
        """
        name = self.models[key["model"]].perplexities
        assert name is not None
        return [row for row in published_perplexities(paths.data_file(name)) if row["dimension"] == key["dimension"]]

    def annotations_folder(self, dimension: str) -> Path:
        """Where imported annotations of a dimension lie, a file an annotator."""
        return self.project.workspace / "annotations" / dimension

    def imported(self, dimension: str) -> list[Path]:
        """Imported annotations of a dimension, a file an annotator."""
        return [path for path in imported_files(self.annotations_folder(dimension)) if path.suffix == ".csv"]

    def given_model(self, model: str) -> Path:
        """Where the file of a model lies that was given to `audit`."""
        return self.project.workspace / "language_models" / f"{model}.yaml"

    @cached_property
    def grammar(self) -> StereotypeGrammar | None:
        """The grammar that generates everything; None if the corpus is read from files."""
        return StereotypeGrammar.load(self.corpus.grammar.file) if self.corpus.grammar else None

    def _add_model(self, key: str) -> None:
        """Reads a model, and its base before it; one that other studies alone audit is left out."""
        if key in self.models:
            return
        project = self.project
        named = project.named_studies(key)
        path = find("models", key, project.path, "models")
        declared, changes = read_yaml(path), project.profile.models[key]
        if named is None and not self._can_audit(declared, key):
            return
        if named is not None and NAME not in named:
            return
        if "base" in declared or "debiasing" in declared:
            self.models[key] = self._debiased(key, declared, path)
            return
        content = validate(LanguageModelSpecification, declared, path).model_dump(exclude_unset=True)
        self.models[key] = changed(
            LanguageModelSpecification, ("models", key), content, changes, path, project.path
        ).located(path.parent)

    def _can_audit(self, declared: dict[str, Any], key: str) -> bool:
        """Whether a model, if its file names no study, is a published language model or one without a base."""
        whole = merged(declared, self.project.profile.models[key])
        if whole.get("debiasing") in METHODS and whole.get("base") not in self.project.profile.models:
            return True  # which is refused
        return whole.get("architecture") in ARCHITECTURES and "training" not in whole and "base" not in whole

    def _debiased(self, key: str, declared: dict[str, Any], path: Path) -> LanguageModelSpecification:
        """A model made from another one; it inherits what its file does not say."""
        profile, changes = self.project.path, self.project.profile.models[key]
        method = method_named(
            METHODS, merged(declared, changes).get("debiasing"), profile if "debiasing" in changes else path
        )
        base_key = self.project.base_named(key, path)
        self._add_model(base_key)
        base = self.models.get(base_key)
        if base is None or base.base or not (base.weighted and base.causal):
            raise FairnessError(
                f"{path}: base: '{base_key}' is no language model with weights that are as published, which predicts "
                "the next word"
            )
        inherited = base.model_dump(exclude_unset=True, exclude={"published_as", "studies"})
        validate(LanguageModelSpecification, merged(inherited, declared), path)
        model = changed(
            LanguageModelSpecification, ("models", key), merged(inherited, declared), changes, path, profile
        ).located(path.parent)
        check_settings(method.settings, model.settings, declared, changes, path, profile, ("models", key))
        for dimension in model.dimensions or ():
            if dimension not in self.dimensions:
                raise FairnessError(
                    f"{path}: dimensions: '{dimension}' is none of {profile} with stereotypes; those: "
                    f"{', '.join(self.dimensions)}"
                )
        return model


def published_perplexities(path: Path) -> list[dict[str, str]]:
    """The rows of a file of published perplexities; read once while it is unchanged.

    Raises:
        FairnessError: a column is missing, or a perplexity is no number of 1 or more; names the line.
    """
    return _perplexities(path, path.stat().st_mtime_ns)


@lru_cache(maxsize=8)
def _perplexities(path: Path, _changed: int) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    for number, row in enumerate(rows, start=2):
        for column in ("dimension", "phrase", "comment", "target", *_FIGURES):
            if row.get(column) in (None, ""):
                raise FairnessError(f"{path}, line {number}: expected a value in column '{column}', found none")
        for column in _FIGURES:
            if not re.fullmatch(r"\d+(\.\d+)?(e\+?\d+)?", row[column]) or float(row[column]) < 1:
                raise FairnessError(
                    f"{path}, line {number}: {column}: expected a perplexity (1 or more), found '{row[column]}'"
                )
    return rows
