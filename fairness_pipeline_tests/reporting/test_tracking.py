"""Checks that MLflow receives what the tables hold."""

import json
import sys
from pathlib import Path

import pytest

from fairness_pipeline.lineage.lineage import Lineage
from fairness_pipeline.lineage.plan import Plan, Selection
from fairness_pipeline.project.project import Project
from fairness_pipeline.reporting.tracking import logged_subjects
from fairness_pipeline_tests.commands import command, run


def test_a_run_for_each_model(made: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mlflow = pytest.importorskip("mlflow")
    address = (tmp_path / "tracking").as_uri()
    monkeypatch.setenv("MLFLOW_TRACKING_URI", address)
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow.set_tracking_uri(address)
    done = run("--mlflow", "before release")
    assert done.returncode == 0, done.stderr
    assert "MLflow: 1 run in the experiment 'before release'" in done.stdout
    client = mlflow.MlflowClient(address)
    experiment = client.get_experiment_by_name("before release")
    (mlflow_run,) = client.search_runs([experiment.experiment_id])
    rows = json.loads(command("results", "--format", "json").stdout)
    row = next(row for row in rows if (row["dimension"], row["measure"]) == ("gender", "length"))
    assert mlflow_run.data.metrics["gender.Length.difference"] == pytest.approx(row["difference"])
    assert mlflow_run.data.metrics["gender.Length.biased"] == float(row["verdict"] == "biased")
    assert mlflow_run.data.params["architecture"] == "seq2seq"
    assert mlflow_run.data.params["profile"] == "tiny"
    assert mlflow_run.data.tags["fairness.study"] == "Dialogue fairness"
    assert [artifact.path for artifact in client.list_artifacts(mlflow_run.info.run_id, "reports")] == [
        "reports/dialogue_fairness_report.html"
    ]


def test_what_was_selected_is_logged_and_nothing_else(made: Project) -> None:
    plan = Plan(Lineage(made), Selection())

    def places(**selected: str) -> set[str]:
        plan.selection = Selection(**selected)
        return {verdict.where for subject in logged_subjects(plan) for verdict in subject.verdicts}

    assert places(corpus="tiny") == places() == {"gender", "dialect"}
    assert places(dimension="gender") == {"gender"}
    assert not places(corpus="other") and not places(condition="other")


def test_what_it_needs(made: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    refused = command("run", "--mlflow", "x", "--select", "contexts")
    assert refused.returncode == 1 and "--mlflow writes verdicts, but --select may produce none" in refused.stderr
    monkeypatch.setitem(sys.modules, "mlflow", None)
    done = command("run", "--mlflow", "x")
    assert done.returncode == 1 and "pip install 'fairness-pipeline[mlflow]'" in done.stderr
