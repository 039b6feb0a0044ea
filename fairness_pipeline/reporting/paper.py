"""Writes what the author of a paper pastes: tables, figures, a paragraph on methods, references."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from fairness_pipeline import __version__
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.files import replacing, write_text
from fairness_pipeline.foundation.libraries import library_versions
from fairness_pipeline.foundation.paths import data_file
from fairness_pipeline.foundation.plain_text import latex_table, markdown_table, number_of, some
from fairness_pipeline.lineage.lineage import Lineage
from fairness_pipeline.lineage.plan import Selection
from fairness_pipeline.lineage.state import State
from fairness_pipeline.project.project import Project
from fairness_pipeline.project.study import AnyPart, AnyStudy
from fairness_pipeline.reporting.evidence.facts import corpora_of
from fairness_pipeline.reporting.page import DRAWN
from fairness_pipeline.reporting.plots import overview_figure
from fairness_pipeline.reporting.results import NOT_MEASURED, Audit, audits_of, drawn_rows, gravest_rows, shown_verdict
from fairness_pipeline.statistics.units import with_unit
from fairness_pipeline.workspace.lake import Lake, Row

OURS = "fairnesspipeline"
"""The key of this project in the references."""
_LIBRARIES = ("numpy", "scipy", "torch", "transformers")
_FORMS = ("svg", "pdf")


def verdict_rows(study: AnyStudy, part: AnyPart, audits: Sequence[Audit]) -> list[Row]:
    """Returns the verdicts of a study as rows for readers, each with the numbers that its verdict rests on.

    Args:
        study: The study.
        part: The profile's part of it.
        audits: The audits to show; an unmeasured one becomes one row that says so.
    """
    rows: list[Row] = []
    for audit in audits:
        if not audit.rows:
            rows.append({**audit.key, "verdict": NOT_MEASURED})
        for row in filter(study.gated, audit.rows):
            groups, decisive = study.compared(part, audit.key, row), study.decisive(row)
            values = dict(zip(groups, (decisive["value_a"], decisive["value_b"]), strict=True))
            first, second = study.subtracted(groups)
            interval = [f"{decisive[end]:+.3g}" for end in ("ci_low", "ci_high") if decisive[end] is not None]
            rows.append(
                {
                    **audit.key,
                    "measure": study.label(row),
                    "first": f"{first}: {values[first]:.3g}",
                    "second": f"{second}: {values[second]:.3g}",
                    "difference": f"{with_unit(decisive).lstrip('+')} either way"
                    if decisive.get("either_way")
                    else with_unit(decisive),
                    "95% interval": " to ".join(interval),
                    "margin": f"{row['margin']:.3g}" if row["margin"] else None,
                    "p": _p(row["p_holm"]),
                    "n": row["n"],
                    "verdict": shown_verdict(row),
                }
            )
    return rows


def _p(value: float | None) -> str | None:
    if value is None:
        return None
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def write_paper(project: Project, lake: Lake, folder: Path, chosen: Selection | None = None) -> list[Path]:
    """Writes tables (LaTeX, Markdown) and a figure (SVG, PDF) of each study that has verdicts, a page on methods, and
    the references; returns the files.

    Args:
        project: The profile.
        lake: What was made.
        folder: The folder that the files go into; it is made. Files of the same names are replaced.
        chosen: The part of the profile that is written; all of it if None.

    Raises:
        FairnessError: nothing of the part has a verdict yet, or some of it is out of date.
    """
    chosen, state = chosen or Selection(), State(Lineage(project), lake)
    measured: list[tuple[AnyStudy, list[Audit]]] = []
    for study in project.studies:
        part = project.parts[study.name]
        every = audits_of(study, part, lake, state.stale_keys(study.table))
        with_verdicts = [audit for audit in every if any(map(study.gated, audit.rows))]
        if audits := [audit for audit in with_verdicts if chosen.matches(study, part, audit.key)]:
            measured.append((study, audits))
    if not measured:
        raise FairnessError(f"nothing of that has a verdict yet; run: fairness-pipeline run --profile {project.name}")
    if stale := [" ".join(audit.key.values()) for _, audits in measured for audit in audits if audit.stale]:
        raise FairnessError(
            f"out of date, so nothing was written: {some(stale)}; run: fairness-pipeline run --profile {project.name}"
        )
    folder.mkdir(parents=True, exist_ok=True)
    files: list[Path] = []
    methods = ["# Methods", ""]
    cited: dict[str, None] = {OURS: None}
    for study, audits in measured:
        part = project.parts[study.name]
        rows = verdict_rows(study, part, audits)
        names, cells = list(rows[0]), [list(row.values()) for row in rows]
        files += [
            write_text(folder / f"{study.name}.tex", latex_table(names, cells)),
            write_text(folder / f"{study.name}.md", markdown_table(names, cells) + "\n"),
            *_figures(study, part, audits, folder),
        ]
        methods += [f"## {study.title}", "", " ".join(_methods(study, part, audits)), ""]
        cited |= dict.fromkeys(study.cites)
    methods += ["## Software", "", _software(project), ""]
    files.append(write_text(folder / "methods.md", "\n".join(methods)))
    return [*files, write_text(folder / "references.bib", references(list(cited)))]


def _figures(study: AnyStudy, part: AnyPart, audits: Sequence[Audit], folder: Path) -> Iterator[Path]:
    """Writes the differences of the report's picture, with intervals, in margins; nothing where no row has a margin."""
    import matplotlib

    rows = drawn_rows(study, part, gravest_rows(study, audits))[:DRAWN]
    if not rows:
        return
    # Text stays text, and equal numbers give equal files.
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": study.name, "pdf.fonttype": 42}):
        figure = overview_figure(rows, study.contrast)
        for form in _FORMS:
            path = folder / f"{study.name}.{form}"
            with replacing(path) as temporary:
                date = {"Date": None} if form == "svg" else {"CreationDate": None}
                figure.savefig(temporary, format=form, metadata=date, bbox_inches="tight")
            yield path


def _methods(study: AnyStudy, part: AnyPart, audits: Sequence[Audit]) -> Iterator[str]:
    for axis in (study.subject, *(axis for axis in study.axes if axis != study.subject)):
        if axis != "corpus":
            yield f"{axis.capitalize()}: {', '.join(dict.fromkeys(audit.key[axis] for audit in audits))}."
    if corpora := [f"{corpus.name} ({corpus.citation})" for corpus in corpora_of(part, audits)]:
        yield f"Corpus: {'; '.join(corpora)}."
    yield study.method
    rows = [row for audit in audits for row in audit.rows if study.gated(row)]
    yield f"Measures: {'; '.join(dict.fromkeys(map(study.label, rows)))}."
    counts = sorted({row["n"] for row in rows})
    sizes = " to ".join(f"{count:,}" for count in dict.fromkeys((counts[0], counts[-1])))
    yield f"Each rests on {sizes} observations."
    seeds = {len(part.seeds_of(audit.key)) for audit in audits} | {row.get("seeds") or 0 for row in rows}
    if largest := max(seeds):
        yield f"Models were trained with up to {number_of(largest, 'seed')}."
    cited = "; ".join(f"@{key}" for key in study.cites or [OURS])
    yield (
        f"Within an audit p is adjusted by Holm's method, at a level of {part.level:g}. `fair` means that the "
        f"{100 * (1 - 2 * part.level):g}% interval of the difference lies inside the margin; what is neither "
        f"significant nor shown to be that small is `inconclusive` [{cited}]."
    )


def _software(project: Project) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in library_versions(*_LIBRARIES).items())
    return (
        f"Fairness pipeline {__version__} [@{OURS}] with {versions}; profile `{project.name}`, seed "
        f"{project.profile.seed}. `fairness-pipeline evidence --profile {project.name}` gives the settings of every "
        "model, and the SHA-256 of every table."
    )


def references(keys: Sequence[str]) -> str:
    """Returns the BibTeX entries of some keys of `data/references.bib`."""
    entries = dict(re.findall(r"(?ms)^(?=@\w+\{([^,]+),)(.*?^\}\n)", data_file("references.bib").read_text("utf-8")))
    return "\n".join(entries[key].replace("VERSION", __version__) for key in keys)
