"""Tables, figures, methods and references for a paper."""

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml

from fairness_pipeline.project.project import Project
from fairness_pipeline.project.study import studies
from fairness_pipeline.reporting.paper import references, verdict_rows, write_paper
from fairness_pipeline.reporting.results import NEVER_SEEN, audits_of, drawn_rows, gravest_rows, shown_verdict
from fairness_pipeline.workspace.lake import Lake
from fairness_pipeline_tests.commands import command


def test_tables_figures_methods_and_references(made: Project, tmp_path: Path) -> None:
    done = command("report", "--paper", str(tmp_path / "paper"))
    assert done.returncode == 0, done.stderr
    names = {path.name for path in (tmp_path / "paper").iterdir()}
    endings = ("tex", "md", "svg", "pdf")
    assert names == {*(f"dialogue_fairness.{end}" for end in endings), "methods.md", "references.bib"}
    again = write_paper(made, Lake(made.workspace), tmp_path / "again")
    assert {path.name: path.read_bytes() for path in again} == {
        path.name: path.read_bytes() for path in (tmp_path / "paper").iterdir()
    }
    methods = (tmp_path / "paper" / "methods.md").read_text(encoding="utf-8")
    bib = (tmp_path / "paper" / "references.bib").read_text(encoding="utf-8")
    cited = set(re.findall(r"@(\w+)", methods))
    assert (
        cited == set(re.findall(r"(?m)^@\w+\{(\w+),", bib)) == {"liu2020gender", "liu2022detecting", "fairnesspipeline"}
    )
    assert f"seed {made.profile.seed}" in methods
    assert "Corpus: tiny (" in methods and "Measures: Distinguishable answers; Diversity; " in methods
    assert re.search(r"Each rests on \d+( to \d+)? observations", methods)
    picture = ElementTree.parse(tmp_path / "paper" / "dialogue_fairness.svg")
    texts = [text for element in picture.iter("{http://www.w3.org/2000/svg}text") for text in element.itertext()]
    assert any("gender · seq2seq · Diversity" in text for text in texts)  # text is kept as text


def test_a_selection_is_written_and_nothing_else(made: Project, tmp_path: Path) -> None:
    assert command("report", "--paper", str(tmp_path / "one"), "--dimension", "gender").returncode == 0
    table = (tmp_path / "one" / "dialogue_fairness.md").read_text(encoding="utf-8")
    assert "| gender | seq2seq |" in table and "| dialect |" not in table
    none = command("report", "--paper", str(tmp_path / "none"), "--study", "dialogue_fairness", "--corpus", "other")
    assert none.returncode == 1 and not (tmp_path / "none").exists()
    assert "is for --paper FOLDER" in command("report", "--dimension", "gender").stderr


def test_what_is_out_of_date_goes_into_no_paper(made: Project, tmp_path: Path) -> None:
    profile = yaml.safe_load(made.path.read_text(encoding="utf-8"))
    profile["dialogue_fairness"]["significance"] = {"margins": {"rates": {"absolute": 9}}}
    before = made.path.read_text(encoding="utf-8")
    made.path.write_text(yaml.safe_dump(profile), encoding="utf-8")
    try:
        refused = command("report", "--paper", str(tmp_path / "late"))
    finally:
        made.path.write_text(before, encoding="utf-8")
    assert refused.returncode == 1 and not (tmp_path / "late").exists()
    assert "out of date, so nothing was written: gender seq2seq" in refused.stderr


def test_a_row_agrees_with_its_verdict(made: Project) -> None:
    study = made.studies[0]
    audits = [audit for audit in audits_of(study, made.parts[study.name], Lake(made.workspace)) if audit.measured]
    rows = verdict_rows(study, made.parts[study.name], audits)
    gated = [row for audit in audits for row in audit.rows if study.gated(row)]
    assert [row["n"] for row in rows] == [row["n"] for row in gated] and len(rows) > 5
    for printed, row in zip(rows, gated, strict=True):
        first, second = (float(printed[side].rpartition(": ")[2]) for side in ("first", "second"))
        difference = float(printed["difference"].split()[0])
        assert difference == pytest.approx(first - second, abs=0.006 * max(abs(first), abs(second), 0.01))
        assert difference == pytest.approx(study.decisive(row)["difference"], rel=0.01)


def test_what_was_never_seen_is_not_drawn(made: Project) -> None:
    study = made.studies[0]
    part = made.parts[study.name]
    rows = gravest_rows(study, audits_of(study, part, Lake(made.workspace)))
    never = {study.label(row) for _, row in rows if shown_verdict(row) == NEVER_SEEN}
    seen = {study.label(row) for _, row in rows if shown_verdict(row) != NEVER_SEEN}
    drawn = {label.split(" · ")[-1] for label, _, _ in drawn_rows(study, part, rows)}
    assert never - seen and drawn and not drawn & (never - seen)


def test_every_study_can_be_cited() -> None:
    for study in studies():
        assert study.method.endswith(".")
        assert references(study.cites).count("  title =") == len(study.cites)


@pytest.mark.parametrize(("form", "begins"), [("latex", r"\begin{tabular}{ll"), ("markdown", "| dimension | model |")])
def test_results_as_a_table_to_paste(made: Project, form: str, begins: str) -> None:
    table = command("results", "--format", form).stdout
    assert table.startswith(begins) and "95" in table.splitlines()[2 if form == "latex" else 0]
