"""Files of labels in the forms of tools and published data sets: the columns taken for rater, item, label and traits."""

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fairness_pipeline.corpora.annotators.annotated_corpus import AnnotatedCorpus
from fairness_pipeline.corpora.annotators.annotations import read_annotated
from fairness_pipeline.corpora.annotators.label_columns import LabelColumns, find_columns
from fairness_pipeline.corpora.annotators.label_files import is_label_file, read_label_rows, read_raters
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.project.project import Project
from fairness_pipeline.workspace.lake import Lake
from fairness_pipeline_tests.commands import command

RATERS, ITEMS, LABELS_PER_ITEM = 30, 24, 5
RACES = ("White", "Black", "Latine", "Asian")


def drawn_labels() -> Iterator[tuple[int, int, int]]:
    """Yields the item, the rater and a number from 0 to 4 of each label; women (odd raters) rate higher."""
    random = np.random.default_rng(1)
    for item in range(ITEMS):
        for rater in random.choice(RATERS, LABELS_PER_ITEM, replace=False).tolist():
            yield item, rater, int(np.clip(random.integers(0, 4) + rater % 2, 0, 4))


def gender(rater: int) -> str:
    return ("Man", "Woman")[rater % 2]


def race(rater: int) -> str:
    return RACES[rater % 4]


def table(path: Path, rows: list[dict[str, Any]]) -> Path:
    with path.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def lines(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def dices(folder: Path) -> tuple[Path, Path | None, dict[str, list[str]]]:
    answers = ("No", "No", "Unsure", "Yes", "Yes")
    rows = [
        {
            "id": n, "rater_id": r, "rater_gender": gender(r), "rater_race": race(r), "rater_age": ("gen z", "gen x+")[r % 3 > 0],
            "item_id": i, "answer_time_ms": 900 + n, "context": f"LAMDA: {i}", "response": f"answer {i}",
            "degree_of_harm": "Benign", "safety_gold": "No", "Q4_misinformation": "No", "Q_overall": answers[v],
        }
        for n, (i, r, v) in enumerate(drawn_labels())
    ]  # fmt: skip
    return table(folder / "dices.csv", rows), None, {}


def d3code(folder: Path) -> tuple[Path, Path | None, dict[str, list[str]]]:
    ratings = [
        {"rater_id": f"r{r}", "item_id": i, "raw_rating": v - (v == 0) * (n % 5 == 0)}
        for n, (i, r, v) in enumerate(drawn_labels())
    ]
    raters = [
        {"rater_id": f"r{r}", "Age": "18-30", "Gender": gender(r), "Region": race(r), "SES": r % 9}
        for r in range(RATERS)
    ]
    return table(folder / "ratings.csv", ratings), table(folder / "raters.csv", raters), {}


def kumar(folder: Path) -> tuple[Path, Path | None, dict[str, list[str]]]:
    items: dict[int, list[dict[str, Any]]] = {}
    for i, r, v in drawn_labels():
        items.setdefault(i, []).append(
            {
                "worker_id": f"w{r}",
                "toxic_score": v,
                "gender": gender(r),
                "race": race(r),
                "age_range": "18 - 24",
                "is_profane": False,
            }
        )
    rows = [
        {"comment_id": f"c{i}", "comment": f"text {i}", "platform": "reddit", "ratings": ratings}
        for i, ratings in items.items()
    ]
    return lines(folder / "kumar.jsonl", rows), None, {}


def measuring_hate_speech(folder: Path) -> tuple[Path, Path | None, dict[str, list[str]]]:
    rows = [
        {
            "comment_id": 100 + i, "annotator_id": r, "platform": 2, "sentiment": float(v), "hatespeech": float(min(v, 2)),
            "text": f"text {i}", "annotator_gender": gender(r).lower(), "annotator_age": 20.0 + 3 * (r // 2),
            **{f"annotator_race_{name.lower()}": race(r) == name for name in RACES},
        }
        for i, r, v in drawn_labels()
    ]  # fmt: skip
    return table(folder / "mhs.csv", rows), None, {}


def prism(folder: Path) -> tuple[Path, Path | None, dict[str, list[str]]]:
    random = np.random.default_rng(2)
    rows = [
        {
            "utterance_id": f"ut{n}", "interaction_id": f"int{n // 2}", "conversation_id": f"c{r}", "user_id": f"user{r}", "turn": n,
            "model_name": f"model-{m}", "model_response": f"hello {n}", "score": int(random.integers(1, 101)), "if_chosen": n % 2 == 0,
        }
        for n, (r, m) in enumerate((r, m) for r in range(RATERS) for m in random.choice(8, 4).tolist())
    ]  # fmt: skip
    survey = [
        {"user_id": f"user{r}", "gender": gender(r), "ethnicity": {"self_described": "x", "simplified": race(r)}}
        for r in range(RATERS)
    ]
    return lines(folder / "utterances.jsonl", rows), lines(folder / "survey.jsonl", survey), {"item": ["model_name"]}


def multipico(folder: Path) -> tuple[Path, Path | None, dict[str, list[str]]]:
    items: dict[str, Any] = {}
    for i, r, v in drawn_labels():
        entry = items.setdefault(
            str(i), {"text": {"post": f"post {i}", "reply": f"reply {i}"}, "annotations": {}, "split": "dev"}
        )
        entry["annotations"][f"Ann{r}"] = str(int(v > 2))
    (folder / "MP_dev.json").write_text(json.dumps(items))
    meta = {
        str(r): {"Age": 20.0 + r, "Gender": gender(r), "Ethnicity simplified": "DATA_EXPIRED" if r == 0 else race(r)}
        for r in range(RATERS)
    }
    (folder / "meta.json").write_text(json.dumps(meta))
    return folder / "MP_dev.json", folder / "meta.json", {}


def popquorn(folder: Path) -> tuple[Path, Path | None, dict[str, list[str]]]:
    rows = [
        {
            "instance_id": i,
            "user_id": r,
            "text": f"text {i}",
            "offensiveness": v + 1.0,
            "gender": gender(r),
            "race": race(r),
        }
        for i, r, v in drawn_labels()
    ]
    return table(folder / "raw_data.csv", rows), None, {}


def label_studio(folder: Path) -> tuple[Path, Path | None, dict[str, list[str]]]:
    tasks: dict[int, dict[str, Any]] = {}
    for i, r, v in drawn_labels():
        task = tasks.setdefault(i, {"id": i, "data": {"text": f"text {i}"}, "annotations": []})
        result = {"from_name": "tone", "type": "choices", "value": {"choices": [("fine", "rude")[v > 2]]}}
        task["annotations"].append({"completed_by": {"id": r}, "result": [result]})
    (folder / "export.json").write_text(json.dumps(list(tasks.values())))
    people = [{"annotator": r, "gender": gender(r), "race": race(r)} for r in range(RATERS)]
    return folder / "export.json", table(folder / "people.csv", people), {}


def prodigy(folder: Path) -> tuple[Path, Path | None, dict[str, list[str]]]:
    rows = [
        {"_input_hash": i, "text": f"text {i}", "answer": ("reject", "accept")[v > 2], "_annotator_id": f"set-{r}"}
        for i, r, v in drawn_labels()
    ]
    people = [{"annotator_id": f"set-{r}", "gender": gender(r), "race": race(r)} for r in range(RATERS)]
    return lines(folder / "annotations.jsonl", rows), table(folder / "people.csv", people), {}


FORMS = {
    dices: ("Yes is positive, No negative", "Unsure", "rater_race"),
    d3code: ("a scale from 0 to 4; 2 or more is positive", "-1", "Region"),
    kumar: ("a scale from 0 to 4; 2 or more is positive", "", "race"),
    measuring_hate_speech: ("a scale from 0 to 2; 1 or more is positive", "", "annotator_race"),
    prism: ("a scale from 1 to 100; 51 or more is positive", "", "ethnicity.simplified"),
    multipico: ("1 is positive, 0 negative", "", "Ethnicity simplified"),
    popquorn: ("a scale from 1 to 5; 3 or more is positive", "", "race"),
    label_studio: ("rude is positive, fine negative", "", "race"),
    prodigy: ("accept is positive, reject negative", "", "race"),
}


def columns_of(
    path: Path, raters: Path | None, roles: dict[str, list[str]], positive: str | None = None
) -> LabelColumns:
    return find_columns(read_label_rows(path), read_raters(raters) if raters else None, roles, positive, path)


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
def test_columns_of_each_form_are_recognised(form: Any, tmp_path: Path) -> None:
    path, raters, roles = form(tmp_path)
    label_line, left_out, trait = FORMS[form]
    columns = columns_of(path, raters, roles)
    text = "\n".join(columns.lines)
    assert label_line in text and (left_out in text)
    groups = columns.document["categories"][trait]["groups"]
    assert {name.lower() for name in groups} == {name.lower() for name in RACES}
    assert any("gender" in name.lower() for name in columns.document["categories"])
    assert is_label_file(path) is (form in (kumar, multipico, label_studio, prodigy))
    columns.table.to_parquet(tmp_path / "labels.parquet", index=False)
    document = columns.document | {"annotations": [{"path": "labels.parquet", **columns.document["annotations"][0]}]}
    corpus = AnnotatedCorpus.model_validate(document)
    annotated = read_annotated(corpus, tmp_path)
    assert annotated.annotators.num_rows >= 28 * len(corpus.categories)  # all raters with another label than "unsure"
    if form is popquorn:
        assert annotated.annotations["label"].to_pylist() == [int(v >= 2) for _, _, v in drawn_labels()]
    if form is prism:
        assert "their mean counts" in text and not columns.table.duplicated(["item_id", "annotator_id"]).any()
    if form is measuring_hate_speech:
        assert columns.document["categories"]["annotator_age"]["groups"].keys() == {
            "under 30",
            "30 to 44",
            "45 and over",
        }


def test_unclear_columns_are_asked_for(tmp_path: Path) -> None:
    path, raters, _ = prism(tmp_path)
    with pytest.raises(
        FairnessError, match="no column was recognised as the item; several raters .* --column item=NAME, one of"
    ):
        columns_of(path, raters, {})
    path, _, _ = popquorn(tmp_path)
    with pytest.raises(FairnessError, match="--column label=nothing: .* has no such column"):
        columns_of(path, None, {"label": ["nothing"]})
    assert "4 or more is positive" in "\n".join(columns_of(path, None, {}, "4").lines)
    other_raters = table(tmp_path / "other.csv", [{"annotator": "x", "sex": "m"}, {"annotator": "y", "sex": "w"}])
    with pytest.raises(
        FairnessError, match="other.csv: none of its columns has the raters of .*; 'annotator' has values such as x, y"
    ):
        columns_of(path, other_raters, {})
    words = [{"item": i, "rater": r, "label": f"word {v} {i}"} for i, r, v in drawn_labels()]
    with pytest.raises(FairnessError, match="labels .*expected two, a scale of numbers, or up to 10 classes"):
        columns_of(table(tmp_path / "words.csv", words), None, {})


def test_columns_of_other_names_are_found_by_structure(tmp_path: Path) -> None:
    rows = [
        {
            "Ticket": f"T{i}",
            "Coder": f"c{r}",
            "Verdict": ("ok", "ok", "ok", "not ok", "Ok")[v],
            "Team": race(r),
            "Note": f"{i}{r}{v}",
        }
        for i, r, v in drawn_labels()
    ]
    columns = columns_of(table(tmp_path / "odd.csv", rows), None, {})
    text = "\n".join(columns.lines)
    assert "item       Ticket (24)" in text and "label      Verdict: not ok is positive, ok negative" in text
    assert columns.document["categories"].keys() == {"Team"} and set(columns.table["label"]) == {"ok", "not ok"}
    with pytest.raises(FairnessError, match=r"all labels are by one rater \(x\)"):
        columns_of(table(tmp_path / "one.csv", [{**row, "Coder": "x"} for row in rows]), None, {})
    with pytest.raises(FairnessError, match="no column was recognised as the label; it has two values or more"):
        columns_of(table(tmp_path / "same.csv", [{**row, "Verdict": "ok"} for row in rows]), None, {})


def plain(values: tuple[str, ...] = ("fine", "fine", "fine", "rude", "rude"), **further: Any) -> list[dict[str, Any]]:
    """Rows of a file with the plainest names, and more columns by a function of item and rater."""
    return [
        {"item": i, "rater": r, "label": values[v], **{name: value_of(i, r) for name, value_of in further.items()}}
        for i, r, v in drawn_labels()
    ]


def people(key: str, name_of: Any, count: int = RATERS) -> list[dict[str, Any]]:
    return [{key: name_of(r), "gender": gender(r), "race": race(r)} for r in range(count)]


def text_of(path: Path, raters: Path | None = None, positive: str | None = None, **roles: list[str]) -> str:
    return "\n".join(columns_of(path, raters, roles, positive).lines)


def test_a_file_of_raters_is_matched_by_what_it_holds(tmp_path: Path) -> None:
    """By the raters' names, or by another column that identifies them, whatever the columns are called."""
    labels = table(tmp_path / "labels.csv", plain(email=lambda i, r: f"r{r}@example.org"))
    ours = table(tmp_path / "ours.csv", people("Who", str, RATERS - 2))
    text = text_of(labels, ours)
    assert f"ours.csv, by Who: {RATERS - 2} of {RATERS} raters; not in it, so unknown: 2" in text
    assert "trait      race: " in text
    mail = table(tmp_path / "mail.csv", people("contact", lambda r: f"r{r}@example.org"))
    text = text_of(labels, mail)
    assert f"by contact: {RATERS} of {RATERS}" in text and "unknown" not in text
    assert columns_of(labels, mail, {"rater": ["contact"]}).table["annotator_id"].nunique() == RATERS
    loud = table(tmp_path / "loud.csv", people("contact", lambda r: f"R{r}@Example.org "))
    assert f"by contact: {RATERS} of {RATERS}" in text_of(labels, loud)
    twice = table(tmp_path / "twice.csv", [{**row, "Who": "1", "race": "x"} for row in people("Who", str)])
    with pytest.raises(FairnessError, match=r"twice.csv: expected a row for each rater, .* keep one row for each"):
        columns_of(labels, twice, {})


def test_kinds_of_labels_are_recognised(tmp_path: Path) -> None:
    """Two or three words, numbers around 0 or with commas, numbers that name classes, slips, words of doubt."""

    def labelled(*values: str) -> Path:
        return table(tmp_path / "labels.csv", plain(values))

    assert "label: 3 classes: " in text_of(labelled("negative", "neutral", "positive", "positive", "positive"))
    columns = columns_of(labelled("fine", "fine", "fine", "rude", "unclear"), None, {})
    assert columns.document["labels"]["ignored"] == ["unclear"] and columns.document["labels"]["positive"] == ["rude"]
    assert "a scale from -2 to 2; 1 or more is positive" in text_of(labelled("-2", "-1", "0", "1", "2"))
    assert columns_of(labelled("0,5", "1,5", "2", "3", "4"), None, {}).document["labels"]["at_least"] == 3
    numbers = labelled("0", "1", "2", "3", "3")
    assert "where numbers name classes: --label classes" in text_of(numbers)
    classes = columns_of(numbers, None, {}, "classes").document["labels"]
    assert classes["classes"] == {name: [name] for name in "0123"}
    rows = plain()
    rows[0]["label"] = "rudee"
    slip = text_of(table(tmp_path / "slips.csv", rows))
    assert "label: 3 classes" in slip and "a slip for 'rude'? 'rudee' (1) counts as a label of its own" in slip


def test_traits_that_are_left_out_are_named(tmp_path: Path) -> None:
    rows = plain(
        team=lambda i, r: "few" if r < 3 else ("red", "blue")[r % 2],
        shift=lambda i, r: "late" if i == 0 else "early",  # no trait of a rater
        city=lambda i, r: f"c{r // 2}",
        years=lambda i, r: (r % 2) * 6 + 3,
    )
    rows[0]["team"] = "red" if rows[0]["team"] == "blue" else "blue"
    path = table(tmp_path / "labels.csv", rows)
    columns = columns_of(path, None, {})
    text = "\n".join(columns.lines)
    assert columns.document["categories"].keys() == {"team", "years"}
    assert list(columns.document["categories"]["years"]["groups"]) == ["3", "9"]
    assert "of fewer than 5 raters, so unknown: few (3)" in text
    assert f"1 rater in two groups, so unknown: {rows[0]['rater']}" in text
    assert "no trait   city: 15 values, fewer than two of 5 raters or more" in text


def test_gold_repeated_labels_semicolons_and_wide_files(tmp_path: Path) -> None:
    rows = plain(gold=lambda i, r: ("fine", "rude")[i % 2])
    path = table(
        tmp_path / "labels.csv", [*rows, {**rows[0], "label": "rude" if rows[0]["label"] == "fine" else "fine"}]
    )
    columns = columns_of(path, None, {})
    assert "1 repeated labels (same item and rater), 1 time another: the first counts" in "\n".join(columns.lines)
    assert columns.document["annotations"][0]["columns"]["gold"] == "gold"
    assert columns.table.groupby("item_id")["gold"].nunique().eq(1).all()
    numbers = [{**row, "label": (1, 2, 4)[n % 3], "gold": ""} for n, row in enumerate(rows)]
    twice = table(tmp_path / "numbers.csv", [*numbers, *({**row, "label": 4} for row in numbers[:40])])
    numeric_columns = columns_of(twice, None, {})
    share = 100 * (numeric_columns.table["label"].astype(float) >= 3).mean()
    assert f"their mean counts, so that {share:.0f}% are positive" in "\n".join(numeric_columns.lines)
    assert numeric_columns.document["task"] == "label, 3 or more"
    semicolons = tmp_path / "semicolons.csv"
    semicolons.write_text(path.read_text().replace(",", ";"))
    assert columns_of(semicolons, None, {}).table.equals(columns.table)
    wide = [{"item": i, **{f"u{r}": ("fine", "rude")[(i + r) % 2] for r in range(4)}} for i in range(6)]
    with pytest.raises(FairnessError, match="Is it a column for each rater. Then write a row for each label"):
        columns_of(table(tmp_path / "wide.csv", wide), None, {})


@pytest.mark.verify
def test_named_columns_take_precedence(data: Path, tmp_path: Path) -> None:
    """Columns of unknown names, beside a column that another study would take."""
    rows = [{"Thing": i, "Who": r, "response": ("ok", "bad")[v > 2], "Team": race(r)} for i, r, v in drawn_labels()]
    path = table(tmp_path / "odd.csv", rows)
    refused = command("audit", str(path), "--name", "odd")
    assert refused.returncode == 1 and "--column rater=NAME" in refused.stderr
    done = command("audit", str(path), "--name", "odd", "--column", "rater=Who", "--column", "label=response")
    assert done.returncode == 0, done.stderr
    assert "rater      Who (30)" in done.stderr and "label      response: bad is positive" in done.stderr
    assert "Krippendorff's alpha" in done.stdout and "Which labels to use: " in done.stdout
    assert "odd: from a file of " in done.stdout


def test_audit_of_a_file_of_labels(data: Path, tmp_path: Path) -> None:
    """The form of DICES, whose column `response` another study would take; its name is refused again, and forgotten."""
    path, _, _ = dices(tmp_path)
    done = command("audit", str(path), "--name", "safety", "--column", "trait=rater_race", "--column", "rater=rater_id")
    assert done.returncode == 0, done.stderr
    assert "trait      rater_race" in done.stderr and "rater_gender" not in done.stderr
    lake = Lake(Project("audit").workspace)
    rows = lake.read("group_positive_rates", {"corpus": "safety"}).to_pylist()
    assert {row["contrast"] for row in rows} == {"largest gap", "pair"} and len(rows) == 7
    assert all(row["label"] == "Yes" for row in rows)
    page = (Project("audit").workspace / "reports" / "annotator_bias_report.html").read_text(encoding="utf-8")
    assert "the largest gap of 4 groups" in page and "says Yes" in page and "any group" in page
    assert "as printed" not in page  # the thesis' tables are for those who reproduce it
    assert "fairness-pipeline export labels --profile audit --corpus safety" in page
    again = command(
        "audit", str(path), "--name", "safety", "--column", "trait=rater_gender", "--column", "rater=rater_id"
    )
    assert again.returncode == 1 and "'safety' already names something" in again.stderr
    assert command("forget", "safety", "--profile", "audit").returncode == 0


def test_init_writes_a_profile_of_labels(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRNESS_DATA", str(data))
    done = command("init", "raters", "--study", "annotator_bias")
    assert done.returncode == 0, done.stderr
    assert "annotator_bias:" in (data / "profiles" / "raters.yaml").read_text()
    assert (data / "corpora" / "raters-labels.yaml").exists()
    done = command("init", "others", "--study", "sentiment_equity")
    assert done.returncode == 1 and "needs a model to start from (--model)" in done.stderr
