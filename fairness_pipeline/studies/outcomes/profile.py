"""The profile's section for this study: tables of a user, and how their outcomes are judged."""

import re
from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

from fairness_pipeline.cli.given import check_free
from fairness_pipeline.corpora.downloads import file_as_declared
from fairness_pipeline.corpora.outcomes.formats import BENCHMARKS, MODEL
from fairness_pipeline.corpora.outcomes.groups import Groups
from fairness_pipeline.corpora.outcomes.specification import (
    MARGINS,
    MESSAGES,
    SHIPPED_MESSAGES,
    Outcome,
    OutcomeTable,
)
from fairness_pipeline.corpora.specification import CorpusFile
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.inputs import File
from fairness_pipeline.foundation.paths import data_file, yaml_files
from fairness_pipeline.foundation.yaml_files import Share, Specification, load, read_yaml, validate
from fairness_pipeline.measures.dialogue.settings import MeasureSettings
from fairness_pipeline.measures.outcomes.text_outcomes import expanded
from fairness_pipeline.project.project import Project, changed, find, merged
from fairness_pipeline.project.study import Part, Subject
from fairness_pipeline.statistics.equivalence import Margin
from fairness_pipeline.studies.outcomes.asked_groups import groups_file
from fairness_pipeline.studies.outcomes.asking import Model, model_of
from fairness_pipeline.workspace.imports import imported_file, imported_files
from fairness_pipeline.workspace.lake import Key

NAME = "outcomes"
_OF_CONDITIONS = ("condition", "conditions", "baseline", "control")
_GIVEN, _ABOUT = "trials", "table.yaml"
"""The workspace's folder of tables given to `audit`, and the file about their columns in the folder of each."""


class Outcomes(Specification):
    """The section of a profile. Tables given to `audit` are added to its tables."""

    tables: dict[str, dict[str, Any]] = {}
    """A table's key, and what the profile changes in its file; `like` names the file of another key."""
    alpha: Share = 0.05
    """Level of the tests."""
    measures: MeasureSettings = MeasureSettings()
    """How answers in words are scored."""


class TrialTable(Subject):
    """A table of trials, which this study audits, and the models that are asked its questions."""

    def __init__(self, specification: OutcomeTable, models: Mapping[str, Model]) -> None:
        self.specification = specification
        self.models = models

    @property
    def may_change(self) -> bool:
        """Whether a model that is asked may change."""
        return any(model.may_change for model in self.models.values())

    def identity(self) -> dict[str, object]:
        """The specification of its columns."""
        return self.specification.model_dump(mode="json", exclude_defaults=True)


class OutcomesPart(Part[Outcomes]):
    """The section with its files, read and checked.

    Raises:
        FairnessError: a table that the profile names is missing or wrong.
    """

    project: Project

    def __init__(self, project: Project, settings: Outcomes) -> None:
        super().__init__(project, settings)
        self.tables: dict[str, OutcomeTable] = {}
        self._folders: dict[str, Path] = {}
        for key, changes in settings.tables.items():
            path = find("tables", changes.get("like", key), project.path, f"{NAME}.tables")
            declared = read_yaml(path)
            validate(OutcomeTable, declared, path)
            declared, overrides = _changes(declared, changes, project.path.parent)
            table = changed(OutcomeTable, (NAME, "tables", key), declared, overrides, path, project.path)
            has_answers = table.format not in (*BENCHMARKS, MESSAGES) or table.format == "bbq"
            if not (has_answers or table.models or table.answers):
                raise FairnessError(
                    f"{project.path}: {NAME}.tables.{key}: {table.format} has only questions; name 'models' to ask, "
                    "or 'answers' files by model"
                )
            self.tables[key] = table
            self._folders[key] = path.parent
        self._given: dict[str, Path] = {}
        for path in sorted((project.workspace / _GIVEN).glob(f"*/{_ABOUT}")):
            name = path.parent.name
            check_free(path, self.tables, project.name, name)
            self.tables[name] = load(OutcomeTable, path)
            self._given[name] = path.parent
        asks = any(specification.format == MESSAGES for specification in self.tables.values())
        self._shipped = _shipped_margins() if asks else {}
        self.groups = {key: self._groups_of(key) for key in self.tables}
        for key, files in self.groups.items():
            # With matched groups the meanings are the sample: no span stands for a group.
            if any(groups.matched for groups in files.values()):
                self.tables[key] = self.tables[key].model_copy(update={"name": None, "cluster": "meaning"})
        self.models: dict[str, dict[str, Model]] = {key: self._models_of(key) for key in self.tables}
        self.subjects: Mapping[str, Subject] = {
            key: TrialTable(specification, self.models[key]) for key, specification in self.tables.items()
        }
        conditions = dict.fromkeys(
            name for specification in self.tables.values() for name in specification.condition_keys
        )
        self.axes = {"table": list(self.tables), "condition": list(conditions)}

    # For the shared code

    @property
    def level(self) -> float:
        """The significance level of the tests."""
        return self.settings.alpha

    def expected(self) -> list[Key]:
        """Every table with verdicts, in each of its conditions."""
        keys = [
            {"table": name, "condition": condition}
            for name in self.tables
            for condition in self.tables[name].condition_keys
        ]
        return [key for key in keys if self.judged(key)]

    def base_of(self, key: Key) -> Key | None:
        """The same table in its baseline."""
        baseline = self.tables[key["table"]].baseline
        return {**key, "condition": baseline} if baseline and baseline != key.get("condition") else None

    def baselines_of(self, key: Key) -> list[Key]:
        """The same table in its control."""
        control = self.tables[key["table"]].control
        return [{**key, "condition": control}] if control and control != key.get("condition") else []

    @property
    def thresholds(self) -> Mapping[str, tuple[Any, Any]]:
        """The margins of all outcomes."""
        return {
            f"tables.{table}.{name}.margin": (outcome.margin_of_kind, shipped.get(name, MARGINS[outcome.kind]))
            for table, specification in self.tables.items()
            for shipped in [self._shipped if specification.format == MESSAGES else {}]
            for name, outcome in expanded(specification.outcomes).items()
        }

    @property
    def given(self) -> dict[str, Path]:
        """The folders of tables given to `audit`, and the files of benchmarks that were given by name."""
        return {name: self.about(name) if self._by_name(name) else folder for name, folder in self._given.items()}

    # For the study itself

    def has(self, key: Key) -> bool:
        """Whether a table has a condition."""
        return key["condition"] in self.tables[key["table"]].condition_keys

    def judged(self, key: Key) -> bool:
        """Whether a partition has verdicts: its groups share items, or an outcome has a side of its own."""
        return self.has(key) and self.tables[key["table"]].judged

    def compared(self, key: Key) -> bool:
        """Whether a condition is compared with the baseline."""
        return self.judged(key) and self.base_of(key) is not None

    def rated(self, key: Key) -> bool:
        """Whether a partition has rates by group."""
        table = self.tables[key["table"]]
        return (
            self.has(key)
            and table.format != MESSAGES
            and bool(table.group)
            and any(outcome.kind == "yes_no" for outcome in expanded(table.outcomes).values())
        )

    def asks(self, key: Key) -> bool:
        """Whether a condition is a model that is asked here."""
        return key["condition"] in self.models[key["table"]]

    def asks_about_groups(self, key: Key) -> bool:
        """Whether a table is made of messages that are asked about groups."""
        return self.tables[key["table"]].format == MESSAGES

    def files(self, key: Key) -> tuple[File | None, dict[str, File], dict[str, CorpusFile]]:
        """The file of a table, its files by model, and those of them that are URLs.

        Raises:
            FairnessError: one is missing, or is not what was declared or given.
        """
        table = key["table"]
        if table in self._given and not self._by_name(table):
            return imported_file(self.given_file(table), self.project.workspace), {}, {}
        specification, folder = self.tables[table], self._folders.get(table, self.folder_of(table))
        declared = {**({"": specification.file} if specification.file else {}), **specification.answers}
        if specification.condition == MODEL:
            declared = {name: file for name, file in declared.items() if name in ("", key.get("condition"))}
        files = {name: file_as_declared(file, folder) for name, file in declared.items()}
        main = files.pop("", None)
        return main, files, {name: file for name, file in declared.items() if file.is_address}

    def _by_name(self, table: str) -> bool:
        """Whether models answer a table, here or in files: its files stay where they are."""
        return bool(self.tables[table].models or self.tables[table].answers)

    def _groups_of(self, table: str) -> dict[str, Groups]:
        """The files of groups that the messages of a table are asked about, by the name of their column."""
        folder = (self.about(table) if table in self._given else self.project.path).parent
        source = (self.project.path, f"{NAME}.tables.{table}.groups")
        files = [groups_file(name, folder, *source) for name in self.tables[table].groups]
        return {path.stem: load(Groups, path) for path in files}

    def _models_of(self, table: str) -> dict[str, Model]:
        specification = self.tables[table]
        known = yaml_files("models")
        models = {}
        for name, changes in specification.models.items():
            if not changes and name not in known:
                find("models", name, self.project.path, f"{NAME}.tables.{table}.models")  # raises
            path = known.get(name, self.about(table) if table in self._given else self.project.path)
            declared = read_yaml(known[name]) if name in known else {}
            models[name] = model_of(specification.format, merged(declared, changes), path)
        return models

    def given_file(self, table: str) -> Path:
        """The file of a table that was given to `audit`."""
        imported = imported_files(self._given[table])
        return imported[0] if imported else self.folder_of(table) / f"{table}.csv"

    def folder_of(self, table: str) -> Path:
        """The folder of a table that is given to `audit`."""
        return self.project.workspace / _GIVEN / table

    def about(self, table: str) -> Path:
        """The file that describes the columns of a table that is given to `audit`."""
        return self.folder_of(table) / _ABOUT


def _shipped_margins() -> Mapping[str, Margin]:
    """The margins in the shipped file of messages."""
    outcomes = read_yaml(data_file(SHIPPED_MESSAGES))["outcomes"]
    return {
        name: Outcome.model_validate(outcome).margin_of_kind
        for name, outcome in outcomes.items()
        if "margin" in outcome
    }


def _changes(declared: dict[str, Any], changes: dict[str, Any], folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """The remaining declarations of a table's file, and the profile's changes to them. Files and models are replaced
    whole, with their conditions; null removes a declaration. Relative paths of the profile start in its `folder`."""
    replaced = {key for key in ("file", "answers", "models") if key in changes}
    removed = replaced | {key for key, value in changes.items() if value is None}
    if replaced & {"answers", "models"}:
        removed |= {"answers", "models", *_OF_CONDITIONS}
    overrides = {key: value for key, value in deepcopy(changes).items() if value is not None and key != "like"}
    files = [overrides.get("file"), *(overrides.get("answers") or {}).values()]
    for file in (file for file in files if isinstance(file, dict) and isinstance(file.get("path"), str)):
        if not re.match(r"https?://|\$", file["path"]):
            file["path"] = str(folder / Path(file["path"]).expanduser())
    return {key: value for key, value in declared.items() if key not in removed}, overrides
