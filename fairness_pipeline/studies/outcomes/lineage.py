"""Study 6: do the outcomes in a user's table depend on the group that they are about?

Read top to bottom, this file is the lineage: messages and groups to questions, answers, trials to cells, verdicts,
changes between conditions, rates of all rows.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from fairness_pipeline.corpora.downloads import located
from fairness_pipeline.corpora.outcomes.formats import BENCHMARKS, MODEL, Answers, read_format
from fairness_pipeline.corpora.outcomes.formats.messages import trials_of_answers
from fairness_pipeline.corpora.outcomes.formats.stereoset import LMS, icat
from fairness_pipeline.corpora.outcomes.groups import Groups
from fairness_pipeline.corpora.outcomes.messages import read_messages
from fairness_pipeline.corpora.outcomes.questions import GROUP_QUESTIONS, ask
from fairness_pipeline.corpora.outcomes.specification import Outcome, OutcomeTable
from fairness_pipeline.corpora.outcomes.trials import Trials, read_trials
from fairness_pipeline.corpora.specification import CorpusFile
from fairness_pipeline.foundation import checks
from fairness_pipeline.foundation.inputs import File, optional, unhashed
from fairness_pipeline.foundation.libraries import library_versions
from fairness_pipeline.lineage.assets import Assets, Result, of_base, of_baselines
from fairness_pipeline.lineage.run import Run
from fairness_pipeline.lineage.shelf import Shelf
from fairness_pipeline.measures.outcomes.cells import OUTCOME_CELLS, cell_table, means_beside
from fairness_pipeline.measures.outcomes.changes import OUTCOME_CHANGES, changes_between
from fairness_pipeline.measures.outcomes.group_rows import Judging
from fairness_pipeline.measures.outcomes.group_words import GROUP_WORDS, group_words
from fairness_pipeline.measures.outcomes.outcome_significance import judge_outcomes
from fairness_pipeline.measures.outcomes.rates import OUTCOME_RATES, rates_by_group
from fairness_pipeline.measures.outcomes.rows import OUTCOME_SIGNIFICANCE
from fairness_pipeline.measures.outcomes.text_outcomes import TextScorers, expanded, scored
from fairness_pipeline.models.folders import model_folder
from fairness_pipeline.reporting.document import LIBRARIES, Described, described, report_of
from fairness_pipeline.reporting.text_plot import judged
from fairness_pipeline.studies.outcomes.asking import BENCHMARK_ANSWERS, Asking, by_id
from fairness_pipeline.studies.outcomes.profile import NAME, OutcomesPart
from fairness_pipeline.studies.outcomes.report import render_report
from fairness_pipeline.studies.outcomes.study import STUDY
from fairness_pipeline.workspace.lake import Key

asset = Assets(OutcomesPart)
of_trials = Assets(OutcomesPart, stage="trials", axes=("table", "condition"))
of_verdicts = Assets(
    OutcomesPart, stage="verdicts", axes=("table", "condition"), covers=lambda part, key: part.judged(key)
)


def _beside(table: OutcomeTable, file: File | None) -> File | None:
    """The second file of a benchmark that has one."""
    second_file = BENCHMARKS[table.format].second_file(file.path) if file and table.format in BENCHMARKS else None
    return File.of(second_file) if second_file else None


def _asking(part: OutcomesPart, key: Key) -> Asking:
    table, model = part.tables[key["table"]], part.models[key["table"]][key["condition"]]
    file, _, addresses = part.files(key)
    source = model.huggingface
    return Asking(
        table.format,
        None if part.asks_about_groups(key) else file,
        model.without("studies", "published_as", "dimensions", "corpus"),
        model_folder(source.name) if source else None,
        library_versions(*model.libraries),
        part.project.query_epochs.get((NAME, key["table"])),
        addresses,
        _beside(table, file),
    )


@dataclass(frozen=True)
class QuestionInputs:
    """The messages, the groups that they are asked about, by column, and how many spans of each."""

    messages: File
    groups: Mapping[str, Groups]
    spans: int


def _question_inputs(part: OutcomesPart, key: Key) -> QuestionInputs:
    file, _, _ = part.files(key)
    assert file is not None
    return QuestionInputs(file, part.groups[key["table"]], part.tables[key["table"]].spans)


@asset(
    stage="questions",
    axes=("table",),
    covers=lambda part, key: part.asks_about_groups(key),
    inputs=_question_inputs,
    code_version="1",
    libraries=("numpy",),
    schema=GROUP_QUESTIONS,
    checks=(checks.not_empty,),
)
def group_questions(inputs: QuestionInputs, run: Run) -> Result:
    """Each message with a span of each group in its place; questions that cannot be asked are named with the reason."""
    questions = ask(read_messages(inputs.messages.path), inputs.groups, inputs.spans, run.profile_seed)
    left_out = questions.left_out.to_pylist()
    figures = {"questions": questions.table.num_rows, "left_out": left_out}
    tables = {"sample": questions.table.select(["groups", "system", "text"]).slice(0, 10)}
    return Result(questions.table, figures, tables={**tables, "left out": questions.left_out.slice(0, 50)})


@asset(
    stage="answers",
    axes=("table", "condition"),
    covers=lambda part, key: part.asks(key),
    inputs=_asking,
    reads={"questions": group_questions},
    code_version="1",
    schema=BENCHMARK_ANSWERS,
    checks=(checks.not_empty,),
    asks=True,
)
def benchmark_answers(asking: Asking, questions: pa.Table | None, run: Run) -> Result:
    """What a model answers to questions, or how likely it finds a benchmark's sentences; each text once."""
    table, figures = asking.answers(questions, run)
    return Result(table, {"texts": table.num_rows, **figures}, tables={"sample": table.slice(0, 5)})


@dataclass(frozen=True)
class Source:
    """A table's files and columns, the condition, and the scorers of answers in words."""

    table: OutcomeTable
    file: File | None
    answers: Mapping[str, File]
    condition: str
    scorers: TextScorers | None
    addresses: Mapping[str, CorpusFile] = unhashed()
    beside: File | None = optional()
    telling: tuple[str, ...] | None = optional()

    def trials(self, questions: pa.Table | None, asked: pa.Table | None, run: Run) -> Trials:
        """Its trials, with texts scored.

        Args:
            questions: For messages, a table of `GROUP_QUESTIONS`.
            asked: The answers of the condition's model, if it was asked here.
            run: The run, which shows progress.
        """
        for address in self.addresses.values():
            located(address, Path(), run.progress)
        path = self.file.path if self.file else None
        answers: dict[str, Answers] = {model: file.path for model, file in self.answers.items()}
        if asked is not None:
            answers[self.condition] = by_id(asked)
        if questions is not None:
            columns = trials_of_answers(questions, answers, self.table.group, self.telling or ())
        else:
            columns = read_format(self.table.format, path, answers)
        trials = read_trials(columns, self.table, path if self.table.format == "table" else None)
        return scored(trials, self.table.outcomes, self.scorers, run.progress)


def _source(part: OutcomesPart, key: Key) -> Source:
    table = part.tables[key["table"]]
    scorers = TextScorers.of(part.settings.measures, table.outcomes.values())
    groups = part.groups[key["table"]]
    file, answers, addresses = part.files(key)
    if table.condition == MODEL and (table.answers or table.models):
        table = table.of_condition(key["condition"])
    return Source(
        table.without("file", "answers", "models"),
        file,
        answers,
        key["condition"],
        scorers,
        addresses,
        _beside(table, file),
        tuple(word for definition in groups.values() for word in definition.telling) if groups else None,
    )


@of_trials(
    inputs=_source,
    reads={"questions": group_questions, "answers": benchmark_answers},
    code_version="3",
    libraries=("numpy",),
    schema=OUTCOME_CELLS,
    checks=(checks.not_empty,),
    covers=lambda part, key: part.judged(key),
)
def outcome_cells(source: Source, questions: pa.Table | None, answers: pa.Table | None, run: Run) -> Result:
    """The mean of each outcome by item, groups and name, draws averaged."""
    trials = source.trials(questions, answers, run)
    table = cell_table(trials, source.condition)
    means = means_beside(trials, source.condition)
    if source.table.format == "stereoset" and (meaningful := means.get(LMS)) is not None:
        first_outcome = table.filter(pc.equal(table["outcome"], next(iter(source.table.outcomes))))
        means["ICAT"] = icat(100 * float(first_outcome["value"].to_numpy().mean()), meaningful)
    figures = {"rows": trials.rows, "trials": len(trials), "cells": table.num_rows, "beside": means}
    return Result(table, figures, tables={"sample": table.slice(0, 5)})


@of_trials(
    inputs=_source,
    reads={"answers": benchmark_answers},
    code_version="2",
    libraries=("numpy", "scipy"),
    schema=OUTCOME_RATES,
    covers=lambda part, key: part.rated(key),
)
def outcome_rates(source: Source, answers: pa.Table | None, run: Run) -> Result:
    """The number selected and the rate of each group in all rows, with the ratio to the most selected group."""
    table, trials = source.table, source.trials(None, answers, run)
    rates = rates_by_group(trials, source.condition, expanded(table.outcomes), table.unmarked)
    return Result(rates, {"groups": rates.num_rows}, tables={"rates": rates.slice(0, 20)})


@of_trials(
    inputs=lambda part, key: replace(_source(part, key), scorers=None),
    reads={"questions": group_questions, "answers": benchmark_answers},
    covers=lambda part, key: (
        part.asks_about_groups(key) and part.judged(key) and bool(part.tables[key["table"]].text_outcome)
    ),
    code_version="1",
    libraries=("numpy", "scipy"),
    schema=GROUP_WORDS,
    checks=(checks.not_empty,),
)
def telling_words(source: Source, questions: pa.Table, answers: pa.Table | None, run: Run) -> Result:
    """Whether an answer alone, with the groups' words masked, tells which group was asked about; and by which words."""
    trials, seed = source.trials(questions, answers, run), run.seed_without("condition")
    table = group_words(trials, str(source.table.text_outcome), source.table.unmarked, seed)
    return Result(table, {"words": sum(map(bool, table["text"].to_pylist()))}, tables={"words": table.slice(0, 20)})


def _judging(part: OutcomesPart, key: Key) -> Judging:
    table = part.tables[key["table"]]
    outcomes: Mapping[str, Outcome] = expanded(table.outcomes)
    is_control = key["condition"] == table.control
    seed, alpha = part.project.profile.seed, part.settings.alpha
    fair_here = True if part.asks_about_groups(key) else None
    return Judging(
        outcomes=outcomes,
        columns=table.group,
        reference=table.reference,
        alpha=alpha,
        seed=seed,
        is_control=is_control,
        unmarked=table.unmarked,
        fair_here=fair_here,
    )


@of_verdicts(
    inputs=_judging,
    reads={"cells": outcome_cells, "control": of_baselines(outcome_cells), "words": telling_words},
    code_version="3",
    libraries=("numpy", "scipy"),
    schema=OUTCOME_SIGNIFICANCE,
    checks=(checks.not_empty, checks.rates_in_range),
    show=judged(STUDY),
)
def outcome_significance(
    judging: Judging, cells: pa.Table, control: dict[str, pa.Table], words: pa.Table | None
) -> Result:
    """Whether each outcome depends on the groups, on which, and by how much: clusters of items are the sample."""
    table = judge_outcomes(cells, judging, next(iter(control.values()), None), words)
    preview = table.select(["measure", "contrast", "group", "against", "difference", "p_holm", "verdict"])
    return Result(table, tables={"significance": preview})


@of_verdicts(
    inputs=_judging,
    reads={"cells": outcome_cells, "baseline": of_base(outcome_cells)},
    covers=lambda part, key: part.compared(key),
    code_version="2",
    libraries=("numpy", "scipy"),
    schema=OUTCOME_CHANGES,
)
def outcome_changes(judging: Judging, cells: pa.Table, baseline: pa.Table) -> Result:
    """What a condition changes between the groups, compared with the baseline, over the same items."""
    table = changes_between(baseline, cells, judging)
    return Result(table, {"changes": table.num_rows}, tables={"changes": table.slice(0, 20)})


@asset(
    stage="report",
    kind="document",
    covers=lambda part, key: bool(part.tables),
    inputs=lambda part, key: described(part.project, part),
    reads=(
        group_questions,
        benchmark_answers,
        outcome_cells,
        telling_words,
        outcome_significance,
        outcome_changes,
        outcome_rates,
    ),
    arrows=(telling_words, outcome_significance, outcome_changes, outcome_rates),
    code_version="1",
    libraries=LIBRARIES,
)
def outcomes_report(inputs: Described, shelf: Shelf) -> Result:
    """Each table's verdicts, groups, crossed groups, changes and rates. The report is kept in the history."""
    return report_of(STUDY, shelf, render_report)
