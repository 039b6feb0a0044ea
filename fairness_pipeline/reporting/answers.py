"""Reports how old the answers behind verdicts are, with a line for each subject that may have changed or was a file."""

from collections.abc import Collection, Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

from fairness_pipeline.lineage.answer_ages import age_in_words, asked_at
from fairness_pipeline.lineage.assets import PartitionId, partition_id
from fairness_pipeline.lineage.lineage import Lineage
from fairness_pipeline.project.study import AnyStudy
from fairness_pipeline.reporting.results import Audit
from fairness_pipeline.workspace.lake import Key, Lake


def answer_ages(
    lineage: Lineage, lake: Lake, audits: Iterable[tuple[AnyStudy, Audit]], made: Collection[PartitionId] | None = None
) -> Iterator[str]:
    """Yields when each subject that may have changed was asked and which model has answered, and when the answers
    that came in a file were imported.

    Args:
        lineage: The lineage of the profile.
        lake: What has been made.
        audits: The audits that are shown, with their studies.
        made: The partitions that this run has made; answers in others are reported as reused. None if there is no run.
    """
    audits = [(study, audit) for study, audit in audits if audit.measured]
    query_times: dict[tuple[str, str], list[datetime]] = {}
    names: dict[tuple[str, str], dict[str, None]] = {}
    reused = set()
    for study, audit in audits:
        name, key = _asked_partition(lineage, study, audit)
        subject, card = lineage.project.parts[study.name].subjects[audit.key[study.subject]], None
        if subject.may_change:
            card = lake.card(name, key)
        if card and (time := asked_at(lineage, lake, name, key, card)):
            answerer = study.name, audit.key[study.subject]
            query_times.setdefault(answerer, []).append(time)
            names.setdefault(answerer, {}).update(dict.fromkeys(_model_names(card.figures, subject)))
            if made is not None and partition_id(name, key) not in made:
                reused.add(answerer)
    now = datetime.now(UTC)
    for name, model in dict.fromkeys((study.name, audit.key[study.subject]) for study, audit in audits):
        file = lineage.project.parts[name].given.get(model)
        if file and file.suffix != ".yaml":
            time = datetime.fromtimestamp(file.stat().st_mtime, UTC)
            dated = "of" if file.is_dir() else "imported"  # a folder of imports keeps the date of the file
            yield f"{model}: from a file {dated} {time:%Y-%m-%d %H:%M} UTC, {age_in_words(now - time)}"
    for answerer, times in query_times.items():
        age = now - min(times)
        models = f", model {', '.join(names[answerer])}" if names[answerer] else ""
        note = ", reused; --ask-again asks anew" if answerer in reused else ""
        yield f"{answerer[1]}: answers since {min(times):%Y-%m-%d %H:%M} UTC, {age_in_words(age)} at most{note}{models}"


def _asked_partition(lineage: Lineage, study: AnyStudy, audit: Audit) -> tuple[str, Key]:
    """Returns the partition in which an audit's subject was asked: that of `study.asked`, or one of its sources."""
    key = {axis: audit.key[axis] for axis in lineage.assets[study.asked].axes}
    sources = (source for source in lineage.sources(study.asked, key) if lineage.assets[source[0]].asks)
    return (study.asked, key) if lineage.assets[study.asked].asks else next(sources, (study.asked, key))


def _model_names(figures: dict[str, Any], subject: Any) -> list[str]:
    """Returns the models that answered according to the server; if it names none, the requested one."""
    if served := figures.get("served_model"):
        return [f"{name} as served" for name in served]
    return [source.model for source in [getattr(subject, "endpoint", None)] if source]
