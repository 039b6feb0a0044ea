"""The profile's section for this study: corpora that several people labelled, truth inference, and the tests."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import pydantic

from fairness_pipeline.annotation.item_classifiers import ItemClassifierSettings
from fairness_pipeline.annotation.truth_inference.registry import METHODS, settings_of
from fairness_pipeline.cli.given import check_free
from fairness_pipeline.corpora.annotators.annotated_corpus import AnnotatedCorpus
from fairness_pipeline.corpora.downloads import file_as_declared
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.inputs import File
from fairness_pipeline.foundation.yaml_files import Positive, Specification, load, validate
from fairness_pipeline.measures.annotators.annotator_groups import AnnotatorGroupsSettings
from fairness_pipeline.project.project import Project, each_once, find
from fairness_pipeline.project.study import Part, Subject
from fairness_pipeline.workspace.imports import imported_file
from fairness_pipeline.workspace.lake import Key

NAME = "annotator_bias"
_GIVEN, _ABOUT = "labels", "table.yaml"
"""The workspace's folder of labels given to `audit`, and the file about their columns in the folder of each."""


class AnnotatorBias(Specification):
    """The section of a profile."""

    corpora: tuple[str, ...]
    """Files of data/corpora. Labels given to `audit` are added to them."""
    methods: Annotated[dict[str, dict[str, Any]], pydantic.Field(min_length=1)] = {name: {} for name in METHODS}
    """Methods of truth inference, each with the arguments that differ from its defaults; all methods by default."""
    significance: AnnotatorGroupsSettings = AnnotatorGroupsSettings()
    """How groups are judged."""
    learn: tuple[str, ...] = ()
    """Corpora whose inferred labels classifiers learn from."""
    classifier: ItemClassifierSettings = ItemClassifierSettings()
    """How these classifiers learn."""
    seeds: Positive = 5
    """How often they learn; for a simulated corpus, once from each draw."""
    agreement: Annotated[float, pydantic.Field(gt=0.5, le=1)] = 0.8
    """Without gold labels, the majority label of a test item counts as its truth if more than this share agree."""
    examples: Positive = 10
    """Items that the report shows for each category: those on which its groups differ most."""

    @pydantic.field_validator("corpora")
    @classmethod
    def _each_once(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        return each_once(names) if names else ()


class Annotators(Subject):
    """The annotators of a corpus, which this study audits."""

    may_change = False

    def __init__(self, corpus: AnnotatedCorpus) -> None:
        self._corpus = corpus

    def identity(self) -> dict[str, object]:
        """The declaration of their corpus."""
        return self._corpus.model_dump()


class AnnotatorBiasPart(Part[AnnotatorBias]):
    """The section with its files, read and checked.

    Raises:
        FairnessError: a corpus or a method that the profile names is missing or wrong.
    """

    project: Project

    def __init__(self, project: Project, settings: AnnotatorBias) -> None:
        super().__init__(project, settings)
        self.corpora: dict[str, AnnotatedCorpus] = {}
        self._given: dict[str, Path] = {}
        self.folders: dict[str, Path] = {}
        for key in settings.corpora:
            path = find("corpora", key, project.path, f"{NAME}.corpora")
            self.corpora[key] = load(AnnotatedCorpus, path)
            self.folders[key] = path.parent
        for path in sorted((project.workspace / _GIVEN).glob(f"*/{_ABOUT}")):
            key = path.parent.name
            check_free(path, self.corpora, project.name, key)
            self.corpora[key], self.folders[key], self._given[key] = (
                load(AnnotatedCorpus, path),
                path.parent,
                path.parent,
            )
        for name, arguments in settings.methods.items():
            if name not in METHODS:
                raise FairnessError(
                    f"{project.path}: {NAME}.methods: expected some of {', '.join(METHODS)}, found '{name}'"
                )
            validate(settings_of(name), arguments, project.path, under=(NAME, "methods", name))
        for key in settings.learn:
            if key not in self.corpora or not self.corpora[key].learnable:
                known = [name for name, corpus in self.corpora.items() if corpus.learnable]
                raise FairnessError(
                    f"{project.path}: {NAME}.learn: '{key}' is no corpus of the profile with two classes and items "
                    f"with texts or features; those: {', '.join(known) or 'none'}"
                )
        self.subjects: Mapping[str, Subject] = {key: Annotators(corpus) for key, corpus in self.corpora.items()}
        self.axes = {"corpus": list(self.corpora), "method": list(settings.methods)}

    # For the shared code

    @property
    def level(self) -> float:
        """The significance level of the tests."""
        return self.settings.significance.alpha

    def expected(self) -> list[Key]:
        """Every corpus with annotators in groups."""
        return [{"corpus": key} for key in self.corpora if self.grouped(key)]

    def measures(self) -> list[str]:
        """The categories of all corpora."""
        return list(dict.fromkeys(name for corpus in self.corpora.values() for name in corpus.compared))

    # For the study itself

    @property
    def given(self) -> Mapping[str, Path]:
        """The folders of labels given to `audit`."""
        return self._given

    def folder_of(self, corpus: str) -> Path:
        """The folder of labels that are given to `audit`."""
        return self.project.workspace / _GIVEN / corpus

    def about(self, corpus: str) -> Path:
        """The file that describes the columns of these labels."""
        return self.folder_of(corpus) / _ABOUT

    def files(self, corpus: str) -> Mapping[str, File]:
        """The files that a corpus is read from, by their declared path.

        Raises:
            FairnessError: one is missing, or is not what was declared or given.
        """
        declared, folder = self.corpora[corpus].all_files(), self.folders[corpus]
        if corpus not in self._given:
            return {file.path: file_as_declared(file, folder) for file in declared}
        imported = {file.path: imported_file(folder / file.path, self.project.workspace) for file in declared}
        return {path: file for path, file in imported.items() if file}

    def grouped(self, corpus: str) -> bool:
        """Whether the annotators of a corpus are in groups."""
        return bool(self.corpora[corpus].groups)

    def infers(self, key: Key) -> bool:
        """Whether a method supports a corpus: models of groups need groups; many methods need two classes."""
        method, corpus = METHODS[key["method"]], key["corpus"]
        supported = method.kind.several or not self.corpora[corpus].several
        return supported and (self.grouped(corpus) or not method.of_groups)

    def modelled(self, key: Key) -> tuple[str, ...]:
        """The categories that a model of groups uses; none for other methods."""
        return self.corpora[key["corpus"]].modelled_categories if METHODS[key["method"]].of_groups else ()

    def infer_truths(self, corpus: str) -> dict[str, dict[str, Any]]:
        """The methods that infer one truth per item, with their settings."""
        methods = self.settings.methods.items()
        return {
            name: settings
            for name, settings in methods
            if METHODS[name].infers and self.infers({"corpus": corpus, "method": name})
        }

    def learns(self, key: Key) -> bool:
        """Whether classifiers learn from what a method infers."""
        return key["corpus"] in self.settings.learn and self.infers(key)
