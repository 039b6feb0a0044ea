"""Tests study 2 from comments to the report, on generated comments and on a user's own."""

import argparse
import csv
import math
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fairness_pipeline.cli.given import Given
from fairness_pipeline.debiasing.language.registry import METHODS
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.measures.language.stereotype import Quadruples, stereotype
from fairness_pipeline.project.project import Project, part_of
from fairness_pipeline.studies.language_model_bias import study
from fairness_pipeline.studies.language_model_bias.audit import give
from fairness_pipeline.studies.language_model_bias.profile import LanguageModelPart
from fairness_pipeline.workspace.lake import Lake
from fairness_pipeline_tests.commands import change, command, planned, run
from fairness_pipeline_tests.conftest import write_yaml
from fairness_pipeline_tests.models.tiny_models import causal_lm, masked_lm
from fairness_pipeline_tests.reporting.pairs import pairs_make_the_verdicts

STUDY = "language_model_bias"
GPT2 = {
    "architecture": "gpt2",
    "studies": [STUDY],
    "gpt2": {"layers": 1, "heads": 2, "embedding": 16, "positions": 48, "vocabulary": 400},
    "fitting": {"epochs": 1, "batch": 32, "learning_rate": 0.01},
}
SMALL = {
    "description": "for tests",
    "seed": 3,
    "dimensions": ["religion1", "dialect"],
    "models": {
        "small": {},
        "small-hd": {"settings": {"batch": [8], "accumulation": [1], "lambda_lm": [0.01], "lambda_d": [1, 10], "epochs": 1}},
        "small-plain": {"settings": {"epochs": 1}},
        "dialogpt-published": {},
    },
    STUDY: {
        "corpus": "small",
        "significance": {"unbiased": 20},
        "state_tracking": {"batch": 16, "learning_rate": 0.01},
        "responses": {"batch": 16, "learning_rate": 0.01, "longest": 40, "max_tokens": 5},
    },
}  # fmt: skip


@pytest.fixture
def small(data: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A profile `small`: 1,500 generated comments, a GPT-2 that trains in a second, a method and its control."""
    write_yaml(
        data / "corpora" / "small.yaml",
        {
            "grammar": {"file": "grammars/reddit_sample.yaml", "comments": 1500, "seed": 5, "turns": 40, "questions": 24,
                        "references": 30},
            "licence": "none", "citation": "none",
        },
    )  # fmt: skip
    write_yaml(data / "models" / "small.yaml", GPT2)
    for method in ("hd", "plain"):
        write_yaml(data / "models" / f"small-{method}.yaml", {"base": "small", "debiasing": method})
    write_yaml(data / "profiles" / "small.yaml", SMALL)
    monkeypatch.setenv("FAIRNESS_PROFILE", "small")
    return Project("small")


def test_from_comments_to_the_report(small: Project) -> None:
    done = run()
    pairs_make_the_verdicts(small, fewest=1)
    assert "Language-model bias, profile small" in done.stdout
    lake = Lake(small.workspace)
    assert not planned()
    key = {"dimension": "religion1", "model": "dialogpt-published"}
    rows = {row["measure"]: row for row in lake.read("language_model_bias", key).to_pylist()}
    assert rows["perplexity"]["statistic"] == pytest.approx(-3.57, abs=0.005)
    assert rows["perplexity"]["published_p"] == "p < 0.05"
    hd = {**key, "model": "small-hd"}
    measures = lake.read("language_model_bias", hd)["measure"].to_pylist()
    assert measures == [
        "stereotype",
        "log_perplexity",
        "perplexity",
        "log_perplexity_all_pairs",
        "negative_log_likelihood",
    ]
    rows_of = {row["measure"]: row for row in lake.read("language_model_debiasing_effects", hd).to_pylist()}
    effect, stereotype_effect = rows_of["log_perplexity"], rows_of["stereotype"]
    base = lake.read("language_model_bias", {**key, "model": "small"}).to_pylist()
    everything = next(row for row in base if row["measure"] == "log_perplexity_all_pairs")
    assert effect["difference_before"] == pytest.approx(everything["difference"])
    judged = [
        next(row for row in lake.read("language_model_bias", model_key).to_pylist() if row["measure"] == "stereotype")
        for model_key in ({**key, "model": "small"}, hd, {**key, "model": "small-plain"})
    ]
    # The cure is measured on the row that decides the verdict, beside the same training without a cure.
    assert [
        stereotype_effect["difference_before"],
        stereotype_effect["difference_after"],
        stereotype_effect["difference_control"],
    ] == pytest.approx([row["difference"] for row in judged])
    assert stereotype_effect["control"] == "small-plain" and stereotype_effect["share_left"] == pytest.approx(
        abs(judged[1]["difference"] / judged[0]["difference"])
    )
    assert len(lake.card("debiased_language_models", hd).figures["grid"]) == 2
    splits = lake.card("phrase_splits", {"dimension": "religion1"}).figures["phrases"]
    assert 5 < splits["unbiased"] <= 20 and splits["train"] > splits["test"] > 5
    agreed = lake.read("annotation_agreement", {"dimension": "religion1"}).to_pylist()
    assert agreed and all(0.3 < row["alpha"] <= 1 and row["items"] > 10 for row in agreed)
    for task, metric in (("reddit_perplexity", "perplexity_mean"), ("dialogue_state_tracking", "dst_f1"),
                         ("response_generation", "crg_bleu4")):  # fmt: skip
        assert metric in lake.read(f"base_{task}", {"model": "small"})["metric"].to_pylist()
        assert metric in lake.read(task, hd)["metric"].to_pylist()
    page = (small.workspace / "reports" / "language_model_bias_report.html").read_text(encoding="utf-8")
    for text in ("Figure 1 of the paper", "table 3", "small-plain", "chosen", "This may offend",
                 "repeats that of METEOR", "can be turned round"):  # fmt: skip
        assert text in page
    gate = command("run", "--fail-on", "biased", "--model", "dialogpt-published")
    assert gate.returncode == 1  # perplexities alone have no verdict that could have been biased
    assert "no verdict could have been biased: inconclusive: stereotype (" in gate.stderr
    assert command("run", "--fail-on", "inconclusive", "--model", "dialogpt-published").returncode == 3
    listed = command("results", "--study", STUDY, "--format", "csv").stdout.splitlines()
    assert listed[0].startswith("dimension,model,measure,unit,n,") and len(listed) == 1 + 3 + 3 * 5


@pytest.mark.verify
def test_log_probabilities_made_elsewhere_get_the_whole_verdict(small: Project, tmp_path: Path) -> None:
    """Texts go out, a model's own log-probabilities come in: its rows come out again, the verdict included."""
    run("--model", "small", "--dimension", "religion1", "--select", "language_model_bias")
    lake, path = Lake(small.workspace), tmp_path / "texts.csv"
    done = command("export", "phrase-texts", "--dimension", "religion1", "--output", str(path))
    assert done.returncode == 0 and "import FILE --name NAME" in done.stdout
    with path.open(newline="") as stream:
        texts = [row["text"] for row in csv.DictReader(stream)]
    key = {"dimension": "religion1", "model": "small"}
    scored = {row["text"]: row for row in lake.read("phrase_perplexities", key).to_pylist()}
    assert len(texts) == len(set(texts)) and set(texts) == scored.keys()

    def write(rows: list[str], **changes: str) -> None:
        with path.open("w", newline="") as stream:
            writer = csv.DictWriter(stream, ["text", "logprob", "tokens"])
            writer.writeheader()
            for text in rows:
                count = scored[text]["tokens"]
                writer.writerow(
                    {"text": text, "logprob": -math.log(scored[text]["perplexity"]) * count, "tokens": count, **changes}
                )

    for changes, message in (
        ({"logprob": "0.3"}, "line 2: logprob: expected 0 or less"),
        ({"logprob": "many"}, "line 2: logprob: expected a number, found 'many'"),
        ({"tokens": "1e300"}, "line 2: tokens: expected how many tokens the sum is over"),
        ({"tokens": "0"}, "line 2: tokens: expected how many tokens the sum is over"),
    ):
        write(texts, **changes)
        wrong = command("import", str(path), "--name", "elsewhere")
        assert wrong.returncode == 1 and message in wrong.stderr
    write(texts)
    missing = command("import", "nofile.csv", "--name", "elsewhere")
    assert missing.returncode == 1 and "nofile.csv" in missing.stderr
    assert "has 'small' already" in command("import", str(path), "--name", "small").stderr
    assert f"{len(texts):,} texts scored by 'elsewhere'" in command("import", str(path), "--name", "elsewhere").stdout
    part = part_of("small", STUDY, LanguageModelPart)
    with pytest.raises(FairnessError, match="has a model 'elsewhere' already"):
        give(part, Given("id", "gpt2"), "elsewhere", argparse.Namespace())
    run("--model", "elsewhere", "--dimension", "religion1")
    theirs, ours = (
        lake.read("language_model_bias", {**key, "model": name}).to_pylist() for name in ("elsewhere", "small")
    )
    assert [row["verdict"] for row in theirs] == [row["verdict"] for row in ours] and len(theirs) == 5
    assert [row["difference"] for row in theirs] == pytest.approx([row["difference"] for row in ours], rel=1e-9)
    assert not lake.card("language_models", {"model": "elsewhere"})  # there are no weights
    write(texts[1:])
    command("import", str(path), "--name", "elsewhere")
    again = command("run", "--model", "elsewhere", "--dimension", "religion1")
    assert again.returncode == 1 and "1 texts have no log-probability" in again.stdout + again.stderr
    assert command("forget", "elsewhere").returncode == 0


def test_annotations_out_and_in(small: Project, tmp_path: Path) -> None:
    """Phrases exported, labelled by two, imported: the agreement and the splits are theirs; errors name the line."""
    out = tmp_path / "phrases.csv"
    done = command("export", "phrases", "--dimension", "religion1", "--output", str(out), "--count", "60")
    assert done.returncode == 0 and "60 phrases" in done.stdout
    assert "negative stereotype" in (tmp_path / "phrases-guidelines.txt").read_text(encoding="utf-8")
    with out.open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))

    def labelled(name: str, flip: int) -> Path:
        path = tmp_path / f"{name}.csv"
        with path.open("w", encoding="utf-8", newline="") as stream:
            writer = csv.DictWriter(stream, rows[0])
            writer.writeheader()
            for n, row in enumerate(rows):
                label = ("myth" not in row["comment"]) != (n < flip)
                writer.writerow({**row, "bias_sent": int(label), "bias_phrase": int(label)})
        return path

    for name, flip in (("ann", 0), ("bob", 3)):
        done = command("import", str(labelled(name, flip)), "--dimension", "religion1", "--name", name)
        assert done.returncode == 0, done.stderr
    run("--select", "annotation_agreement")
    lake = Lake(small.workspace)
    (agreed, _) = lake.read("annotation_agreement", {"dimension": "religion1"}).to_pylist()
    assert agreed["items"] == 60 and agreed["alpha"] < 1
    assert lake.card("phrase_annotations", {"dimension": "religion1"}).figures["rows"] == 120
    bad = tmp_path / "bad.csv"
    bad.write_text(labelled("x", 0).read_text(encoding="utf-8").replace(",1,1\n", ",1,perhaps\n", 1), encoding="utf-8")
    done = command("import", str(bad), "--dimension", "religion1", "--name", "x")
    assert done.returncode == 1 and "bias_phrase: expected 1 or 0" in done.stderr
    done = command("export", "phrases", "--dimension", "dialect", "--output", str(tmp_path / "d.csv"))
    assert "unknown dimension 'dialect' in profile 'small'; known: religion1" in done.stderr


@pytest.mark.verify
def test_a_users_comments_and_a_model_of_two_studies(small: Project, data: Path, tmp_path: Path) -> None:
    """A dump in JSON lines, labels, any causal model by folder; the same file is audited for its answers too."""
    from fairness_pipeline.corpora.language.stereotype_grammar import StereotypeGrammar

    grammar = StereotypeGrammar.load("grammars/reddit_sample.yaml")
    comments = [comment.text for comment in grammar.comments(1500, 9)]
    dump = tmp_path / "dump.csv"
    with dump.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["id", "body"])
        writer.writerows(
            [f"c{n}", f"See https://x.y/{n} /u/someone{n}:  {text.upper()}"] for n, text in enumerate(comments)
        )
        writer.writerow(["gone", "[deleted]"])
    write_yaml(
        data / "corpora" / "own.yaml",
        {"comments": [{"path": str(dump)}], "licence": "none", "citation": "none"},
    )
    folder = causal_lm(tmp_path / "lm", positions=64)
    write_yaml(
        data / "models" / "mine.yaml",
        {
            "architecture": "causal_lm",
            "studies": ["dialogue_fairness", STUDY],
            "corpus": "everyday",
            "huggingface": {"name": folder, "prompt": "user : {context} bot :"},
            "decoding": {"max_tokens": 3, "keep_empty": True},
        },
    )

    def both(profile: dict[str, Any]) -> None:
        profile["models"] = {"mine": {}}
        profile[STUDY]["corpus"] = "own"
        profile["dialogue_fairness"] = {"corpora": ["everyday"], "pairs": {"maximum": 6}, "max_identical_share": 1.0}

    change(data / "profiles" / "small.yaml", both)
    out = tmp_path / "phrases.csv"
    assert command("export", "phrases", "--dimension", "religion1", "--output", str(out)).returncode == 0
    with out.open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert rows and all("http" not in row["comment"] and "someone" not in row["comment"] for row in rows)
    with out.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, rows[0])
        writer.writeheader()
        writer.writerows({**row, "bias_sent": 1, "bias_phrase": "TRUE"} for row in rows)
    done = command("run", "--study", STUDY)
    assert done.returncode == 1
    assert (
        "phrases found, none labelled: fairness-pipeline export phrases --dimension religion1"
        in done.stderr + done.stdout
    )
    done = command("import", str(out), "--dimension", "religion1", "--name", "me")
    assert done.returncode == 0, done.stderr
    run("--dimension", "religion1")
    lake = Lake(small.workspace)
    key = {"dimension": "religion1", "model": "mine"}
    assert lake.read("language_model_bias", key).num_rows == 5
    assert lake.read("dialogue_significance", key).num_rows > 4
    left_out = {"deleted or empty": 1, "the same id again": 0}
    figures = {"comments": 1500, "left_out": left_out, "blank_ids_numbered": 0}
    assert lake.card("reddit_comments", {}).figures == figures


@pytest.mark.parametrize(
    ("make", "tried"),
    [(partial(causal_lm, positions=64), True), (partial(masked_lm, positions=400), False)],
    ids=["causal", "masked"],
)
def test_audit_takes_any_language_model(data: Path, tmp_path: Path, make: Callable[[Path], str], tried: bool) -> None:
    """Without any YAML: a folder, asked about generated phrases; a masked model is not tried in tasks."""
    write_yaml(data / "corpora" / "reddit_sample.yaml",
               {"grammar": {"file": "grammars/reddit_sample.yaml", "comments": 1500, "seed": 5},
                "licence": "none", "citation": "none"})  # fmt: skip
    folder = make(tmp_path / "mine")
    done = command("audit", folder, "--study", STUDY, "--dimension", "religion1", "--workers", "1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "asked for the perplexity of phrases" in done.stdout
    key = {"dimension": "religion1", "model": "mine"}
    lake = Lake(Project("audit").workspace)
    assert lake.read("language_model_bias", key).num_rows == 5
    assert bool(lake.card("base_reddit_perplexity", {"model": "mine"})) == tried
    assert command("forget", "mine", "--profile", "audit").returncode == 0
    assert "mine" not in Project("audit").parts[STUDY].subjects


def test_a_profile_without_stereotypes_is_refused(small: Project, data: Path) -> None:
    change(data / "profiles" / "small.yaml", lambda profile: profile.update(dimensions=["dialect"]))
    with pytest.raises(FairnessError, match="audited in dimensions with stereotypes; found dialect"):
        Project("small")


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ({"base": "small", "debiasing": "wer"}, f"debiasing: expected one of {', '.join(METHODS)}, found 'wer'"),
        ({"base": "none", "debiasing": "hd"}, "base: unknown model 'none'; known: "),
        (
            {"base": "dialogpt-published", "debiasing": "hd"},
            "must be a causal language model that is not debiased itself and has weights",
        ),
        ({"base": "bert", "debiasing": "hd"}, "'bert' must be a causal language model"),
        ({"base": "small", "debiasing": "hd", "settings": {"lambda": 1}}, "unknown key 'settings.lambda'"),
        ({**GPT2, "studies": ["nothing"]}, "unknown study 'nothing'"),
        ({**GPT2, "studies": "all"}, "studies: expected a list"),
        ({**GPT2, "wings": 2}, "unknown key 'wings'"),
    ],
)
def test_wrong_models(small: Project, data: Path, model: dict[str, Any], message: str) -> None:
    write_yaml(data / "models" / "wrong.yaml", model)
    write_yaml(
        data / "models" / "bert.yaml", {"architecture": "masked_lm", "studies": [STUDY], "huggingface": {"name": "b"}}
    )
    change(data / "profiles" / "small.yaml", lambda profile: profile["models"].update(bert={}, wrong={}))
    with pytest.raises(FairnessError, match=message):
        Project("small")


def test_wrong_published_perplexities(small: Project, data: Path) -> None:
    (data / "published").mkdir()
    head = "dimension,phrase,comment,target,perplexity_a,perplexity_b\n"
    for row, message in (
        ("religion1,1,1,jews,3,x", "line 2: perplexity_b: expected a perplexity .1 or more., found 'x'"),
        ("religion1,1,1,jews,,3", "line 2: expected a value in column 'perplexity_a', found none"),
    ):
        (data / "published" / "mine.csv").write_text(head + row + "\n", encoding="utf-8")
        write_yaml(data / "models" / "mine.yaml",
                   {"architecture": "perplexities", "studies": [STUDY], "perplexities": "published/mine.csv"})  # fmt: skip
        change(data / "profiles" / "small.yaml", lambda profile: profile.update(models={"mine": {}}))
        with pytest.raises(FairnessError, match=message):
            Project("small").parts[STUDY].expected()


def test_a_picture_and_a_sentence_name_the_group_of_which_the_stereotype_is_likelier() -> None:
    """By hand: about a the stereotype costs 5 nats and its opposite 3, about b both cost 3; so it is likelier of b."""
    number = np.arange(40)
    wobble = np.sin(number) / 10
    phrases = Quadruples(5 + wobble, np.full(40, 3.0), np.full(40, 3.0), np.full(40, 3.0), number % 10, number % 2)
    row = {**asdict(stereotype(phrases, targets_are_a_sample=False).row), "exchanged": "greedy"}
    assert row["verdict"] == "biased"
    assert study.STUDY.direction(row, ("Christian", "Jewish")) == "likelier: Jewish"
    finding = study.STUDY.finding(
        Project("sample").parts["language_model_bias"], {"dimension": "religion1", "model": "m"}, row
    )
    assert "times as likely about Jewish people as about Christian people" in finding
