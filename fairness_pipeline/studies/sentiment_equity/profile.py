"""The profile's section for this study: sentiment systems, their training tweets, and how scores are judged."""

import re
from pathlib import Path
from typing import Annotated, Any

import pydantic

from fairness_pipeline.cli.given import check_free
from fairness_pipeline.corpora.sentiment.equity_sentences import DIMENSIONS
from fairness_pipeline.foundation import paths
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.yaml_files import Share, Specification, load
from fairness_pipeline.models.sentiment.specification import AFFECTS, SystemSpecification
from fairness_pipeline.project.project import Project, changed, find
from fairness_pipeline.project.study import Part
from fairness_pipeline.statistics.equivalence import Margin
from fairness_pipeline.workspace.imports import imported_files
from fairness_pipeline.workspace.lake import Key

NAME = "sentiment_equity"


class SentimentEquity(Specification):
    """The section of a profile. Files of scores and systems given to `audit` are added to its systems."""

    renamed = {"alike": "max_identical_share"}

    systems: dict[str, dict[str, Any]] = {}
    """A system's key, and what the profile changes in its file."""
    tweets: Annotated[tuple[str, ...], pydantic.Field(min_length=1)] = ("affect/sample.tsv",)
    """Files of training tweets, in the format of SemEval-2018 Task 1: absolute paths, or names inside the data
    folder."""
    margin: Margin = Margin(absolute=0.01)
    """The largest difference between the groups' scores (0 to 1) that does not matter."""
    alpha: Share = 0.05
    """Level of the tests."""
    max_identical_share: Annotated[float, pydantic.Field(gt=0, le=1)] = 0.9
    """From this share of identical scores on, a system is not judged."""


class EquityPart(Part[SentimentEquity]):
    """The section with its files, read and checked.

    Raises:
        FairnessError: a system that the profile names is missing or wrong, or no dimension is one of the corpus.
    """

    project: Project

    def __init__(self, project: Project, settings: SentimentEquity) -> None:
        super().__init__(project, settings)
        self.systems = {key: self._system(key, changes) for key, changes in settings.systems.items()}
        for path in sorted((project.workspace / "systems").glob("*.yaml")):
            self._add_given(path)
        self.score_files: dict[str, Path] = {}
        for file in imported_files(project.workspace / "scores"):
            self._add_scores(file)
        self.dimensions = [key for key in project.dimensions if key in DIMENSIONS]
        if self.systems and not self.dimensions:
            raise FairnessError(
                f"{project.path}: dimensions: sentiment systems are audited in {' and '.join(DIMENSIONS)}; expected "
                f"one of them, found {', '.join(project.dimensions)}"
            )
        self.subjects = self.systems
        self.axes = {"dimension": self.dimensions, "system": list(self.systems)}

    # For the shared code

    @property
    def level(self) -> float:
        """The significance level of the tests."""
        return self.settings.alpha

    def expected(self) -> list[Key]:
        """Every dimension of the corpus with every system."""
        return [{"dimension": dimension, "system": system} for dimension in self.dimensions for system in self.systems]

    def measures(self) -> list[str]:
        """The affects."""
        return list(AFFECTS)

    @property
    def given(self) -> dict[str, Path]:
        """Files of scores, and systems given to `audit`."""
        systems = sorted((self.project.workspace / "systems").glob("*.yaml"))
        return self.score_files | {path.stem: path for path in systems}

    # For the study itself

    def tweet_files(self) -> list[Path]:
        """The files of tweets that systems are trained on."""
        names = [Path(name).expanduser() for name in self.settings.tweets]
        return [name if name.is_absolute() else paths.data_file(str(name)) for name in names]

    def given_system(self, system: str) -> Path:
        """The path of the file of a system that was given to `audit`."""
        return self.project.workspace / "systems" / f"{system}.yaml"

    def _system(self, key: str, changes: dict[str, Any]) -> SystemSpecification:
        profile = self.project.path
        path = find("systems", key, profile, f"{NAME}.systems")
        declared = load(SystemSpecification, path).model_dump(exclude_unset=True)
        if declared["architecture"] == "scores":
            raise FairnessError(
                f"{path}: architecture: 'scores' needs no file here: give the scores to fairness-pipeline import"
            )
        return changed(SystemSpecification, (NAME, "systems", key), declared, changes, path, profile).located(
            path.parent
        )

    def _add_given(self, file: Path) -> None:
        check_free(file, self.systems, self.project.name)
        self.systems[file.stem] = load(SystemSpecification, file)

    def _add_scores(self, file: Path) -> None:
        """Adds a file of the workspace's `scores` as a system with the file's name; its content is read later."""
        key = re.sub(r"[^a-z0-9_.-]+", "_", file.stem.lower()).lstrip("_.-0123456789") or "scores"
        while key in self.systems:
            key += "-file"
        self.systems[key] = SystemSpecification(architecture="scores", affects=AFFECTS)
        self.score_files[key] = file
