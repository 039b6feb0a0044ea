"""Collects what an evidence pack says, before it is written in any form."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fairness_pipeline import __version__
from fairness_pipeline.foundation.libraries import library_versions
from fairness_pipeline.lineage.lineage import Lineage
from fairness_pipeline.lineage.plan import Selection, selected
from fairness_pipeline.lineage.state import State
from fairness_pipeline.project.study import AnyPart, AnyStudy
from fairness_pipeline.reporting.audited import Audited, audited_by
from fairness_pipeline.reporting.html import in_words
from fairness_pipeline.reporting.results import (
    Audit,
    audits_of,
    beside_subject,
    severity,
    shown_verdict,
    warnings_of,
    worst_first,
)
from fairness_pipeline.statistics.units import with_unit
from fairness_pipeline.statistics.verdicts import ARTEFACT, FINDINGS, Doubt
from fairness_pipeline.workspace.imports import Import, sealed_imports
from fairness_pipeline.workspace.lake import Lake, Row

_LIBRARIES = ("torch", "transformers", "dagster", "pandas", "pyarrow", "scipy", "scikit-learn")


@dataclass(frozen=True)
class Verdict:
    """One verdict with its interval, control and doubts.

    Attributes:
        subject: The model, system, classifier or corpus.
        where: The other parts of its partition: a dimension, a corpus.
        groups: The names of the first group and of the second.
        measure: Its name for readers.
        verdict: The verdict in a word.
        value: The first group minus the second.
        difference: The same with its unit.
        interval: The 95% interval, in the same unit; empty if there is none.
        p: Adjusted by Holm over the measures of its table; None if there is none.
        margin: The margin, in the measure's unit; None if the measure has none.
        finding: The finding in a sentence, if it is one.
        control: Why an artefact is not caused by the system; of other verdicts the note in the table.
        doubts: What could overturn it.
        stale: Whether it is out of date.
    """

    subject: str
    where: str
    groups: tuple[str, str]
    measure: str
    verdict: str
    value: float
    difference: str
    interval: str
    p: float | None
    margin: float | None
    finding: str
    control: str
    doubts: list[Doubt]
    stale: bool


@dataclass(frozen=True)
class Subject:
    """What is known of a subject: the settings that it is declared with, in words, how well it does its task, its
    verdicts, and the hashes of what they are about."""

    name: str
    study: str
    kind: str
    declared: dict[str, str]
    quality: list[str]
    verdicts: list[Verdict]
    not_measured: list[str]
    audited: list[Audited]


@dataclass(frozen=True)
class Corpus:
    """A corpus as it is declared."""

    name: str
    licence: str
    citation: str
    declared: dict[str, str]


@dataclass(frozen=True)
class Hash:
    """The hash of all bytes of a partition's files."""

    asset: str
    partition: str
    sha256: str


@dataclass(frozen=True)
class Facts:
    """Everything that an evidence pack says. `left_out` audits of the profile have verdicts that are not in it."""

    profile: str
    description: str
    purpose: str
    responsible: str
    data_period: str
    made: datetime
    version: str
    libraries: dict[str, str]
    seed: int
    left_out: int
    warnings: list[str]
    terms: dict[str, str]
    subjects: list[Subject]
    rates: list[Row]
    corpora: list[Corpus]
    imports: list[Import]
    hashes: list[Hash]

    @property
    def doubts(self) -> list[str]:
        """The meaning of the doubts, each once."""
        meanings = (
            doubt.means for subject in self.subjects for verdict in subject.verdicts for doubt in verdict.doubts
        )
        return list(dict.fromkeys(meanings))

    def as_json(self) -> dict[str, Any]:
        """Returns the facts for machines."""
        content = {**asdict(self), "made": self.made.isoformat()}
        for data, subject in zip(content["subjects"], self.subjects, strict=True):
            data["audited"] = [audited.model_dump() for audited in subject.audited]
        return {**content, "imports": [imported.model_dump(mode="json") for imported in self.imports]}


def facts(lineage: Lineage, lake: Lake, chosen: Selection | None = None) -> Facts:
    """Collects what a workspace holds now.

    Args:
        lineage: The profile's lineage.
        lake: Its lake.
        chosen: The part of the profile that the pack is about; all of it if None.
    """
    project, selection = lineage.project, chosen or Selection(everything=True)
    every = [(study, audits_of(study, project.parts[study.name], lake)) for study in project.studies]
    audits = [
        (study, [audit for audit in audits if selection.matches(study, project.parts[study.name], audit.key)])
        for study, audits in every
    ]
    names = {audit.key[study.subject] for study, study_audits in audits for audit in study_audits}
    corpora = {
        corpus.name: corpus
        for study, study_audits in audits
        for corpus in corpora_of(project.parts[study.name], study_audits)
    }
    return Facts(
        profile=project.name,
        description=project.profile.description,
        **project.profile.evidence.model_dump(),
        made=datetime.now(UTC).replace(microsecond=0),
        version=__version__,
        libraries=library_versions(*_LIBRARIES),
        seed=project.profile.seed,
        left_out=_count_measured(every) - _count_measured(audits),
        warnings=[
            warning
            for study, study_audits in audits
            if study_audits
            for warning in warnings_of(study, project.parts[study.name], lake)
        ],
        terms={
            name: meaning
            for study, study_audits in audits
            if any(audit.measured for audit in study_audits)
            for name, meaning in study.terms.items()
        },
        subjects=subjects(lineage, lake, audits),
        rates=[
            row
            for study in project.studies
            for row in study.rates(project.parts[study.name], lake)
            if selection.matches(study, project.parts[study.name], row)
        ],
        corpora=list(corpora.values()),
        imports=[
            imported
            for imported in sealed_imports(project.workspace)
            if chosen is None or Path(imported.place).stem in names
        ],
        hashes=[
            Hash(name, " ".join(key.values()), digest)
            for name, key in selected(lineage, selection)
            if (digest := lake.bytes_of(name, key))
        ],
    )


def _count_measured(audits: Iterable[tuple[AnyStudy, list[Audit]]]) -> int:
    return sum(audit.measured for _, study_audits in audits for audit in study_audits)


def subjects(
    lineage: Lineage, lake: Lake, audits: Iterable[tuple[AnyStudy, list[Audit]]] | None = None
) -> list[Subject]:
    """Returns every subject with its verdicts.

    Args:
        lineage: The profile's lineage.
        lake: Its lake.
        audits: The audits of each study, if they are read already.
    """
    project, state = lineage.project, State(lineage, lake)
    if audits is None:
        audits = [(study, audits_of(study, project.parts[study.name], lake)) for study in project.studies]
    return [
        subject
        for study, study_audits in audits
        for subject in _subjects_of(study, project.parts[study.name], study_audits, state)
    ]


def _subjects_of(study: AnyStudy, part: AnyPart, study_audits: list[Audit], state: State) -> Iterator[Subject]:
    audits = worst_first(study, study_audits)
    for name in dict.fromkeys(audit.key[study.subject] for audit in audits):
        subject_audits = [audit for audit in audits if audit.key[study.subject] == name]
        yield Subject(
            name,
            study.title,
            study.subject,
            _declared(part.subjects[name].identity()),
            [
                ": ".join(filter(None, [beside_subject(study, audit), quality]))
                for audit in subject_audits
                if audit.measured and (quality := study.quality(part, audit.key, state.lake))
            ],
            [verdict for audit in subject_audits if audit.measured for verdict in _verdicts(study, part, audit, state)],
            [audit.name for audit in subject_audits if not audit.measured],
            [audited_by(state.lineage, state.lake, study, audit.key) for audit in subject_audits if audit.measured],
        )


def _verdicts(study: AnyStudy, part: AnyPart, audit: Audit, state: State) -> Iterator[Verdict]:
    stale = state.stale(study.table, audit.key)
    for row in sorted(filter(study.gated, audit.rows), key=severity(study)):
        groups = study.subtracted(study.compared(part, audit.key, row))
        decisive, verdict = study.decisive(row), shown_verdict(row)
        doubts = study.doubts(part, audit.key, row) if verdict == "biased" else []
        low, high = (
            decisive[end] if decisive[end] is None else f"{decisive[end]:+.3g}" for end in ("ci_low", "ci_high")
        )
        yield Verdict(
            audit.key[study.subject],
            beside_subject(study, audit),
            groups,
            study.label(row),
            verdict,
            float(f"{decisive['difference']:.6g}"),
            with_unit(decisive),
            f"{low} to {high}" if low is not None and high is not None else "",
            row["p_holm"],
            row["margin"] or None,
            study.finding(part, audit.key, row) if verdict in FINDINGS else "",
            study.control(part, audit.key, row) if verdict == ARTEFACT else row.get("note") or "",
            doubts,
            stale,
        )


def corpora_of(part: AnyPart, audits: Sequence[Audit]) -> Iterator[Corpus]:
    """The corpora that measured audits rest on."""
    measured = [audit.key for audit in audits if audit.measured]
    used = {corpus for key in measured if (corpus := part.implied(key).get("corpus"))}
    known: dict[str, Any] = {name: entry for name, entry in getattr(part, "corpora", {}).items() if name in used}
    if measured and (single := getattr(part, "corpus", None)):
        known |= dict.fromkeys(part.corpora_of_all, single)
    for name, entry in known.items():
        specification: Any = getattr(entry, "specification", entry)
        declared = specification.model_dump(exclude_defaults=True, exclude={"licence", "citation"})
        yield Corpus(name, specification.licence, specification.citation, _declared(declared))


def _declared(settings: dict[str, Any]) -> dict[str, str]:
    """Describes settings for readers, without what is not set."""
    known = {name: value for name, value in settings.items() if value not in (None, {}, (), [])}
    return {name.replace("_", " "): in_words(value) for name, value in known.items()}
