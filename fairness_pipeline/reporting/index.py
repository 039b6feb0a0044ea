"""The page above all reports of a profile: what each study found, and links to it."""

from datetime import UTC, datetime
from pathlib import Path

from fairness_pipeline.foundation.files import replacing
from fairness_pipeline.project.project import Project
from fairness_pipeline.project.study import AnyStudy
from fairness_pipeline.reporting.html import template
from fairness_pipeline.reporting.results import audits_of, counted, findings, worst_first
from fairness_pipeline.workspace.lake import Lake

_HERE = Path(__file__).parent
_TOLD = 3


def write_index(project: Project, lake: Lake) -> Path | None:
    """Writes `reports/index.html` from what the lake holds now; None where no study has a report yet.

    Args:
        project: The profile.
        lake: Its lake.
    """
    made = [study for study in project.studies if lake.document_path(study.report).exists()]
    if not made:
        return None
    html = template(_HERE, "index.html.j2").render(
        profile=project.name,
        description=project.profile.description,
        studies=[_entry(study, project, lake) for study in made],
        waiting=[study.title for study in project.studies if study not in made],
        made=datetime.now(UTC),
    )
    path = lake.document_path("index")
    with replacing(path) as temporary:
        temporary.write_text(html, encoding="utf-8")
    return path


def _entry(study: AnyStudy, project: Project, lake: Lake) -> dict[str, object]:
    audits = worst_first(study, audits_of(study, project.parts[study.name], lake))
    return {
        "study": study,
        "counts": counted(study, audits),
        "warnings": project.parts[study.name].warnings(lake),
        "findings": findings(study, project.parts[study.name], audits)[:_TOLD],
        "not_measured": [audit.name for audit in audits if not audit.measured],
        "degenerate": [f"{audit.name}: {audit.degenerate}" for audit in audits if audit.degenerate],
    }
