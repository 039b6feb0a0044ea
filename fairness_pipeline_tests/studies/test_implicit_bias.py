"""Tests study 4 from texts to the report, on generated texts and on a user's own, its commands, and refusals."""

import csv
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest

from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.models.classifiers import published
from fairness_pipeline.models.classifiers.specification import ClassifierSpecification
from fairness_pipeline.project.project import Project
from fairness_pipeline.studies.implicit_bias import results
from fairness_pipeline.studies.implicit_bias.results import effects
from fairness_pipeline.workspace.lake import Lake
from fairness_pipeline_tests.commands import change, command, content, planned, run
from fairness_pipeline_tests.conftest import write_yaml
from fairness_pipeline_tests.models.classifiers.tiny import NETWORK, told_by_a_word
from fairness_pipeline_tests.models.tiny_models import classifier
from fairness_pipeline_tests.reporting.pairs import pairs_make_the_verdicts

STUDY = "implicit_bias"
SMALL: dict[str, Any] = {
    "description": "for tests",
    "seed": 3,
    "dimensions": ["gender"],
    STUDY: {
        "corpora": ["authored_sample"],
        "maximum": 300,
        "splits": {"train": 0.5, "valid": 0.1, "test": 0.4},
        "classifiers": {
            "cnn": {"network": NETWORK, "fitting": {"learning_rate": 0.01, "epochs": 4, "batch": 32}, "seeds": 2},
            "cnn-ins_weigh": {},
            "cnn-debiased_tc": {"settings": {"hidden": 8, "epochs": 2, "learning_rate": 0.01}},
        },
        "balance_rates": ["4:1", "1:1"],
        "swept": "cnn",
        "explain": ["cnn"],
        "explainer": {"hidden": 8, "epochs": 1, "learning_rate": 0.01, "texts": 20, "steps": 4},
    },
}
KEY = {"corpus": "authored_sample", "classifier": "cnn"}


@pytest.fixture
def small(data: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A profile `small`: generated texts, a CNN that trains in a second, two methods, two seeds."""
    write_yaml(data / "profiles" / "small.yaml", SMALL)
    monkeypatch.setenv("FAIRNESS_PROFILE", "small")
    return Project("small")


def test_from_texts_to_the_report(small: Project) -> None:
    done = run()
    pairs_make_the_verdicts(small, fewest=3)
    assert "Implicit bias in text classification, profile small" in done.stdout
    assert not planned()
    lake = Lake(small.workspace)
    sets = lake.read("skewed_training_sets", {"corpus": "authored_sample", "rate": "1-1"})
    assert set(sets["balance_rate"].to_pylist()) == {"1:1"}
    rows = lake.read("classifier_fairness", KEY).to_pylist()
    assert [row["measure"] for row in rows] == ["fp_rate", "fn_rate", "dp_rate"]
    assert {row["seeds"] for row in rows} == {2}
    metrics = {row["metric"]: row for row in lake.read("classifier_metrics", KEY).to_pylist()}
    assert metrics["dpd"]["value"] == pytest.approx(np.mean(metrics["dpd"]["seeds"]))
    assert metrics["accuracy"]["value"] > 55
    predictions = lake.read("classifier_predictions", KEY)
    assert Counter(predictions["seed"].to_pylist()) == {1: 480, 2: 480}
    changed = lake.read("classifier_debiasing_effects", {**KEY, "classifier": "cnn-debiased_tc"}).to_pylist()
    assert [row["difference_before"] for row in changed] == pytest.approx([row["difference"] for row in rows])
    part = Project("small").parts[STUDY]  # where one collapsed, its lack of a gap is no cure
    collapsed = replace(
        results.STUDY, degenerate=lambda part, key, lake: "guesses" if key["classifier"] == "cnn-debiased_tc" else None
    )
    with mock.patch.object(results, "STUDY", collapsed):
        effect_of = {row["classifier"]: row["effect"] for row in effects(part, lake)}
    assert effect_of["cnn-debiased_tc"] == "nothing to judge" and effect_of["cnn-ins_weigh"] != "nothing to judge"
    saliency = lake.read("saliency", KEY)
    assert saliency.num_rows == 40 and all(
        sum(shares) == pytest.approx(1) for shares in saliency["group_l2x"].to_pylist()
    )
    # At the rate of all classifiers, figure 4.2 shows the classifier of the tables; at another rate, one of its own.
    usual, even = (lake.read("balance_rates", {"corpus": "authored_sample", "rate": rate}) for rate in ("4-1", "1-1"))
    predictions = lake.read("classifier_predictions", KEY)
    right = np.equal(predictions["prediction"], predictions["label"]).reshape(2, -1).mean(axis=1)
    assert usual["accuracy"].to_pylist() == pytest.approx(right.tolist())
    explained = saliency.group_by("seed").aggregate([("js_l2x", "mean")]).sort_by("seed")
    assert usual["js_l2x"].to_pylist() == pytest.approx(explained["js_l2x_mean"].to_pylist())
    assert even.num_rows == 2 and even["js_l2x"].to_pylist() != usual["js_l2x"].to_pylist()
    page = (small.workspace / "reports" / "implicit_bias_report.html").read_text(encoding="utf-8")
    for text in (
        "This may offend",
        "table 4.2",
        "figure 4.2",
        "cnn-debiased_tc",
        "The two explanations agree",
        "Northtown",
    ):
        assert text in page
    listed = command("results", "--study", STUDY, "--format", "csv").stdout.splitlines()
    assert listed[0].startswith("corpus,classifier,measure") and len(listed) == 1 + 3 * 3
    assert command("run", "--fail-on", "biased").returncode in (0, 3)
    before = content(small.workspace)
    run("--force", "--select", "classifier_fairness", "--model", "cnn")
    assert content(small.workspace) == before  # the same seeds, the same bytes


def test_a_users_own_table_and_somebody_elses_predictions(small: Project, data: Path, tmp_path: Path) -> None:
    """Texts of a CSV; a classifier elsewhere that calls all of group b's positive; both by the commands of the README."""
    texts, labels, groups = told_by_a_word(1200, 1)
    with (tmp_path / "mine.csv").open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["text", "label", "who"])
        writer.writerows(zip(texts, np.array(["no", "yes"])[labels], np.array(["m", "w"])[groups], strict=True))
    write_yaml(
        data / "corpora" / "mine.yaml",
        {
            "task": "opinion", "attribute": "gender", "files": [{"path": str(tmp_path / "mine.csv"), "columns": {"group": "who"}}],
            "labels": {"positive": ["yes"], "negative": ["no"]},
            "groups": {"a": {"name": "men", "values": ["m"]}, "b": {"name": "women", "values": ["w"]}},
            "licence": "ours", "citation": "internal",
        },
    )  # fmt: skip
    write_yaml(data / "profiles" / "mine.yaml", {**SMALL, STUDY: {"corpora": ["mine"]}})
    out = tmp_path / "texts.csv"
    done = command("export", "texts", "--profile", "mine", "--corpus", "mine", "--output", str(out))
    assert done.returncode == 0 and "import" in done.stdout
    with out.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    filled = tmp_path / "filled.csv"
    with filled.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["text_id", "prediction"])
        writer.writerows((row["text_id"], int("yup" in row["text"].split() or "good" in row["text"])) for row in rows)
    options = ("--profile", "mine", "--corpus", "mine", "--name", "theirs")
    wrong = tmp_path / "wrong.csv"
    wrong.write_text("text_id,prediction\nnobody,1\n", encoding="utf-8")
    refused = command("import", str(wrong), *options)
    assert refused.returncode == 1 and "1 unknown texts, such as 'nobody'" in refused.stderr
    assert command("import", str(filled), *options).returncode == 0
    done = run("--profile", "mine")
    lake = Lake(Project("mine").workspace)
    by_measure = {
        r["measure"]: r
        for r in lake.read("classifier_fairness", {"corpus": "mine", "classifier": "theirs"}).to_pylist()
    }
    assert (
        by_measure["fp_rate"]["value_b"] == 100
        and by_measure["fp_rate"]["verdict"] == "biased"
        and by_measure["fp_rate"]["seeds"] == 1
    )
    assert "theirs labels 100.0% of the 'negative' texts by 'women' as 'positive'" in done.stdout
    gate = command("run", "--profile", "mine", "--fail-on", "biased")
    assert gate.returncode == 3
    assert (
        command(
            "export", "texts", "--profile", "mine", "--corpus", "no", "--output", str(tmp_path / "x.csv")
        ).returncode
        == 1
    )
    assert command("forget", "theirs", "--profile", "mine").returncode == 0


def test_more_classes_and_groups_in_one_table_by_one_file(small: Project, data: Path, tmp_path: Path) -> None:
    """A classifier of three feelings that takes the joy of one of four groups for anger: found there alone. One file of
    texts goes out, one of predictions comes in; groups of different sizes lose no test text."""
    feelings, groups = ("joy", "anger", "fear"), ("north", "south", "east", "west")
    draw, predictions = np.random.default_rng(2), {}
    with (tmp_path / "mine.csv").open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["text", "label", "group"])
        for number in range(3600):
            feeling, group = feelings[number % 3], groups[min(3, int(draw.exponential(1.2)))]
            text = f"text {number}"
            wrong = draw.random() < (0.5 if (feeling, group) == ("joy", "south") else 0.1)
            predictions[text] = "anger" if wrong and feeling == "joy" else draw.choice(feelings) if wrong else feeling
            writer.writerow([text, feeling, group])
    corpus = {
        "task": "feeling", "attribute": "region", "files": [{"path": str(tmp_path / "mine.csv")}],
        "labels": {"classes": {name: [name] for name in feelings}}, "groups": {"each": {name.title(): [name] for name in groups}},
        "licence": "ours", "citation": "internal",
    }  # fmt: skip
    write_yaml(data / "corpora" / "feelings.yaml", corpus)
    profile = {**SMALL, STUDY: {"corpora": ["feelings"], "splits": {"train": 0, "valid": 0, "test": 1}}}
    write_yaml(data / "profiles" / "mine.yaml", profile)
    part = Project("mine").parts[STUDY]
    assert list(part.corpora) == [f"feelings.{feeling}" for feeling in feelings]
    out, filled = tmp_path / "texts.csv", tmp_path / "filled.csv"
    exported = command("export", "texts", "--profile", "mine", "--corpus", "feelings", "--output", str(out))
    assert "3,600 texts; fill in 'prediction' (joy, anger, fear) in a copy" in " ".join(exported.stdout.split())
    with out.open(encoding="utf-8", newline="") as stream, filled.open("w", encoding="utf-8", newline="") as target:
        writer = csv.writer(target)
        writer.writerow(["text_id", "prediction"])
        writer.writerows((row["text_id"], predictions[row["text"]]) for row in csv.DictReader(stream))
    options = ("--profile", "mine", "--corpus", "feelings", "--name", "theirs")
    assert command("import", str(filled), *options).returncode == 0
    done = run("--profile", "mine")
    assert "South" in done.stdout
    lake = Lake(Project("mine").workspace)
    rows = lake.read("classifier_fairness", {"corpus": "feelings.joy", "classifier": "theirs"}).to_pylist()
    by_contrast = {
        (row["contrast"], row["group"], row["against"]): row for row in rows if row["measure"].startswith("fn_rate")
    }
    (largest,) = (row for (contrast, *_), row in by_contrast.items() if contrast == "largest gap")
    assert largest["verdict"] == "biased" and "South" in (largest["group"], largest["against"])
    others = {group: row for (contrast, group, _), row in by_contrast.items() if contrast == "others"}
    assert others["South"]["verdict"] == "biased" and others["South"]["difference"] > 25  # South's joy is missed
    assert all(row["verdict"] != "biased" for group, row in others.items() if group != "South")
    assert len([row for (contrast, *_), row in by_contrast.items() if contrast == "pair"]) == 6
    rows = lake.read("classifier_fairness", {"corpus": "feelings.fear", "classifier": "theirs"}).to_pylist()
    assert all(row["verdict"] != "biased" for row in rows if row["measure"].startswith("fn_rate"))
    page = (Project("mine").workspace / "reports" / "implicit_bias_report.html").read_text(encoding="utf-8")
    assert "South against the others" in page and "3,600 of 3,600 texts are judged" in page
    with filled.open("a") as stream:
        stream.write("x,sorrow\n")
    broken = command("import", str(filled), *options)
    assert broken.returncode == 1 and "prediction: expected one of joy, anger, fear, found 'sorrow'" in broken.stderr


@pytest.mark.parametrize(
    ("labels", "groups", "message"),
    [
        ({"classes": {"x": ["x"], "y": ["y"]}}, None, "'classes' are three or more"),
        ({"classes": {"x": ["x"], "y": ["y"], "z": ["x"]}}, None, "a label is in two of the 'classes'"),
        ({"classes": {"x": ["x"], "y": ["y"], "z": ["z"]}, "positive": ["x"]}, None, "keep one of the two ways"),
        (None, {"each": {"m": ["m"], "w": ["w"]}}, "'each' names three groups or more"),
        (None, {"each": {"m": ["m"], "w": ["w"], "x": ["m"]}}, "groups' overlap|a value is in two"),
        (None, {"each": {"m": ["m"], "w": ["w"], "x": ["x"]}, "a": {"name": "m", "values": ["m"]}}, "use either 'each' or 'a', 'b' and 'dialect', not both"),
        ({"classes": {"x!": ["x"], "x?": ["y"], "z": ["z"]}}, None, "two classes would get this key"),
    ],
)  # fmt: skip
def test_ambiguous_classes_and_groups_are_refused(
    small: Project, data: Path, labels: Any, groups: Any, message: str
) -> None:
    two = {"a": {"name": "m", "values": ["m"]}, "b": {"name": "w", "values": ["w"]}}
    corpus = {
        "task": "t",
        "attribute": "g",
        "files": [{"path": "x.csv"}],
        "groups": groups or two,
        "licence": "l",
        "citation": "c",
    }
    write_yaml(data / "corpora" / "odd.yaml", {**corpus, **({"labels": labels} if labels else {})})
    change(data / "profiles" / "small.yaml", lambda p: p[STUDY].update(corpora=["odd"]))
    with pytest.raises(FairnessError, match=message):
        Project("small")


def test_a_published_classifiers_labels_of_each_class(tmp_path: Path) -> None:
    """With a corpus of several classes it is asked for each; its labels are assigned to classes by name."""
    source = {"name": classifier(tmp_path / "model"), "positive": {"joy": ["POSITIVE"], "anger": ["NEGATIVE"]}}
    specification = ClassifierSpecification.model_validate({"architecture": "huggingface", "huggingface": source})
    texts = pa.table({"text": ["what a day", "so bad"]})
    both = ("joy", "anger")
    scorers = [published.scorer(specification.of_class(name, both), tmp_path, seed=1) for name in both]
    joy, anger = (score(texts)["probability"].to_numpy() for score in scorers)
    assert joy + anger == pytest.approx([1, 1], abs=1e-6)
    expected = r"that mean each class of the corpus \(joy, anger, fear\), by its name; found joy, anger"
    with pytest.raises(FairnessError, match=expected):
        specification.of_class("joy", (*both, "fear"))
    flat = specification.model_copy(
        update={"huggingface": specification.huggingface.model_copy(update={"positive": ("POSITIVE",)})}
    )
    with pytest.raises(FairnessError, match=r"found POSITIVE"):
        flat.of_class("joy", both)  # it would judge each class by the probability of the same one
    for positive, reason in (({"joy": ["A"], "fear": ["A"]}, "in two of the classes"), ({"joy": []}, "needs a label")):
        with pytest.raises(ValueError, match=reason):
            ClassifierSpecification.model_validate(
                {"architecture": "huggingface", "huggingface": {**source, "positive": positive}}
            )
    by_endpoint = ClassifierSpecification.model_validate(
        {
            "architecture": "endpoint",
            "endpoint": {"base_url": "http://x/v1", "model": "m", "prompt": "Is it {class}? {context}"},
        }
    )
    assert by_endpoint.of_class("joy", both).endpoint.filled("so bad") == "Is it joy? so bad"  # type: ignore[union-attr]
    blind = by_endpoint.model_copy(update={"endpoint": by_endpoint.endpoint.model_copy(update={"prompt": "{context}"})})
    with pytest.raises(FairnessError, match=r"endpoint.prompt: expected a question with \{class\}"):
        blind.of_class("joy", both)


def test_a_published_classifier_is_audited_at_once(data: Path, tmp_path: Path) -> None:
    name = classifier(tmp_path / "model")
    done = command("audit", name, "--study", STUDY, "--name", "given")
    assert done.returncode == 0, done.stderr
    assert "positive: POSITIVE" in done.stdout and f"--model {name} --study {STUDY}" in done.stdout
    rows = Lake(Project("audit").workspace).read("classifier_fairness", {**KEY, "classifier": "given"}).to_pylist()
    assert {row["seeds"] for row in rows} == {1}
    page = Lake(Project("audit").workspace).document_path("implicit_bias_report").read_text()
    assert "No classifier was trained here" in page  # and the page does not say how one would have been
    assert "patience" not in page and "are trained on sets" not in page
    refused = command("audit", name, "--study", STUDY, "--name", "other", "--label", "valence=POSITIVE")
    assert refused.returncode == 1 and "expected positive=LABEL" in refused.stderr


def test_no_claim_about_a_classifier_that_guesses_but_about_one_that_tells_the_group_alone(
    small: Project, data: Path, tmp_path: Path
) -> None:
    """One that says the same of everything has no gap, and is not called fair for it; one that calls a group's texts
    positive whatever they say is right half the time, and as biased as can be."""
    change(
        data / "profiles" / "small.yaml", lambda p: p.update({STUDY: {"corpora": ["authored_sample"], "maximum": 300}})
    )
    run("--select", "authored_texts")
    lake = Lake(Project("small").workspace)
    texts = lake.read("authored_texts", {"corpus": "authored_sample"}).to_pylist()
    tests = [row for row in texts if row["split"] == "test"]
    for name, predict in (("same", lambda row: 1), ("group", lambda row: int(row["author_group"] == "a"))):
        lines = [f"{row['text_id']},{predict(row)}" for row in tests]
        file = tmp_path / f"{name}.csv"
        file.write_text("text_id,prediction\n" + "\n".join(lines) + "\n", encoding="utf-8")
        command("import", str(file), "--corpus", "authored_sample", "--name", name)
    printed = run().stdout
    assert "same: nothing to judge: one prediction for everything" in printed
    assert (
        "group labels 100.0% of the 'negative' texts by 'Northtown' as 'positive', but 0.0% of those by 'Southtown'"
        in " ".join(printed.split())
    )


@pytest.mark.parametrize(
    ("edit", "reason"),
    [
        (lambda section: section.update(corpora=["nope"]), "unknown corpus 'nope'"),
        (lambda section: section.update(balance_rate="4-1"), "expected positive:negative .* as '4:1', found '4-1'"),
        (
            lambda section: section.update(splits={"train": 0, "valid": 0, "test": 1}),
            "splits: expected shares for 'train'",
        ),
        (lambda section: section.update(splits={"train": -0.5}), "splits.train"),
        (
            lambda section: section.update(explain=["rnn"]),
            "implicit_bias.explain: 'rnn' is not a classifier trained here",
        ),
        (lambda section: section["classifiers"].pop("cnn"), "base: 'cnn' is no classifier"),
        (lambda section: section["classifiers"]["cnn-debiased_tc"]["settings"].update(magic=1), "settings.magic"),
        (lambda section: section["classifiers"].update(nope={}), "unknown classifier 'nope'"),
        (lambda section: section["classifiers"]["cnn"].update(seeds=0), "seeds"),
    ],
)
def test_a_wrong_profile_is_refused(small: Project, data: Path, edit: Any, reason: str) -> None:
    document = json.loads(json.dumps(SMALL))
    edit(document[STUDY])
    write_yaml(data / "profiles" / "small.yaml", document)
    with pytest.raises(FairnessError, match=reason):
        Project("small")


def test_one_group_alone_says_what_is_missing(small: Project, data: Path, tmp_path: Path) -> None:
    (tmp_path / "one.csv").write_text("text,label,group\na,1,m\nb,0,m\nc,1,m\n", encoding="utf-8")
    groups = {"a": {"name": "m", "values": ["m"]}, "b": {"name": "w", "values": ["w"]}}
    write_yaml(
        data / "corpora" / "one.yaml",
        {"task": "t", "attribute": "g", "files": [{"path": str(tmp_path / "one.csv")}], "groups": groups,
         "licence": "l", "citation": "c"},
    )  # fmt: skip
    change(data / "profiles" / "small.yaml", lambda p: p[STUDY].update(corpora=["one"]))
    done = command("run")
    assert (
        done.returncode == 1 and "positive of group b: 0, negative of group a: 1, negative of group b: 0" in done.stderr
    )


def test_another_balance_rate_trains_no_classifier_again(small: Project, data: Path) -> None:
    """A set's size depends on the widest rate alone."""
    run("--select", "text_classifiers", "--model", "cnn")
    before = content(small.workspace)
    change(data / "profiles" / "small.yaml", lambda p: p[STUDY].update(balance_rates=["4:1", "2:1"]))
    output = run("--select", "text_classifiers", "--model", "cnn").stdout
    made = [line for line in output.splitlines() if line.startswith("[")]
    assert len(made) == 2 and "4-1" in made[0] and made[1].endswith("unchanged")
    after = content(small.workspace)
    assert all(
        after[name] == content_before for name, content_before in before.items() if name.startswith("checkpoints")
    )


def test_published_tables_stand_beside(small: Project) -> None:
    from fairness_pipeline.corpora.classifiers.authored_corpus import PublishedAs
    from fairness_pipeline.models.classifiers.specification import ClassifierSpecification
    from fairness_pipeline.studies.implicit_bias import published

    dial = PublishedAs(dataset="DIAL", task="sentiment", attribute="race")
    cnn = ClassifierSpecification(architecture="cnn", published_as="CNN")
    assert published.rates(dial, cnn)["dp_rate"][:2] == (62.84, 30.32)
    assert published.metrics(dial, cnn)["dpd"] == 32.52 and published.size(dial)["size"] == "317151"
    tc = cnn.model_copy(update={"base": "cnn", "debiasing": "debiased_tc", "published_as": "RNN"})
    assert published.metrics(dial, tc) == {"fped": 6.67, "fned": 5.68, "dpd": 0.5, "accuracy": 63.68, "f1": 66.7}
    assert published.rates(None, cnn) == {}
