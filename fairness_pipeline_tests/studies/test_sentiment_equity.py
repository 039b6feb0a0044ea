"""Tests study 3 through the command line: systems, score files, and that a wrong file leaves others alone."""

import csv
import json
import re
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from fairness_pipeline.corpora.sentiment.equity_sentences import make_equity_sentences
from fairness_pipeline.foundation import paths
from fairness_pipeline.project.project import Project
from fairness_pipeline.reporting.history import entries
from fairness_pipeline.reporting.results import audits_of
from fairness_pipeline.studies.sentiment_equity.report import render_report
from fairness_pipeline.studies.sentiment_equity.study import STUDY as EQUITY
from fairness_pipeline.workspace.lake import _NO_SEAL, Lake, _seal
from fairness_pipeline_tests.commands import change, command, content, planned, run
from fairness_pipeline_tests.conftest import write_yaml
from fairness_pipeline_tests.local_server import serve
from fairness_pipeline_tests.measures.sentiment.test_equity import PLANTED
from fairness_pipeline_tests.models.sentiment.test_systems import answering
from fairness_pipeline_tests.models.tiny_models import classifier
from fairness_pipeline_tests.reporting.pairs import pairs_make_the_verdicts

STUDY = ("--study", "sentiment_equity")


@pytest.fixture
def audited(tiny: Project, data: Path) -> Project:
    """The tiny profile with VADER and a linear SVM, in gender and race."""
    change(
        data / "profiles" / "tiny.yaml",
        lambda profile: profile.update(
            dimensions=["gender", "race"], sentiment_equity={"systems": {"vader": {}, "linear_svm": {}}}
        ),
    )
    return Project("tiny")


def write_scores(path: Path, sentences: Path, shift: float) -> Path:
    """Writes scores that are higher by `shift` for women, in both sets of templates."""
    with sentences.open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    female = {"she", "her", "woman", "girl", "sister", "daughter", "wife", "girlfriend", "mother", "aunt", "mom"}
    names = "Ebony Jasmine Lakisha Latisha Latoya Nichelle Shaniqua Shereen Tanisha Tia Amanda Betsy Courtney Ellen " \
        "Heather Katie Kristin Melanie Nancy Stephanie"  # fmt: skip
    female |= set(names.lower().split())
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["sentence_id", "affect", "score"])
        for row in rows:
            words = set(row["sentence"].lower().rstrip(".").split())
            writer.writerow([row["sentence_id"], "joy", 0.4 + shift * bool(words & female)])
    return path


def significance(project: Project, system: str, dimension: str = "gender") -> dict[str, dict]:
    rows = Lake(project.workspace).read("equity_significance", {"dimension": dimension, "system": system}).to_pylist()
    return {row["templates"]: row for row in rows if row["subset"] == row["persons"] == "all"}


def test_systems_and_score_files(audited: Project, tmp_path: Path) -> None:
    """One long test, because every part of it needs the lake that the one before left."""
    done = run(*STUDY)
    assert "0 not made" in done.stdout
    assert "Sentiment equity" in done.stdout
    report = audited.workspace / "reports" / "equity_report.html"
    assert f"Report: {report}" in done.stdout
    assert {path.name for path in (audited.workspace / "tables").iterdir()} == {
        "equity_sentences", "affect_tweets", "equity_scores", "equity_pairs", "equity_significance"
    }  # fmt: skip
    assert planned(*STUDY) == []
    pairs_make_the_verdicts(audited, fewest=2)
    before = content(audited.workspace)

    # A score file dropped into the folder is a partition: only it and the report are made.
    exported = tmp_path / "sentences.csv"
    assert "17,280 sentences" in command("export", "sentences", "--output", str(exported)).stdout
    dropped = write_scores(audited.workspace / "scores" / "Team 7.csv", exported, shift=0.1)
    made = {"equity_scores team_7", *(f"{t} {d} team_7" for d in ("gender", "race") for t in ("equity_pairs", "equity_significance")),
            "equity_report"}  # fmt: skip
    assert set(planned(*STUDY)) == made
    run("--model", "team_7")
    after = content(audited.workspace)
    assert {name for name in before if after[name] != before[name]} == {
        "reports/equity_report.html", "reports/equity_significance.csv"
    }  # fmt: skip
    for row in significance(audited, "team_7").values():
        assert (row["verdict"], row["affect"]) == ("biased", "joy")
        assert row["difference"] == pytest.approx(-0.1)
    assert {row["verdict"] for row in significance(audited, "team_7", "race").values()} == {"fair"}
    assert "team_7" in report.read_text(encoding="utf-8")
    gate = command("run", "--fail-on", "biased", "--model", "team_7")
    assert (gate.returncode, gate.stderr.splitlines()[-1]) == (
        3, "--fail-on biased: gender team_7 joy"
    )  # fmt: skip
    assert "looked at 3 verdicts of 2 audits" in gate.stderr
    assert command("run", "--fail-on", "biased", "--model", "vader").returncode == 0

    # Each change of the tables is kept.
    _, second = entries(audited.workspace, EQUITY)
    changes = json.loads(command("results", *STUDY, "--against", "previous", "--format", "json").stdout)
    assert {row["system"] for row in changes} == {"team_7"}
    assert {row["why"] for row in changes} == {"not measured then"}
    assert (audited.workspace / "history" / second / report.name).read_text() == report.read_text()

    # Results as rows, and SQL.
    rows = json.loads(command("results", "--model", "team_7", "--format", "json").stdout)
    assert {(row["dimension"], row["subset"]) for row in rows} == {
        (d, s)
        for d in ("gender", "race")
        for s in ("all", "without emotion words", "anger words", "fear words", "joy words", "sadness words")
    }  # fmt: skip
    counted = command("sql", "select count(*) as n from equity_scores where system = 'team_7'", "--format", "csv")
    assert counted.stdout.split() == ["n", "17280"]

    # A wrong file is refused with its line; the other systems stay, and the report says what is missing.
    right = dropped.read_bytes()
    text = right.decode().splitlines()
    dropped.write_text("\n".join([*text[:41], "40,joy,much", *text[42:]]))
    done = command("run", *STUDY)
    assert done.returncode == 1
    assert "Team 7.csv, line 42: " in done.stderr
    assert "team_7" not in done.stdout.partition("Sentiment equity, profile")[2]
    assert "Traceback" not in done.stderr
    now = content(audited.workspace)
    for name, earlier in after.items():
        if "team_7" not in name and "report" not in name:
            assert now[name] == earlier
    page = report.read_text(encoding="utf-8")
    assert "<b>Stale:</b>" in page
    assert "Not counted here or below,</b> because made with other settings or data than this profile has now: " \
        "gender × team_7, race × team_7." in page  # fmt: skip
    assert '<span class="tag">stale</span>' in page

    # The right file back: nothing else is to be made, and the report says so.
    dropped.write_bytes(right)
    assert planned(*STUDY) == ["equity_report"]
    run(*STUDY)
    page = report.read_text(encoding="utf-8")
    assert "<b>Stale:</b>" not in page
    assert "Not counted here" not in page

    # A change that nobody has run yet shows in the report that another system brings along.
    dropped.write_text("\n".join([*text[:41], "41,joy,0.9", *text[42:]]))
    run("--model", "vader")
    assert "<b>Stale:</b>" in report.read_text(encoding="utf-8")

    # Without the file the system is gone, too.
    dropped.unlink()
    run(*STUDY)
    assert "team_7" not in report.read_text(encoding="utf-8")


def test_scores_are_imported_by_command(audited: Project, tmp_path: Path) -> None:
    exported = tmp_path / "sentences.csv"
    command("export", "sentences", "--output", str(exported))
    scores = write_scores(tmp_path / "mine.csv", exported, shift=0.0)
    done = command("import", str(scores), "--name", "mine")
    assert done.returncode == 0, done.stderr
    assert "17,280 scores of 'mine'" in done.stdout
    run("--model", "mine")
    for dimension in ("gender", "race"):
        for row in significance(audited, "mine", dimension).values():
            assert row["statistic"] is None
            assert (row["difference"], row["p"], row["p_paired"], row["verdict"]) == (0.0, 1.0, 1.0, "fair")
    report = (audited.workspace / "reports" / "equity_report.html").read_text(encoding="utf-8")
    assert "no difference" in report
    assert ">nan<" not in report.lower()

    missing = command("import", str(tmp_path / "none.csv"), "--name", "other")
    assert "none.csv: there is no such file; check the path" in missing.stderr
    scores.write_text("sentence_id,score\n1,2\n")
    for name, reason in (
        ("mine", "line 2: score"), ("vader", "has 'vader' already"), ("A b", "lower-case"),
    ):  # fmt: skip
        done = command("import", str(scores), "--name", name)
        assert done.returncode == 1
        assert reason in done.stderr
    assert np.isfinite(significance(audited, "mine")["published"]["ci_low"])  # what was imported stands


def test_a_dry_run_counts_the_requests_of_an_endpoint(audited: Project, data: Path) -> None:
    (data / "systems").mkdir()
    endpoint = {"base_url": "http://127.0.0.1:9/v1", "model": "m"}
    write_yaml(
        data / "systems" / "bot.yaml", {"architecture": "endpoint", "affects": ["joy", "fear"], "endpoint": endpoint}
    )
    assert "no request to an endpoint" in run("--dry-run", *STUDY).stdout
    change(data / "profiles" / "tiny.yaml", lambda profile: profile["sentiment_equity"]["systems"].update(bot={}))
    assert f"; {2 * 17280:,} requests to endpoints" in run("--dry-run", *STUDY).stdout


def test_a_wrong_system_file_is_named(audited: Project, data: Path) -> None:
    (data / "systems").mkdir()
    write_yaml(data / "systems" / "mine.yaml", {"architecture": "cnn", "affects": ["hope"]})
    change(data / "profiles" / "tiny.yaml", lambda profile: profile["sentiment_equity"]["systems"].update(mine={}))
    done = command("run", "--dry-run")
    assert done.returncode == 1
    assert "systems/mine.yaml, line 3: affects.0: expected" in done.stderr
    change(data / "profiles" / "tiny.yaml", lambda profile: profile.update(sentiment_equity={"systems": {"other": {}}}))
    assert "unknown system 'other'; known: cnn, gru, linear_svm, mine, vader" in command("run", "--dry-run").stderr


def test_two_labels_for_one_affect_are_refused(audited: Project, tmp_path: Path) -> None:
    model, labels = classifier(tmp_path / "model"), ("--label", "valence=POSITIVE", "--label", "valence=NEGATIVE")
    done = command("audit", model, "--name", "mine", "--profile", audited.name, *STUDY, *labels)
    assert done.returncode == 1
    assert "--label: expected one label for an affect, found valence=POSITIVE, valence=NEGATIVE" in done.stderr


def test_what_is_no_part_of_the_study_is_refused_and_what_is_gets_listed(audited: Project, data: Path) -> None:
    for name in ("results", "run"):
        for wrong, reason in (
            ((*STUDY, "--model", "seq2seq"), "unknown model 'seq2seq' in study 'sentiment_equity' of profile 'tiny'; "
                                             "known: vader, linear_svm"),
            (("--model", "vader", "--study", "dialogue_fairness"), "unknown model 'vader' in study 'dialogue_fairness'"),
            ((*STUDY, "--dimension", "dialect"), "unknown dimension 'dialect'"),
            (("--study", "nonsense"), "unknown study 'nonsense'"),
            *([((*STUDY, "--select", "responses"), "unknown asset 'responses' in study 'sentiment_equity'"),
               (("--model", "vader", "--select", "responses"), "unknown asset 'responses'")] if name == "run" else []),
        ):  # fmt: skip
            done = command(name, *wrong)
            assert (done.returncode, done.stdout) == (1, "")
            assert reason in done.stderr
    change(data / "profiles" / "tiny.yaml", lambda profile: profile["dimensions"].append("dialect"))
    done = command("results", "--model", "vader", "--dimension", "dialect")
    assert (
        "unknown dimension 'dialect' in study 'sentiment_equity' of profile 'tiny'; known: gender, race" in done.stderr
    )
    assert command("export", "sentences", "--output", "s.csv", "--profile", "nope").returncode == 1


def test_an_endpoint_is_asked_again_only_when_asked_to(audited: Project, data: Path) -> None:
    (data / "equity").mkdir()
    write_yaml(data / "equity" / "templates.yaml", {
        "published": ["I saw {object}.", "{subject} left."], "reworded": ["I met {object}.", "{subject} went."],
    })  # fmt: skip
    sentences = len(make_equity_sentences())

    requests: Counter[str] = Counter()
    with serve(answering("0.5", requests)) as address:
        (data / "systems").mkdir()
        bot = {"architecture": "endpoint", "affects": ["joy"], "endpoint": {"base_url": f"{address}/v1", "model": "m"}}
        bot["endpoint"]["max_requests"] = sentences - 1
        write_yaml(data / "systems" / "bot.yaml", bot)
        change(
            data / "profiles" / "tiny.yaml",
            lambda profile: profile.update(sentiment_equity={"systems": {"vader": {}, "bot": {}}}),
        )
        refused = command("run", *STUDY)
        assert f"{sentences:,} requests would be made" in refused.stderr
        assert not requests

        change(data / "systems" / "bot.yaml", lambda system: system["endpoint"].pop("max_requests"))
        run(*STUDY)
        assert (len(requests), set(requests.values())) == (sentences, {1})
        assert f"; {sentences:,} requests to endpoints" in run("--ask-again", "--dry-run", *STUDY).stdout
        assert planned(*STUDY) == []
        requests.clear()
        before = content(audited.workspace)
        run("--ask-again", *STUDY)
        after = content(audited.workspace)
        assert (len(requests), set(requests.values())) == (sentences, {1})
        changed = {name for name in after if after[name] != before.get(name)}
        assert any("bot" in name for name in changed)
        assert not any("vader" in name for name in changed)


def test_a_profile_of_systems_alone(audited: Project, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    profile = {"description": "d", "seed": 1, "dimensions": ["gender", "dialect"]}
    write_yaml(data / "profiles" / "alone.yaml", profile)
    monkeypatch.setenv("FAIRNESS_PROFILE", "alone")
    message = "expected a section for one study at least: dialogue_fairness, language_model_bias, sentiment_equity"
    assert message in command("run").stderr
    write_yaml(data / "profiles" / "alone.yaml", {**profile, "sentiment_equity": {"systems": {"vader": {}}}})
    done = run()
    assert "5 made" in done.stdout
    assert "equity_report.html" in done.stdout
    assert "dialogue_fairness_report.html" not in done.stdout
    rows = json.loads(command("results", "--format", "json").stdout)
    assert {(row["dimension"], row["system"], row["affect"]) for row in rows} == {("gender", "vader", "valence")}


def test_the_gate_looks_at_the_verdicts_that_are_shown(audited: Project, tmp_path: Path) -> None:
    exported = tmp_path / "sentences.csv"
    command("export", "sentences", "--output", str(exported))
    fair, biased = (
        write_scores(tmp_path / f"{shift}.csv", exported, shift).read_text().splitlines() for shift in (0.0, 0.1)
    )
    mixed = audited.workspace / "scores" / "MIXED.CSV"
    mixed.parent.mkdir(parents=True)
    mixed.write_text("\n".join([*fair[:8641], *biased[8641:]]))
    (mixed.parent / ".hidden.csv").write_text("a side file")
    done = run("--model", "mixed", "--fail-on", "biased")
    assert "✓ +0.000" in done.stdout
    assert {row["verdict"] for row in significance(audited, "mixed").values()} == {"fair", "biased"}


def test_the_groups_are_the_studys_whatever_the_dimension_calls_its_own(
    audited: Project, data: Path, tmp_path: Path
) -> None:
    swapped = yaml.safe_load(paths.yaml_files("dimensions")["gender"].read_text(encoding="utf-8"))
    swapped["groups"] = {"a": "female", "b": "male"}
    write_yaml(data / "dimensions" / "gender.yaml", swapped)
    exported = tmp_path / "sentences.csv"
    command("export", "sentences", "--output", str(exported))
    write_scores(audited.workspace / "scores" / "mine.csv", exported, shift=0.1)
    done = run("--model", "mine")
    assert "gender male − female" in done.stdout
    assert "✗ -0.100" in done.stdout
    page = (audited.workspace / "reports" / "equity_report.html").read_text(encoding="utf-8")
    (higher,) = re.findall(r'">([a-z]+) higher</td><td>0</td><td>0</td><td>1<div', page.partition("Gender, all")[2])[:1]
    assert higher == "female"


def test_what_only_looks_like_a_system_is_refused(audited: Project, data: Path) -> None:
    scores = audited.workspace / "scores"
    scores.mkdir(parents=True)
    (scores / "notes.txt").write_text("no scores")
    done = command("run", "--model", "notes")
    assert "notes.txt: expected a file that ends in .csv or .tsv" in done.stderr
    (data / "systems").mkdir()
    write_yaml(data / "systems" / "mine.yaml", {"architecture": "scores", "affects": ["joy"]})
    change(data / "profiles" / "tiny.yaml", lambda profile: profile["sentiment_equity"]["systems"].update(mine={}))
    assert "mine.yaml: architecture: 'scores' needs no file here" in command("run", "--dry-run").stderr
    change(
        data / "profiles" / "tiny.yaml",
        lambda profile: profile.update(sentiment_equity={"systems": {"vader": {}}}, dimensions=["dialect"]),
    )
    assert "sentiment systems are audited in gender and race; expected one" in command("run", "--dry-run").stderr


def test_a_name_may_stand_for_a_model_and_for_a_system(audited: Project, data: Path) -> None:
    """Names are scoped by study; where two have the name, the command asks which."""
    (data / "systems").mkdir()
    write_yaml(data / "systems" / "seq2seq.yaml", {"architecture": "vader", "affects": ["valence"]})
    change(data / "profiles" / "tiny.yaml", lambda profile: profile["sentiment_equity"]["systems"].update(seq2seq={}))
    for name in ("run", "results"):
        done = command(name, "--model", "seq2seq")
        assert done.returncode == 1
        assert (
            "dialogue_fairness and sentiment_equity both have a model of this name; choose one with --study"
            in done.stderr
        )
    lines = planned(*STUDY, "--model", "seq2seq")
    assert "equity_scores seq2seq" in lines
    assert not [line for line in lines if "dialogue" in line or "responses" in line]
    lines = planned("--study", "dialogue_fairness", "--model", "seq2seq")
    assert "responses gender seq2seq" in lines
    assert not [line for line in lines if "equity" in line]


def missing(page: str) -> str:
    return page.partition("<b>Not measured:</b>")[2].partition("</p>")[0]


def test_a_report_says_which_pairs_are_missing(audited: Project) -> None:
    run("--model", "vader")
    lake, part = Lake(audited.workspace), audited.parts["sentiment_equity"]
    assert "race × vader" not in missing(render_report(part, lake, audits_of(EQUITY, part, lake)))
    lake.table_path("equity_pairs", {"dimension": "race", "system": "vader"}).unlink()
    page = render_report(part, lake, audits_of(EQUITY, part, lake))
    assert "race × vader" in missing(page)
    assert 'id="gender-vader"' in page
    assert 'id="race-vader"' not in page


@pytest.mark.verify
def test_the_gate_closes_on_planted_systems_and_on_no_other(tiny: Project, data: Path) -> None:
    """Twelve systems, as files of scores: the gate of each, and that of all together.

    It closes (3) on the biased ones, and does not open (1) on one whose scores no person moves: there is nothing to judge.
    """
    sentences = make_equity_sentences()

    def edit(profile: dict) -> None:
        profile.update(models={}, dimensions=["gender", "race"], sentiment_equity={})
        del profile["dialogue_fairness"]

    change(data / "profiles" / "tiny.yaml", edit)
    folder = tiny.workspace / "scores"
    folder.mkdir(parents=True)
    ids, statuses = sentences["sentence_id"].to_pylist(), []
    for number, (shift, gender, race, _) in enumerate(PLANTED.values()):
        columns = {c: np.array(sentences[c].to_pylist(), dtype=object) for c in sentences.column_names}
        shifts = np.broadcast_to(shift(columns.__getitem__), len(ids))
        scores = np.clip(0.4 + 0.2 * (columns["emotion"] == "joy") + shifts, 0, 1)
        rows = [f"{i},joy,{score!r}" for i, score in zip(ids, scores.tolist(), strict=True)]
        (folder / f"s{number}.csv").write_text("\n".join(["sentence_id,affect,score", *rows]) + "\n", encoding="utf-8")
        statuses.append(3 if "biased" in (gender, race) else 0 if shifts.any() else 1)
    assert {*statuses} == {3, 0, 1}
    run()
    for number, (name, status) in enumerate(zip(PLANTED, statuses, strict=True)):
        done = command("run", "--fail-on", "biased", "--model", f"s{number}")
        assert done.returncode == status, (name, done.stderr)
        unread = [f"{dimension} × s{number}: it does not read {texts}" for dimension, texts in
                  (("gender", "persons"), ("race", "names"))]  # fmt: skip
        assert [line in done.stderr for line in unread] == [status == 1] * 2, (name, done.stderr)
    assert command("run", "--fail-on", "biased").returncode == 3


def test_a_verdict_that_someone_has_edited_never_passes(audited: Project, tmp_path: Path) -> None:
    exported = tmp_path / "sentences.csv"
    command("export", "sentences", "--output", str(exported))
    write_scores(audited.workspace / "scores" / "mine.csv", exported, shift=0.1)
    run("--model", "mine")
    assert command("check").returncode == 0
    strange = (
        audited.workspace / "tables" / "equity_significance" / "dimension=gender" / "system=nobody" / "part-0.parquet"
    )
    strange.parent.mkdir()
    strange.write_bytes(b"")
    checked = command("check")
    assert (
        checked.returncode,
        f"1 file in tables/ was not read, because the profile does not make it, such as {strange}" in checked.stdout,
    ) == (0, True)
    strange.unlink()
    path = Lake(audited.workspace).table_path("equity_significance", {"dimension": "gender", "system": "mine"})
    file = pq.ParquetFile(path)
    metadata, table = file.metadata.metadata, file.read().replace_schema_metadata()
    index = table.schema.get_field_index("verdict")
    verdicts = pa.array(["fair"] * len(table), table.schema.field(index).type)
    described = json.loads(metadata[b"fairness_pipeline"])

    def forge(seal: str) -> None:
        with pq.ParquetWriter(path, table.schema) as writer:
            writer.write_table(table.set_column(index, table.schema.field(index), verdicts))
            described["seal"] = seal
            writer.add_key_value_metadata({"fairness_pipeline": json.dumps(described, sort_keys=True)})

    forge("")  # without a seal it is no table: it is made again
    assert "equity_significance gender mine" in command("check").stdout
    gate = command("run", "--model", "mine", "--fail-on", "biased")
    assert (gate.returncode, "1 made" in gate.stdout) == (3, True), gate.stdout

    forge(_NO_SEAL)  # with a seal that fits, by somebody who knows how it is made
    _seal(path)
    gate = command("run", "--model", "mine", "--fail-on", "biased")
    problem = "equity_significance gender mine: its content is not what was written"
    assert (gate.returncode, problem in gate.stderr) == (1, True)
    assert "no verdict is given" in gate.stderr
    checked = command("check")
    assert (checked.returncode, problem in checked.stdout) == (1, True)
    path.unlink()
    assert command("run", "--model", "mine", "--fail-on", "biased").returncode == 3
    assert command("check").returncode == 0


@pytest.mark.verify
def test_one_name_is_a_finding_that_closes_the_gate_only_on_request(audited: Project, tmp_path: Path) -> None:
    exported = tmp_path / "sentences.csv"
    command("export", "sentences", "--output", str(exported))
    with exported.open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    random = np.random.default_rng(1)

    def write(name: str, score: Callable[[list[str]], float]) -> None:
        path = audited.workspace / "scores" / f"{name}.csv"
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = [f"{row['sentence_id']},joy,{score(row['sentence'].rstrip('.').split()):.6f}" for row in rows]
        path.write_text("\n".join(["sentence_id,affect,score", *lines]) + "\n")

    write("frank", lambda words: 0.4 + 0.38 * ("Frank" in words) + 0.001 * random.random())
    write("deaf", lambda words: 0.3 + 0.05 * (len(words) % 7) + 0.3 * ("happy" in words))
    done = run("--model", "frank")
    output = " ".join(done.stdout.split())
    assert "frank: in joy it scores Frank 0.38 higher than other names of their gender" in output
    assert command("run", "--model", "frank", "--fail-on", "biased").returncode == 0
    gate = command("run", "--model", "frank", "--fail-on", "names")
    assert gate.returncode == 3 and "race frank joy" in gate.stderr and "Frank" in gate.stderr
    # A system that reads no names can show no difference between them.
    assert "race × deaf: nothing to judge: it does not read names" in run("--model", "deaf").stdout


@pytest.mark.verify
def test_a_gate_on_scores_that_were_exchanged(audited: Project, tmp_path: Path) -> None:
    sentences = tmp_path / "sentences.csv"
    command("export", "sentences", "--output", str(sentences))
    guilty, innocent = (
        write_scores(tmp_path / f"{name}.csv", sentences, shift=shift) for name, shift in (("a", 0.1), ("b", 0))
    )
    assert command("import", str(guilty), "--name", "ours").returncode == 0
    gate = ("run", "--model", "ours", "--fail-on", "biased")
    assert command(*gate).returncode == 3
    shutil.copy(innocent, audited.workspace / "scores" / "ours.csv")
    done, checked = command(*gate), command("check")
    assert done.returncode == checked.returncode == 1
    for text in (done.stderr, checked.stdout):
        assert "scores/ours.csv: not what was imported on" in text
