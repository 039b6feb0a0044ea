"""The profile's section for this study: a corpus of stereotyped phrases, language models, and how they are judged."""

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
from fairness_pipeline.project.project import Project, changed, check_known, check_settings, find, merged, method_named
from fairness_pipeline.project.study import Part
from fairness_pipeline.workspace.imports import imported_file, imported_files
from fairness_pipeline.workspace.lake import Key

NAME = "language_model_bias"
_FIGURES = ("perplexity_a", "perplexity_b")


class LanguageModelBias(Specification):
    """The section of a profile. Models given to `audit` and imported annotations are added to what it names."""

    corpus: str
    """The corpus of the phrases; a file in data/corpora."""
    debias: tuple[str, ...] | None = None
    """Dimensions in which debiased models are made by default; all dimensions if left out."""
    pairs: Literal["printed", "extended"] = "extended"
    """The pairs of words in the losses of LMD, ADD and HD: those of the paper's list, or further ones as well. Phrases
    are always exchanged with all pairs."""
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

    subject = "model"
    project: Project

    def __init__(self, project: Project, settings: LanguageModelBias) -> None:
        super().__init__(project, settings)
        path = find("corpora", settings.corpus, project.path, f"{NAME}.corpus")
        self.corpus: PhraseCorpus = load(PhraseCorpus, path)
        self.folder = path.parent
        self.dimensions = {
            key: dimension for key, dimension in project.dimensions.items() if has_stereotypes(dimension)
        }
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
            source = f"{project.path}: {NAME}.debias"
            check_known(key, self.dimensions, source, "the profile's dimensions with stereotypes")
        for key in self.corpus.phrases:
            if key in project.dimensions and key not in self.dimensions:
                raise FairnessError(
                    f"{path}: phrases: dimension '{key}' has no stereotypes; give its file a section 'stereotypes'"
                )

    # For the shared code

    @property
    def level(self) -> float:
        """The significance level of its tests."""
        return self.settings.significance.alpha

    def expected(self) -> list[Key]:
        """Every dimension with each model that is scored or published in it."""
        keys = ({"dimension": dimension, "model": model} for dimension in self.dimensions for model in self.models)
        return [key for key in keys if self.measured(key)]

    def by_default(self, key: Key, named: Collection[str] = ()) -> bool:
        """Whether a partition is made by default: a debiased model's only in a dimension of `debias` or a named one."""
        debias = self.settings.debias
        if debias is None or "dimension" not in key or "model" not in key or "dimension" in named:
            return True
        return key["dimension"] in debias or not self.base_of(key)

    def baselines_of(self, key: Key) -> list[Key]:
        """The control of a debiased model: the plain fine-tuning of the same base, if the profile has one."""
        debiased = self.models[key["model"]] if "model" in key else None
        plain = [
            name for name, model in self.models.items()
            if debiased and debiased.debiasing and name != key["model"]
            and (model.base, model.debiasing) == (debiased.base, "plain")
        ]  # fmt: skip
        return [{**key, "model": name} for name in plain[:1]]

    def measures(self) -> list[str]:
        """The row that the verdict rests on."""
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
        """The file of a model's log-probabilities, imported or named in the model's file; None if it has none."""
        if model in self._log_probabilities:
            return imported_file(self._log_probabilities[model], self.project.workspace)
        declared = self.models[model].logprobs
        return File.of(Path(declared)) if declared else None

    def log_probability_file(self, model: str, form: str) -> Path:
        """The file of a model's imported log-probabilities."""
        return self.project.workspace / "log_probabilities" / f"{model}{form}"

    @property
    def corpora_of_all(self) -> Sequence[str]:
        """The only corpus of the profile."""
        return (self.settings.corpus,)

    # For the study itself

    def debiasing_terms(self, dimension: str) -> StereotypeTerms:
        """The terms of a dimension's stereotypes, with the pairs in the debiasing losses."""
        return stereotypes_of(self.dimensions[dimension], printed=self.settings.pairs == "printed")

    @property
    def has_comments(self) -> bool:
        """Whether there are comments to seek phrases in, read or generated."""
        return bool(self.corpus.grammar or self.corpus.comments)

    def has_phrases(self, dimension: str) -> bool:
        """Whether there can be labelled phrases in a dimension: generated, found in comments, released or imported."""
        if self.imported(dimension):
            return True
        if self.grammar:
            return dimension in self.grammar.dimensions
        return dimension in self.corpus.phrases or bool(self.corpus.comments)

    def asked(self, key: Key) -> bool:
        """Whether a model is scored in a dimension."""
        model = self.models[key["model"]]
        included = model.dimensions is None or key["dimension"] in model.dimensions
        return model.scored and included and self.has_phrases(key["dimension"])

    def measured(self, key: Key) -> bool:
        """Whether a model has perplexities in a dimension, scored or published."""
        model = self.models[key["model"]]
        return self.asked(key) if model.scored else bool(self.published(key))

    def published(self, key: Key) -> list[dict[str, str]]:
        """The published perplexities of a model in a dimension, one row per phrase.

        Raises:
            FairnessError: as `published_perplexities` does.
        """
        name = self.models[key["model"]].perplexities
        assert name is not None
        return [row for row in published_perplexities(paths.data_file(name)) if row["dimension"] == key["dimension"]]

    def annotations_folder(self, dimension: str) -> Path:
        """The folder of a dimension's imported annotations, one file per annotator."""
        return self.project.workspace / "annotations" / dimension

    def imported(self, dimension: str) -> list[Path]:
        """The files of a dimension's imported annotations, one per annotator."""
        return [path for path in imported_files(self.annotations_folder(dimension)) if path.suffix == ".csv"]

    def given_model(self, model: str) -> Path:
        """The file of a model that was given to `audit`."""
        return self.project.workspace / "language_models" / f"{model}.yaml"

    @cached_property
    def grammar(self) -> StereotypeGrammar | None:
        """The grammar that generates everything; None if the corpus is read from files."""
        return StereotypeGrammar.load(self.corpus.grammar.file) if self.corpus.grammar else None

    def _add_model(self, key: str) -> None:
        """Reads a model, and its base before it; skips a model that only other studies audit."""
        if key in self.models:
            return
        project = self.project
        studies = project.named_studies(key)
        path = find("models", key, project.path, "models")
        declared, changes = read_yaml(path), project.profile.models[key]
        if studies is None and not self._can_audit(declared, key):
            return
        if studies is not None and NAME not in studies:
            return
        if "base" in declared or "debiasing" in declared:
            self.models[key] = self._debiased(key, declared, path)
            return
        content = validate(LanguageModelSpecification, declared, path).model_dump(exclude_unset=True)
        self.models[key] = changed(
            LanguageModelSpecification, ("models", key), content, changes, path, project.path
        ).located(path.parent)

    def _can_audit(self, declared: dict[str, Any], key: str) -> bool:
        """Whether this study audits a model whose file names no study: a language model without a base or training."""
        document = merged(declared, self.project.profile.models[key])
        if document.get("debiasing") in METHODS and document.get("base") not in self.project.profile.models:
            return True  # refused later, with a message
        return document.get("architecture") in ARCHITECTURES and "training" not in document and "base" not in document

    def _debiased(self, key: str, declared: dict[str, Any], path: Path) -> LanguageModelSpecification:
        """A model made from another one; it inherits every key that its file leaves out."""
        profile, changes = self.project.path, self.project.profile.models[key]
        method = method_named(
            METHODS, merged(declared, changes).get("debiasing"), profile if "debiasing" in changes else path
        )
        base_key = self.project.base_named(key, path)
        self._add_model(base_key)
        base = self.models.get(base_key)
        if base is None or base.base or not (base.weighted and base.causal):
            raise FairnessError(
                f"{path}: base: '{base_key}' must be a causal language model that is not debiased itself and has "
                "weights"
            )
        inherited = base.model_dump(exclude_unset=True, exclude={"published_as", "studies"})
        validate(LanguageModelSpecification, merged(inherited, declared), path)
        model = changed(
            LanguageModelSpecification, ("models", key), merged(inherited, declared), changes, path, profile
        ).located(path.parent)
        check_settings(method.settings, model.settings, declared, changes, path, profile, ("models", key))
        for dimension in model.dimensions or ():
            check_known(dimension, self.dimensions, f"{path}: dimensions", f"{profile} with stereotypes; those")
        return model


def published_perplexities(path: Path) -> list[dict[str, str]]:
    """The rows of a file of published perplexities; an unchanged file is read only once.

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
