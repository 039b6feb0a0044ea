"""The interface of a study for shared code: an entry in `STUDIES`, a `Study`, and a `Part` of each profile."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, Generic, Literal, NamedTuple, Protocol, TypeVar

from fairness_pipeline.foundation.plain_text import number_of
from fairness_pipeline.foundation.yaml_files import Specification
from fairness_pipeline.statistics.verdicts import Doubt
from fairness_pipeline.workspace.lake import Key, Lake, Row

STUDIES = (
    "dialogue_fairness", "language_model_bias", "sentiment_equity", "implicit_bias", "annotator_bias", "outcomes",
)  # fmt: skip
"""The studies in the order in which they are made; each is a folder in `fairness_pipeline.studies`."""


class Subject(Protocol):
    """The subject of an audit: a model, a system, a classifier or a method."""

    @property
    def may_change(self) -> bool:
        """Whether its answers may change over time: an endpoint, or an id without a revision."""

    def identity(self) -> dict[str, object]:
        """All declarations that influence its answers, as JSON values."""


class Profiled(Protocol):
    """What a part needs to know about its profile; `project.Project` implements it."""

    name: str
    """The profile's key."""
    path: Path
    """The profile's file."""

    @property
    def workspace(self) -> Path:
        """The folder for everything that this profile makes."""


S = TypeVar("S", bound=Specification)
"""The type of a study's section in a profile."""


class Part(ABC, Generic[S]):
    """A study's part of one profile, read and checked. A study overrides the defaults that do not fit.

    Attributes:
        subjects: The subjects of the audit, by key. The same key may mean another subject in another study.
        axes: The keys along each of the study's axes, in the profile's order.
    """

    subjects: Mapping[str, Subject]
    axes: Mapping[str, Sequence[str]]
    subject = ""
    """The axis of the subjects, if they may have a base."""

    def __init__(self, project: Profiled, settings: S) -> None:
        self.project = project
        self.settings = settings

    @abstractmethod
    def expected(self) -> list[Key]:
        """The partitions that the study's significance table can have."""

    @property
    def level(self) -> float:
        """The significance level of the study's verdicts."""
        return 0.05

    def by_default(self, key: Key, named: Collection[str] = ()) -> bool:
        """Whether a partition is made if only its values along the `named` axes are requested by name."""
        return True

    def implied(self, key: Key) -> Key:
        """A key, extended by the values that follow from it (such as a model's corpus)."""
        return key

    def base_of(self, key: Key) -> Key | None:
        """The same partition of the subject's base; None if the subject has no base."""
        base = getattr(self.subjects[key[self.subject]], "base", None) if self.subject in key else None
        return {**key, self.subject: base} if base else None

    def seeds_of(self, key: Key) -> list[Key]:
        """The same partition for each training seed of a subject with several seeds; empty for other subjects."""
        return []

    def baselines_of(self, key: Key) -> list[Key]:
        """The same partition for each training of the subject's baselines: its base, a control."""
        return []

    def shared_with(self, key: Key) -> Key | None:
        """The partition of the subject that makes the results which several share: by default its own; None if nothing
        is shared."""
        return key

    def measures(self) -> list[str]:
        """The measures of the study's verdicts, by the name of the row; empty if they are not known beforehand."""
        return []

    def readings(self) -> list[str]:
        """Further rows that a gate checks only if they are named: other versions of a measure."""
        return []

    @property
    def thresholds(self) -> Mapping[str, tuple[Any, Any]]:
        """The settings outside of the section that decide verdicts: by key, the value and the shipped value."""
        return {}

    @property
    def corpora_of_all(self) -> Sequence[str]:
        """The keys of the corpora that assets without a corpus axis read."""
        return ()

    @property
    def given(self) -> Mapping[str, Path]:
        """The user's files in the workspace that have no file in `data` (answers, scores), by the subject's key."""
        return {}


AnyPart = Part[Any]
"""A part, in the type that shared code uses."""

P = TypeVar("P", bound=AnyPart)
"""The type of a study's own part, so that the type checker knows its settings."""


Pending = Callable[[str, Key], bool]
"""Whether a partition of an asset is still to be made."""


class Judged(NamedTuple):
    """A row of a significance table, and its partition."""

    key: Key
    row: Row


def more_pairs(rows: Sequence[Judged]) -> str:
    """How many pairs a conclusion on rows without one would need, if that is known."""
    needed = [row["pairs_needed"] for _, row in rows if row.get("pairs_needed")]
    clusters = [(row["clusters_needed"], row["clusters"]) for _, row in rows if row.get("clusters_needed")]
    if not needed and clusters:
        clusters_needed, current = max(clusters)
        return f"more pairs would not help; about {clusters_needed:,} group words are needed (now {current:,})"
    if not needed:
        return "more pairs, or a wider margin"
    current = max(row["n"] for _, row in rows)
    fewest = f"{min(needed):,} to " if min(needed) < max(needed) else ""
    count = f"{fewest}{number_of(max(needed), 'pair')} (now {current:,})"
    return f"{count} would give 80% power to show fairness if there is no difference"


def compare_debiased(name: str, subjects: Mapping[str, Any], run: str, page: str, otherwise: str) -> str:
    """Advice to compare the profile's debiased versions of a biased subject, or what else to do.

    Args:
        name: The subject.
        subjects: The profile's subjects.
        run: The command that audits one of them, up to its name.
        page: The page on debiasing methods.
        otherwise: What to do if there are no debiased versions.
    """
    if subjects[name].base:
        return f"this method leaves a difference: try another ({page})"
    debiased = [key for key, subject in subjects.items() if subject.base == name]
    return f"compare its debiased versions: {', '.join(debiased)} ({run} {debiased[0]})" if debiased else otherwise


@dataclass(frozen=True)
class Study(Generic[P]):
    """One study, as shared code uses it.

    Its significance table has its partition's columns, followed by those of `statistics.comparison.SIGNIFICANCE`.

    Args:
        name: Its folder, its section of a profile, and its group in the UI.
        title: Its title for readers.
        section: The type of its section in a profile.
        part: Reads that section.
        subject: The axis of the subjects; `--model` names one of its keys.
        table: Its significance table.
        report: The asset of its report.
        asked: The asset that queries the subjects.
        identity: Columns that identify a row of the significance table: first those of the partition, then the one that
            names the row for readers, then others.
        headings: The columns of its table of verdicts, after the partition's columns.
        heading: The heading that shows a row of the significance table; None if the row is not shown.
        label: The name of a row, for a gate or where several rows share a heading.
        groups: The names of side a and side b in a partition. If rows compare different groups, the key also has the
            `measure` of the row.
        finding: A sentence about a row of a partition, for readers who see nothing else.
        files: The types of its YAML files, by the folder of `data` with the files.
        decisive: The row that a verdict is based on, if that is not the row itself (another version, a stratum).
        contrast: Which group's value is subtracted from which in its differences.
        direction: The meaning of a row's sign in two words, given the names of both sides.
        doubts: What would invalidate a row's finding.
        control: Explains why an artefact is not caused by the system, in words, with the control's figure.
        asides: Sentences about other findings in a partition's rows, which are no verdicts on a group.
        harmful: Whether a row counts something that harms its recipient; reported before other differences.
        degenerate: Why the verdicts of a measured partition are degenerate (one answer to everything); None if not.
        warnings: Warnings about the verdicts, one sentence each; shown wherever verdicts are shown.
        power_forecast: The expected power of the verdicts in one dimension or all, before anything is queried; one line
            each.
        rates: The rates by group of all rows of the data, which an evidence pack shows; empty for a study
            that judges balanced texts.
        requests: The number of endpoint requests to make a partition; None if a pending partition must be made first.
        observed: The observation behind a verdict: a pair, an item.
        unseen: What an audit does not cover.
        legend: What abbreviations in its headings mean, for the line below its table of verdicts.
        more: How rows without a conclusion can get one: how much more data they need, and how to get it.
        cure: A remedy for what rows show, or an alternative, with its command; empty if none is known.
        older: Columns that tables of earlier versions lack, with the value to assume; they come last.
        terms: Explanations of its measures' names, for readers who know none of them.
        quality: How well a subject does its task in a partition, in figures; empty if the study does not measure it.
        method: How its verdicts are reached, in sentences for a paper.
        cites: The references of a paper that uses it, by key of `data/references.bib`.
        gated: Whether a row's verdict counts for the audit: `run` shows it in its table, and `--fail-on` checks it.
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
    headings: tuple[str, ...]
    heading: Callable[[Row], str | None]
    label: Callable[[Row], str]
    groups: Callable[[P, Key], tuple[str, str]]
    finding: Callable[[P, Key, Row], str]
    files: Mapping[str, type[Specification]] = field(default_factory=dict)
    decisive: Callable[[Row], Row] = lambda row: row
    direction: Callable[[Row, tuple[str, str]], str] = lambda row, groups: f"more: {groups[row['difference'] < 0]}"
    doubts: Callable[[P, Key, Row], list[Doubt]] = lambda part, key, row: []
    control: Callable[[P, Key, Row], str] = lambda part, key, row: ""
    asides: Callable[[P, Key, list[Row]], list[str]] = lambda part, key, rows: []
    harmful: Callable[[Row], bool] = lambda row: False
    gated: Callable[[Row], bool] = lambda row: True
    older: Mapping[str, Any] = field(default_factory=dict)
    observed: str = "pair"
    unseen: str = "other messages, words, languages"
    legend: str = ""
    terms: Mapping[str, str] = field(default_factory=dict)
    method: str = ""
    cites: tuple[str, ...] = ()
    contrast: Literal["first minus second", "second minus first"] = "first minus second"
    more: Callable[[P, Sequence[Judged]], str] = lambda part, rows: "more data of the same kind, or a wider margin"
    cure: Callable[[P, Sequence[Judged]], str] = lambda part, rows: ""
    degenerate: Callable[[P, Key, Lake], str | None] = lambda part, key, lake: None
    warnings: Callable[[P, Lake], list[str]] = lambda part, lake: []
    power_forecast: Callable[[P, Lake, str | None], list[str]] = lambda part, lake, dimension: []
    rates: Callable[[P, Lake], list[Row]] = lambda part, lake: []
    quality: Callable[[P, Key, Lake], str] = lambda part, key, lake: ""
    requests: Callable[[P, str, Key, Lake, Pending], int | None] = lambda part, asset, key, lake, pending: 0

    @property
    def axes(self) -> tuple[str, ...]:
        """The axes of the significance table."""
        return tuple(column for column in self.identity if column in ("dimension", "corpus", "condition", self.subject))

    def compared(self, part: P, key: Key, row: Row) -> tuple[str, str]:
        """The names of the groups that a row compares: its own `group` and `against`, or the partition's groups."""
        if row.get("group") and row.get("against"):
            return str(row["group"]), str(row["against"])
        return self.groups(part, {**key, "measure": row["measure"]})

    def subtracted(self, groups: tuple[str, str]) -> tuple[str, str]:
        """The group whose value comes first in a difference, and the one whose value is subtracted."""
        return groups if self.contrast == "first minus second" else groups[::-1]

    def reservations(self, part: P, key: Key, row: Row) -> list[str]:
        """What would invalidate a row's finding, in a few words each."""
        return [doubt.said for doubt in self.doubts(part, key, row)]

    def load(self, module: Literal["lineage", "commands", "audit", "samples"]) -> ModuleType | None:
        """One of the study's modules, whose imports may take long; None if the study has no such module."""
        name = f"{_PACKAGE}.{self.name}.{module}"
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
