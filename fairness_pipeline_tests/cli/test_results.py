"""`results`: which rows it prints, of which studies, and what it says of the rest."""

import json

from fairness_pipeline.project.project import Project
from fairness_pipeline.reporting.results import audits_of, ends
from fairness_pipeline.statistics.intervals import most_that_differ
from fairness_pipeline.studies.dialogue_fairness.study import STUDY
from fairness_pipeline.workspace.lake import Lake
from fairness_pipeline_tests.commands import change, command, run


def test_a_table_has_every_study_and_a_file_says_which_it_leaves_out(made: Project) -> None:
    def add(profile: dict[str, object]) -> None:
        profile["sentiment_equity"] = {"systems": {"vader": {}}}

    change(made.path, add)
    run("--study", "sentiment_equity", "--dimension", "gender")
    table = command("results").stdout
    assert table.index("Dialogue fairness, profile tiny") < table.index("Sentiment equity, profile tiny")
    rows = command("results", "--format", "json")
    assert {row["model"] for row in json.loads(rows.stdout)} == {"seq2seq"}
    assert "left out: sentiment_equity; for each of them: --study NAME" in rows.stderr
    assert "left out" not in command("results", "--study", "sentiment_equity", "--format", "csv").stderr
    # A table shows the reading on which a verdict rests, once; a file has all readings.
    measures = [row["measure"] for row in json.loads(rows.stdout)]
    assert {"length", "length_masked"} <= {*measures}
    assert sum(line.split()[2:3] == ["Length"] for line in table.splitlines()) == 2  # once a dimension


def test_a_misspelt_option_is_answered_with_the_closest_one() -> None:
    wrong = command("results", "--fromat", "csv")
    assert wrong.returncode == 2
    assert "usage: fairness-pipeline results" in wrong.stderr
    assert "unknown option '--fromat'; did you mean '--format'?" in wrong.stderr
    more = command("results", "gender")
    assert more.returncode == 2 and "'gender' is one word too many" in more.stderr


def test_what_could_remain_is_the_exact_bound_where_nothing_was_seen(made: Project) -> None:
    audits = audits_of(STUDY, made.parts["dialogue_fairness"], Lake(made.workspace))
    (audit,) = (audit for audit in audits if audit.key["dimension"] == "gender")
    refusals = [row for row in audit.rows if row["measure"] == "refusal"]
    (row,) = refusals
    exact = 100 * float(most_that_differ(0, row["n"], 0.025))
    assert row["value_a"] == row["value_b"] == 0 and row["ci_high"] < exact
    audit.rows[:] = refusals
    assert f"({95}%): {exact:.2g} points (gender × seq2seq Refusals)" in ends(STUDY, [audit])[1]
