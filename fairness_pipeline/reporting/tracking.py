"""Logs the results of an audit in MLflow: a run for each model, with its settings, its verdicts and the reports."""

import re
from collections import Counter
from dataclasses import replace

from fairness_pipeline import __version__
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.lineage.plan import Plan
from fairness_pipeline.project.study import AnyStudy
from fairness_pipeline.reporting.evidence.facts import Subject, subjects
from fairness_pipeline.reporting.results import audits_of

_LONGEST = 500  # characters that MLflow allows in a parameter


def check_mlflow() -> None:
    """Raises FairnessError if MLflow is not installed."""
    try:
        import mlflow  # noqa: F401
    except ImportError:
        raise FairnessError("--mlflow needs MLflow: pip install 'fairness-pipeline[mlflow]'") from None


def log(plan: Plan, experiment: str) -> list[str]:
    """Logs every subject of a plan; `MLFLOW_TRACKING_URI` says where.

    Args:
        plan: What was run.
        experiment: MLflow's experiment; it is made if it does not exist.

    Returns:
        The ids of MLflow's runs.

    Raises:
        FairnessError: MLflow cannot be reached, or refuses.
    """
    import mlflow
    from mlflow.exceptions import MlflowException

    logged, ids = logged_subjects(plan), []
    try:
        mlflow.set_experiment(experiment)
        for subject in logged:
            with mlflow.start_run(run_name=f"{subject.name}, {subject.study}") as run:
                mlflow.set_tags(_tags(subject))
                mlflow.log_params(
                    {"profile": plan.project.name, "seed": plan.project.profile.seed, **_parameters(subject)}
                )
                mlflow.log_metrics(_metrics(subject))
                if (report := plan.lake.document_path(_study(plan, subject).report)).exists():
                    mlflow.log_artifact(str(report), "reports")
                ids.append(run.info.run_id)
    except (MlflowException, OSError) as error:
        raise FairnessError(
            f"--mlflow: {str(error).splitlines()[0]}; the results are kept; run again to log them"
        ) from None
    return ids


def logged_subjects(plan: Plan) -> list[Subject]:
    """Returns the subjects with verdicts that the run is about and that are up to date."""
    audits = []
    for study in plan.project.studies:
        part = plan.project.parts[study.name]
        chosen = [a for a in audits_of(study, part, plan.lake) if plan.selection.matches(study, part, a.key)]
        audits.append((study, chosen))
    current = [
        replace(subject, verdicts=[verdict for verdict in subject.verdicts if not verdict.stale])
        for subject in subjects(plan.lineage, plan.lake, audits)
    ]
    return [subject for subject in current if subject.verdicts]


def _study(plan: Plan, subject: Subject) -> AnyStudy:
    return next(study for study in plan.project.studies if study.title == subject.study)


def _tags(subject: Subject) -> dict[str, str]:
    counts = Counter(verdict.verdict for verdict in subject.verdicts)
    counts_by_tag = {f"fairness.{name.replace(' ', '_')}": str(count) for name, count in counts.items()}
    findings = [verdict.finding for verdict in subject.verdicts if verdict.finding]
    return {
        "fairness.study": subject.study,
        "fairness.version": __version__,
        **counts_by_tag,
        "mlflow.note.content": "\n\n".join(findings),
    }


def _parameters(subject: Subject) -> dict[str, str]:
    return {
        _name(name): value[:_LONGEST] for name, value in subject.declared.items() if name not in ("profile", "seed")
    }


def _metrics(subject: Subject) -> dict[str, float]:
    """Returns each verdict's difference, and whether it is biased."""
    metrics: dict[str, float] = {}
    for verdict in subject.verdicts:
        name = _name(f"{verdict.where}.{verdict.measure}")
        metrics |= {f"{name}.difference": float(verdict.value), f"{name}.biased": float(verdict.verdict == "biased")}
    return metrics


def _name(text: str) -> str:
    """Returns a name that MLflow accepts."""
    return re.sub(r"[^\w.\-/: ]+", "_", text, flags=re.ASCII)
