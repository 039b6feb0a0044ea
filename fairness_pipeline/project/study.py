"""What a study is to all that studies share: one entry in `STUDIES`, a `Study`, and a `Part` of each profile."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, Generic, Literal, Protocol, TypeVar

from fairness_pipeline.foundation.yaml_files import Specification
from fairness_pipeline.workspace.lake import Key, Lake, Row

STUDIES = ("dialogue_fairness", "language_model_bias", "sentiment_equity", "implicit_bias", "annotator_bias")
"""The studies, in the order in which they are made; each is a folder of `fairness_pipeline.studies`."""


class Subject(Protocol):
    """What is audited: a model, a system, a classifier, a method."""

    @property
    def may_change(self) -> bool:
        """Whether it may answer otherwise tomorrow: an endpoint, or an id without a revision."""

    def identity(self) -> dict[str, object]:
        """Everything declared that decides what it answers, as JSON can hold it."""


class Profiled(Protocol):
    """What a part of a profile needs of the whole: `project.Project` is one."""

    name: str
    """Its key."""
    path: Path
    """Its file."""

    @property
    def workspace(self) -> Path:
        """The folder that holds everything this profile makes."""


S = TypeVar("S", bound=Specification)
"""A study's section of a profile."""


class Part(ABC, Generic[S]):
    """A study's part of one profile, read and checked. A study overrides what does not fit it.

    Args:
        project: The profile.
        settings: The study's section of it.

    Attributes:
        subjects: What is audited, by key; a name may stand for another subject in another study.
        axes: The keys along each of the study's axes, in the profile's order.
    """

    subjects: Mapping[str, Subject]
    axes: Mapping[str, Sequence[str]]

    def __init__(self, project: Profiled, settings: S) -> None:
        self.project = project
        self.settings = settings

    @abstractmethod
    def expected(self) -> list[Key]:
        """The partitions that the study's significance table can have."""

    @property
    def level(self) -> float:
        """The level of the study's verdicts."""
        return 0.05

    def by_default(self, key: Key, named: Collection[str] = ()) -> bool:
        """Whether a partition is made when only its values along the `named` axes are asked for by name."""
        return True

    def implied(self, key: Key) -> Key:
        """A key and what follows from it (a model's corpus)."""
        return key

    def base_of(self, key: Key) -> Key | None:
        """The same partition of what the subject was made from; None where it was made from nothing."""
        return None

    def seeds_of(self, key: Key) -> list[Key]:
        """The same partition of every training of a subject that is trained with several seeds; none for others."""
        return []

    def baselines_of(self, key: Key) -> list[Key]:
        """The same partition of every training of what a subject is compared with: its base, a control."""
        return []

    def measures(self) -> list[str]:
        """What the study's verdicts are about, by the name of the row; none where that is not known beforehand."""
        return []

    def readings(self) -> list[str]:
        """Other rows that a gate looks at if it is told to by name: a measure read otherwise."""
        return []

    def degenerate(self, key: Key, lake: Lake) -> str | None:
        """Why the verdicts of a measured partition say nothing (one answer to everything); None where they do."""
        return None

    def warnings(self, lake: Lake) -> list[str]:
        """What must be read before any verdict, a sentence each; stands beside the verdicts wherever they are shown."""
        return []

    @property
    def given(self) -> Mapping[str, Path]:
        """What a user gave to the workspace without a file of `data` (answers, scores), by the subject's key."""
        return {}

    def power_forecast(self, lake: Lake, dimension: str | None = None) -> list[str]:
        """What verdicts, in one dimension or all, can be expected to show before anything is asked: a line each."""
        return []

    def files(self) -> Iterator[Path]:
        """The local files that the study's partitions are made from, for a watcher of changes."""
        return iter(())

    def requests(self, asset: str, key: Key, lake: Lake, pending: Callable[[str, Key], bool]) -> int | None:
        """Requests to an endpoint that making a partition costs; None where what is `pending` must be made to know."""
        return 0


AnyPart = Part[Any]
"""A part as the code that all studies share sees it."""

P = TypeVar("P", bound=AnyPart)
"""A study's own part, so that the type checker knows its settings."""


@dataclass(frozen=True)
class Study(Generic[P]):
    """One study, as the code that all share sees it.

    Its significance table starts with the columns of `statistics.comparison.SIGNIFICANCE`, preceded by its partition.

    Args:
        name: Its folder, its section of a profile, its group in the UI.
        title: For a reader.
        section: What a profile may say under its name.
        part: Reads that section.
        subject: The axis of what is audited; `--model` names one of its keys.
        table: Its significance table.
        report: The asset of its report.
        asked: The asset for which subjects are asked.
        identity: Columns that tell the significance table's rows apart: those of the partition first, then the one that
            names a row for a reader, then others.
        shown: Columns of `results`.
        headings: The columns of its table of verdicts, after the partition's.
        heading: Under which of them a row of the significance table stands; None where it is not shown.
        label: What a row is called where several stand under one heading, or where a gate names it.
        groups: The names of side a and side b in a partition; of one row, whose `measure` the key then has, where rows
            compare different groups.
        finding: A row of a partition in one sentence, for a reader who sees nothing else.
        files: What reads its YAML files, by the folder of `data` that holds them.
        decisive: A row as its verdict reads it, where that is not its own values (another reading, a stratum).
        direction: What the sign of a row says, in two words, given the names of both sides.
        reservations: What would undo a row's finding, in words.
        control: What shows that an artefact is none of the system's doing, in words, with the control's figure.
        asides: What else the rows of a partition say, in sentences: findings that are no verdict on a group.
        gated: Whether a row's verdict is the audit's: shown in `run`'s table and looked at by `--fail-on`.
    """

    name: str
    title: str
    section: type[Specification]
    part: Callable[[Any, Any], P]
    subject: str
    table: str
    report: str
    asked: str
    identity: tuple[str, ...]
    shown: tuple[str, ...]
    headings: tuple[str, ...]
    heading: Callable[[Row], str | None]
    label: Callable[[Row], str]
    groups: Callable[[P, Key], tuple[str, str]]
    finding: Callable[[P, Key, Row], str]
    files: Mapping[str, type[Specification]] = field(default_factory=dict)
    decisive: Callable[[Row], Row] = lambda row: row
    direction: Callable[[Row, tuple[str, str]], str] = lambda row, groups: f"more: {groups[row['difference'] < 0]}"
    reservations: Callable[[P, Key, Row], list[str]] = lambda part, key, row: []
    control: Callable[[P, Key, Row], str] = lambda part, key, row: ""
    asides: Callable[[P, Key, list[Row]], list[str]] = lambda part, key, rows: []
    gated: Callable[[Row], bool] = lambda row: True

    @property
    def axes(self) -> tuple[str, ...]:
        """The axes of the significance table."""
        return tuple(column for column in self.identity if column in ("dimension", "corpus", self.subject))

    def load(self, what: Literal["lineage", "commands", "audit"]) -> ModuleType | None:
        """One of the study's modules, which may import much; None where it has none such."""
        name = f"{_PACKAGE}.{self.name}.{what}"
        try:
            return import_module(name)
        except ModuleNotFoundError as error:
            if error.name == name:
                return None
            raise


AnyStudy = Study[Any]

_PACKAGE = "fairness_pipeline.studies"


@cache
def _study(name: str) -> AnyStudy:
    study: AnyStudy = import_module(f"{_PACKAGE}.{name}.study").STUDY
    return study


def studies() -> list[AnyStudy]:
    """All studies, in the order of `STUDIES`."""
    return [_study(name) for name in STUDIES]
