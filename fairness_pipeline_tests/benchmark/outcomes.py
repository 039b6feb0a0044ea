"""Study 6: a large table of 24 groups, beside a chi-square over the same rows; rows read from a large file; messages."""

import resource
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import scipy.stats
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.feature_selection import chi2

import fairness_pipeline as fp
from fairness_pipeline.corpora.outcomes.formats.messages import trials_of_answers
from fairness_pipeline.corpora.outcomes.groups import Groups
from fairness_pipeline.corpora.outcomes.questions import ask
from fairness_pipeline.corpora.outcomes.specification import OutcomeTable
from fairness_pipeline.corpora.outcomes.table_files import read_table
from fairness_pipeline.corpora.outcomes.trials import read_trials
from fairness_pipeline.foundation.paths import data_file
from fairness_pipeline.foundation.yaml_files import load, read_yaml, validate
from fairness_pipeline.measures.dialogue.settings import MeasureSettings
from fairness_pipeline.measures.outcomes.text_outcomes import TextScorers, scored
from fairness_pipeline_tests.benchmark.shared import Ratio, rate
from fairness_pipeline_tests.lineup.messages import messages_of, verdicts

_GROUPS, _ROWS, _LARGE, _MESSAGES = 24, 300_000, 10_000_000, 1_650


def outcomes() -> list[Ratio]:
    """300,000 rows, all statistics; and ten million rows, read."""
    random = np.random.default_rng(0)
    items = _ROWS // _GROUPS
    group = np.tile(np.arange(_GROUPS), items)
    table = pd.DataFrame(
        {
            "item": np.repeat(np.arange(items), _GROUPS),
            "who": [f"group {g}" for g in group],
            "y": random.random(_ROWS) < 0.3,
        }
    )
    table["topic"] = table["item"] % 16

    def plain() -> None:
        scipy.stats.chi2_contingency(pd.crosstab(table["who"], table["y"]))

    ratios = []
    for name, cluster in (("each item a cluster", None), ("16 topics", "topic")):
        here = rate(
            1, lambda cluster=cluster: fp.audit(table, item="item", cluster=cluster, group="who", outcome="y"), 2
        )
        note = f"300,000 rows, 24 groups: {1 / here:.2f} s (asked: 4); whatever is drawn, beside one chi-square"
        ratios.append(Ratio(f"outcomes by group, {name}", "tables", rate(1, plain, 2), here, 0.01, note))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "large.csv"
        with path.open("w", encoding="utf-8") as stream:
            stream.write("item,who,draw,y\n")
            for begin in range(0, _LARGE, 1_000_000):
                rows = np.arange(begin, begin + 1_000_000)
                pd.DataFrame({"i": rows // 240, "g": rows % 24, "d": rows // 24 % 10, "y": rows % 7 % 2}).to_csv(
                    stream, header=False, index=False
                )
        here = rate(_LARGE, lambda: read_table(path))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        beside = rate(_LARGE, lambda: pd.read_csv(path))
    note = f"{_LARGE / here:.1f} s, peak of the process {peak:,.0f} MiB"
    ratios.append(Ratio("a table of ten million rows, beside pandas", "rows", beside, here, 0.25, note))
    return [*ratios, messages()]


def messages() -> Ratio:
    """13,000 answers of 400 words about seven groups: outcomes, all verdicts, and whether words tell the group."""
    random = np.random.default_rng(1)
    files = {"religion": load(Groups, data_file("groups/religion.yaml"))}
    questions = ask(messages_of(_MESSAGES), files, 1, 1).table
    words = np.array([f"word{place}" for place in range(3000)])
    drawn = words[(random.zipf(1.3, (questions.num_rows, 400)) - 1) % len(words)]
    first = random.integers(1, 6, questions.num_rows)
    said = [f"{number}. {' '.join(row)}" for number, row in zip(first, drawn, strict=True)]
    answers = {name: {"answer": text} for name, text in zip(questions["id"].to_pylist(), said, strict=True)}
    document = {**read_yaml(data_file("tables/messages.yaml")), "models": {"bot": {}}}
    spec = validate(OutcomeTable, document, data_file("tables/messages.yaml"))
    columns = trials_of_answers(questions, {"bot": answers}, spec.group, files["religion"].telling)
    trials = read_trials(columns, spec)
    trials = scored(trials, spec.outcomes, TextScorers.of(MeasureSettings(), spec.outcomes.values()))

    def judged() -> None:
        verdicts(trials, spec, 1)

    def plain() -> None:
        counts = CountVectorizer(binary=True).fit_transform(columns["masked"].to_pylist())
        chi2(counts, columns["religion"].to_pylist())

    count = len(answers)
    here, beside = rate(count, judged, 1), rate(count, plain, 1)
    note = f"{count:,} answers of 400 words, 7 groups: {count / here:.1f} s for all verdicts (asked: 10); beside counted words and chi-square"
    return Ratio("messages about groups, all verdicts", "answers", beside, here, 0.1, note)
