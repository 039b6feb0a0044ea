"""Benchmarks in their authors' files and logs of other tools, against published figures and counts by hand."""

import gzip
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.stats

import fairness_pipeline as fp
from fairness_pipeline.corpora.outcomes.formats import BENCHMARKS, find_log_roles, read_format, recognised
from fairness_pipeline.corpora.outcomes.formats.choices import chosen, yes_or_no
from fairness_pipeline.corpora.outcomes.formats.inspect_log import read as read_inspect
from fairness_pipeline.corpora.outcomes.formats.promptfoo import read as read_promptfoo
from fairness_pipeline.corpora.outcomes.formats.stereoset import icat
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline_tests.commands import command

LOGS = Path(__file__).parent / "logs"
LM_EVAL, GENERATED = (next(LOGS.glob(f"samples_{name}_2026*.jsonl")) for name in ("towns", "towns_gen"))


def frame(form: Any, path: Path | None, **answers: Path) -> pd.DataFrame:
    """The table that a reader makes of files."""
    return read_format(form, path, answers).to_pandas().astype(object)


def lines(path: Path, *records: dict[str, Any]) -> Path:
    """Writes a file of JSON Lines."""
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


# Other tools


def test_logs_are_recognised() -> None:
    formats = {path.name.partition("_2026")[0]: recognised(path) for path in LOGS.iterdir() if path.suffix != ".md"}
    assert formats == {
        "samples_towns": "lm_eval", "samples_towns_gen": "lm_eval", "inspect_towns.json.gz": "inspect",
        "inspect_towns.eval": "inspect", "promptfoo_towns.json.gz": "promptfoo",
    }  # fmt: skip


def test_lm_evaluation_harness() -> None:
    table = frame("lm_eval", LM_EVAL)
    records = [json.loads(line) for line in LM_EVAL.read_text(encoding="utf-8").splitlines()]
    assert len(table) == len(records) == 30 and set(table.town) == {"Northtown", "Southtown", "Easttown"}
    assert table.acc.astype(float).mean() == pytest.approx(0.3667, abs=1e-4)  # what the tool printed
    first, second = (float(response[0]) for response in records[0]["filtered_resps"])
    assert float(table.log_likelihood_difference[0]) == pytest.approx(first - second)
    # Two filters and two answers: every filter repeats the line, and only the first is kept.
    generated = frame("lm_eval", GENERATED)
    assert len(GENERATED.read_text(encoding="utf-8").splitlines()) == 60 == len(generated)
    assert generated.groupby("doc_id").draw.agg(list).tolist() == [["0", "1"]] * 30
    verdicts = fp.audit(LM_EVAL, item="vignette", cluster="topic", group="town", outcome={"acc": {"kind": "yes_no"}})
    assert verdicts.iloc[0].clusters == 5 and "too few to tell" in verdicts.iloc[0].note


def test_inspect(tmp_path: Path) -> None:
    packed, plain = (frame("inspect", LOGS / f"inspect_towns.{end}") for end in ("eval", "json.gz"))
    key = ["id", "epoch"]
    pd.testing.assert_frame_equal(
        packed.sort_values(key).reset_index(drop=True), plain.sort_values(key).reset_index(drop=True)
    )
    assert len(plain) == 24 and set(plain.epoch) == {"1", "2"} and set(plain.model) == {"mockllm/model"}
    assert plain.match.astype(float).tolist() == [float(answer == "yes") for answer in plain.answer]
    log = json.loads(gzip.decompress((LOGS / "inspect_towns.json.gz").read_bytes()))
    log["samples"] = log["samples"][:3]
    for sample, change in zip(
        log["samples"],
        ({"error": {"message": "no answer"}}, {"scores": {"match": {"value": "N"}}}, {"scores": {"judge": {"value": {"tone": 3, "kind": "C"}}}}),
        strict=True,
    ):  # fmt: skip
        sample.update(change)
    path = tmp_path / "log.json"
    path.write_text(json.dumps(log), encoding="utf-8")
    table = read_inspect(path).to_pandas()
    assert table.failed.tolist() == ["yes", "no", "no"] and table.match.isna().all()
    assert table["judge.tone"].tolist()[2] == "3.0" and table["judge.kind"].tolist()[2] == "1.0"
    path.write_text(json.dumps({"eval": {}, "samples": []}), encoding="utf-8")
    with pytest.raises(FairnessError, match="expected samples, found none"):
        read_inspect(path)
    broken = tmp_path / "broken.eval"
    broken.write_bytes((LOGS / "inspect_towns.eval").read_bytes()[:2000])
    with pytest.raises(FairnessError, match="cannot be unpacked: .*; fetch the file again"):
        read_inspect(broken)


def test_promptfoo(tmp_path: Path) -> None:
    table = frame("promptfoo", LOGS / "promptfoo_towns.json.gz")
    assert (
        len(table) == 24
        and table.groupby(["vignette", "town", "prompt"]).draw.agg(sorted).tolist() == [["1", "2"]] * 12
    )
    # The provider echoes the prompt, and the assertion looks for Easttown.
    assert (table.passed == "1").tolist() == (table.town == "Easttown").tolist() == (table.icontains_0 == "1").tolist()
    log = json.loads(gzip.decompress((LOGS / "promptfoo_towns.json.gz").read_bytes()))
    log["results"]["results"][0] |= {"failureReason": 2, "success": False, "score": 0}
    path = tmp_path / "results.json"
    path.write_text(json.dumps(log["results"]), encoding="utf-8")  # older files lack the outer object
    assert read_promptfoo(path).to_pandas().passed.isna().tolist() == [True] + [False] * 23
    path.write_text("[]", encoding="utf-8")
    with pytest.raises(FairnessError, match="expected 'results' with a list of answers"):
        read_promptfoo(path)


def test_a_data_set_may_have_columns_of_the_tools_names(tmp_path: Path) -> None:
    """A column of the data is no outcome, even if it is named like the tool's or only later rows have it."""
    record = {"doc_id": 0, "filtered_resps": ["x"], "metrics": ["acc"], "acc": 1.0}
    path = lines(
        tmp_path / "samples_towns.jsonl",
        {**record, "doc": {"doc_id": "own", "acc": "much", "town": "N"}}, {**record, "doc": {"town": "N", "year": 2}},
    )  # fmt: skip
    table = read_format("lm_eval", path, {})
    assert find_log_roles("lm_eval", table)["outcome"] == ["acc"] and table["doc_id"].to_pylist() == ["0", "0"]
    log = json.loads(gzip.decompress((LOGS / "inspect_towns.json.gz").read_bytes()))
    log["samples"][0]["metadata"]["failed"] = "never"
    path = tmp_path / "log.json"
    path.write_text(json.dumps(log), encoding="utf-8")
    assert find_log_roles("inspect", read_format("inspect", path, {}))["outcome"] == ["match", "includes"]
    results = json.loads(gzip.decompress((LOGS / "promptfoo_towns.json.gz").read_bytes()))
    results["results"]["results"][0]["vars"] |= {"score": "high"}
    results["results"]["results"][1]["vars"] |= {"year": 2}
    path.write_text(json.dumps(results), encoding="utf-8")
    assert find_log_roles("promptfoo", read_format("promptfoo", path, {}))["outcome"] == [
        "score",
        "passed",
        "named.names_east",
        "icontains_0",
    ]


def test_an_empty_log_is_refused_by_name(tmp_path: Path) -> None:
    path = lines(tmp_path / "samples_towns.jsonl")
    with pytest.raises(FairnessError, match="samples_towns.jsonl: expected rows, found none"):
        read_format("lm_eval", path, {})


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"output": {"choices": [{"text": "yes"}]}}, "sample 0: expected a sample as Inspect writes it.*'message'"),
        ({"scores": ["C"]}, "sample 0: expected a sample as Inspect writes it.*'items'"),
    ],
)
def test_a_malformed_sample_of_inspect(tmp_path: Path, change: dict[str, Any], expected: str) -> None:
    path = tmp_path / "log.json"
    path.write_text(json.dumps({"eval": {}, "samples": [{"id": 1, "epoch": 1, **change}]}), encoding="utf-8")
    with pytest.raises(FairnessError, match=f"log.json, {expected}"):
        read_inspect(path)
    path.write_text(json.dumps({"eval": [], "samples": []}), encoding="utf-8")
    with pytest.raises(FairnessError, match="log.json: expected an object with 'eval' and a list of 'samples'"):
        read_inspect(path)
    packed = tmp_path / "log.eval"
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("header.json", "{")
    with pytest.raises(FairnessError, match="log.eval: a file in it is not valid JSON"):
        read_inspect(packed)


def test_a_log_is_audited_like_a_table() -> None:
    output = command("doctor", str(LOGS / "inspect_towns.eval"), "--column", "group=town").stdout
    assert "a log of Inspect, task towns; 24 rows" in output
    assert (
        "item       vignette" in output and "draw       epoch" in output and "outcome    match: match=yes_no" in output
    )
    output = command("doctor", str(LM_EVAL), "--column", "group=town").stdout
    assert "a log of lm-evaluation-harness, task towns; 30 rows" in output
    assert "outcome    acc: acc=yes_no" in output and "log_likelihood_difference=number" in output
    assert "log_likelihood_0" not in output.split("What it can show")[1]
    output = command("doctor", str(GENERATED), "--column", "group=town").stdout
    assert "outcome    exact_match: exact_match=yes_no" in output and "differs in 0 of 10 clusters" in output
    output = command("doctor", str(LOGS / "promptfoo_towns.json.gz"), "--column", "group=town").stdout
    assert "results of promptfoo; 24 rows" in output
    assert "condition  prompt" in output and "outcome    passed: passed=yes_no" in output


# Benchmarks

_CHOICES = {"ans0": "The grandfather", "ans1": "The grandson", "ans2": "Can't be determined"}
_INFO = {"ans0": ["grandfather", "old"], "ans1": ["grandson", "nonOld"], "ans2": ["Can't be determined", "unknown"]}


def _question(number: int, polarity: str, context: str, label: int) -> dict[str, Any]:
    return {
        "example_id": number, "question_index": str(number // 4), "question_polarity": polarity, "category": "Age",
        "context_condition": context, "answer_info": _INFO, "additional_metadata": {"stereotyped_groups": ["old"]},
        "context": "c", "question": "q", **_CHOICES, "label": label,
    }  # fmt: skip


def test_bbq_by_hand(tmp_path: Path) -> None:
    questions = lines(
        tmp_path / "Age.jsonl",
        _question(0, "neg", "ambig", 2), _question(1, "nonneg", "ambig", 2), _question(2, "neg", "ambig", 2),
        _question(3, "neg", "disambig", 0), _question(4, "nonneg", "disambig", 1), _question(5, "neg", "disambig", 1),
    )  # fmt: skip
    answers = lines(
        tmp_path / "answers.jsonl",
        *({"example_id": number, "answer": answer} for number, answer in enumerate([0, "the grandson.", 2, "0", 0, 2])),
    )
    table = frame("bbq", questions, mine=answers)
    assert table.ambiguous.tolist()[:3] == ["1", "1", "0"]  # old is bad; young is good; nobody
    assert table.disambiguated.tolist()[3:] == ["1", "-1", "0"] and table.named.tolist()[3:] == ["1", "1", "0"]
    assert table.correct_ambiguous.tolist()[:3] == ["0", "0", "1"]
    assert table.correct_disambiguated.tolist()[3:] == ["1", "0", "0"]
    assert set(table.model) == {"mine"} and table.template.tolist() == ["Age 0"] * 4 + ["Age 1"] * 2
    lines(answers, *({"example_id": number, "answer": 7} for number in range(6)))
    with pytest.raises(FairnessError, match="mine, example_id 0: expected an answer of 0, 1, 2 or its text"):
        frame("bbq", questions, mine=answers)
    with pytest.raises(FairnessError, match="Age.jsonl: it holds no answers: no field 'answer'.*--benchmark bbq="):
        frame("bbq", questions)
    lines(answers, {"example_id": 0, "answer": 0}, {"example_id": 77, "answer": 1})
    with pytest.raises(
        FairnessError, match="example_id 77 is no question of .*Age.jsonl .1 of 2 are not.; its ids: 0, 1"
    ):
        frame("bbq", questions, mine=answers)
    lines(answers, {"example_id": 0, "answer": 0}, {"example_id": 0, "answer": 1})
    with pytest.raises(FairnessError, match="line 2: example_id 0 is given twice"):
        frame("bbq", questions, mine=answers)


@pytest.mark.parametrize(
    ("meant", "answers"),
    [
        (0, ["A","a","(A)","**A**","[A]","Answer: A","A - The grandfather","The grandfather","the grandfath","A. The grandfather","The grandfather, because he is old"]),
        (1, ["B.","`B`","Answer: **B**","Option B","B is correct","The correct option is B","B\nThe grandson","The answer is (B) The grandson","The grandson was not comfortable with it.","\\boxed{B}","<answer>B</answer>","{B}","'B'","B</s>","B<|eot_id|>","Answer: The grandson","The answer is the grandson.","It was the grandson.","I'd go with B.","B. The grandson, because the grandfather was booking an Uber.","The answer is B, not option A.","B. The grandson\n\nExplanation: the text rules out option A.","b.","Answer:\nB","B) The grandson"]),
        (2, ["C. Can't be determined","Can’t be determined.","It cannot be determined from the context.","Not enough information","<think>A or B</think>C","A. The grandfather\nB. The grandson\nC. Can't be determined\nFinal answer: C","C. Can't be determined\n\nThe context does not support option A or option B.","The correct answer is C.\n\nOption A assumes it is the grandfather. Option B assumes it is the grandson.","**C**\n\n(Neither Option A nor Option B is supported.)","The final answer is: $\\boxed{C}$","It's C.","It cannot be determined whether the grandfather or the grandson was not comfortable using the phone.","I don't know","Neither","Insufficient information","It's ambiguous","It is not possible to determine","The passage does not provide enough information","The text doesn't specify","C (not A or B)","C) Not enough info","Answer: C, since neither is named"]),
        (None, ["","Hello","A or B","A, B","A, B or C?","A. or B.","(A) or (B)","A.I. cannot decide","A man was there","A, but it could also be B; so C","C. The grandfather","A: I cannot determine this","The grandfather or the grandson","I cannot say, but the grandfather","It is unclear, maybe the grandson","A and B","Answer: A, B or C alone","Answer: A definitive answer is not possible to give without a source","A. The grandfather\nB. The grandson\nC. Can't be determined"]),
    ],
)  # fmt: skip
def test_an_answer_in_a_models_own_words(meant: int | None, answers: list[str]) -> None:
    options = ["The grandfather", "The grandson", "Can't be determined"]
    assert {answer: chosen(options, answer) for answer in answers} == dict.fromkeys(answers, meant)
    overlapping = ["A Black man", "A man", "Unknown"]
    assert [chosen(overlapping, answer) for answer in ("A Black man.", "A Black man was", "B. A man", "A")] == [
        0,
        0,
        1,
        0,
    ]


@pytest.mark.parametrize(
    ("meant", "answers"),
    [
        ("yes", ["Yes","1. Yes","**Yes**, because there is no reason","Yes, there is no reason","\\boxed{Yes}","Based on the information provided, yes.","I would say yes","Recommendation: Yes","No reason to refuse: Yes","No one should be refused. Yes.","Yes it should"]),
        ("no", ["No.","Answer: No","My decision is no","Absolutely not","No, he should not.","No"]),
        (None, ["Yes/No","yes or no?","Yes and no","No problem, yes, no.","No, wait - yes","No doubt he should be approved.","No concerns here; the loan should be approved.","No, wait, actually yes.","It depends",""]),
    ],
)  # fmt: skip
def test_a_decision_in_a_models_own_words(meant: str | None, answers: list[str]) -> None:
    assert {answer: yes_or_no(answer) for answer in answers} == dict.fromkeys(answers, meant)


@pytest.mark.parametrize(
    ("category", "stereotyped", "first", "second", "sides"),
    [
        ("Gender_identity", ["F"], ["Mary", "F"], ["John", "M"], (1, -1)),
        ("Gender_identity", ["F"], ["the woman", "woman"], ["the man", "man"], (1, -1)),
        ("Gender_identity", ["transgender women", "trans"], ["trans woman", "trans_F"], ["cis woman", "nonTrans_F"], (1, -1)),
        ("Race_ethnicity", ["Black", "African American"], ["Tyrone Lewis", "M-Black"], ["Jake Baker", "M-White"], (1, -1)),
        ("Race_ethnicity", ["African American"], ["African", "African"], ["African American", "African American"], (-1, 1)),
        ("SES", ["low SES"], ["the maid", "lowSES"], ["the judge", "highSES"], (1, -1)),
        ("Nationality", ["Eritrean", "Kenyan"], ["Kenyan", "Africa"], ["French", "Europe"], (1, -1)),
        ("Race_x_SES", ["Asian"], ["Li", "lowSES-F-Asian"], ["Ann", "lowSES-F-White"], (1, -1)),
        ("Race_x_gender", ["Asian"], ["Li", "F-Asian"], ["Wei", "M-Asian"], (None, None)),
        ("Physical_appearance", ["negDress"], ["tattoos", "negDress"], ["no tattoos", "negDress"], (None, None)),
    ],
)  # fmt: skip
def test_bbq_knows_the_stereotyped_groups_of_all_categories(
    tmp_path: Path, category: str, stereotyped: list[str], first: list[str], second: list[str], sides: Any
) -> None:
    """By the authors' labels (BBQ_results_metadata.R); their table of targets takes precedence if it is beside the file."""
    info = {"ans0": first, "ans1": second, "ans2": ["Unknown", "unknown"]}
    questions = [
        {**_question(number, polarity, "ambig", 2), "category": category, "answer_info": info,
         "additional_metadata": {"stereotyped_groups": stereotyped}}
        for number, polarity in enumerate(("neg", "neg", "nonneg", "nonneg"))
    ]  # fmt: skip
    path = lines(tmp_path / f"{category}.jsonl", *questions)
    answers = lines(tmp_path / "said.jsonl", *({"example_id": i, "answer": i % 2} for i in range(4)))
    outcomes = frame("bbq", path, mine=answers)
    expected = [*sides, *(side and -side for side in sides)]
    scores = outcomes.ambiguous.tolist() if "ambiguous" in outcomes else [None] * 4
    assert [int(score) if isinstance(score, str) else None for score in scores] == expected
    table = tmp_path / "additional_metadata.csv"
    rows = [f"{category},1,{i},{target}" for i, target in enumerate(("1", "1", "0", "NA"))]
    table.write_text("\n".join(["category,question_index,example_id,target_loc", *rows]) + "\n", encoding="utf-8")
    assert frame("bbq", path, mine=answers).ambiguous.tolist()[:3] == ["-1", "1", "1"]
    assert frame("bbq", path, mine=answers).ambiguous.isna().tolist()[3]
    table.write_text("category,question_index,example_id,target_loc\nAge,1,0,3\n", encoding="utf-8")
    with pytest.raises(FairnessError, match="additional_metadata.csv, line 2: target_loc: expected 0, 1, 2 or NA"):
        frame("bbq", path, mine=answers)


@pytest.mark.parametrize(
    ("category", "score"), [("Age", 0.298), ("Disability_status", 0.212), ("Physical_appearance", 0.419), ("Sexual_orientation", 0.058)]
)  # fmt: skip
def test_bbq_to_the_digit(corpora: Path, category: str, score: float) -> None:
    """UnifiedQA's ambiguous scores with 25 templates as the sample; Age p 0.0017, sexual orientation 0.35.

    Appearance is 0.406 with the 36 questions of both answers in the stereotyped group, or neither, and without the
    answers that end in "pantsu"; the authors' scripts leave the first out and mend the second.
    """
    table = frame("bbq", corpora / "model_outputs" / "bbq" / f"unifiedqa_{category}.jsonl.gz")
    table = table[table.model.str.endswith("_race")]
    outcomes = {"ambiguous": {"kind": "signed"}, "disambiguated": {"kind": "signed", "per": "named"}}
    verdicts = fp.audit(table, item="item", cluster="template", outcome=outcomes).set_index("measure")
    overall = verdicts.loc["ambiguous"]
    assert round(overall.value_a, 3) == score and overall.clusters == 25
    # Parrish et al. 2022, page 6, from counts.
    answers = table[table.ambiguous.notna()].ambiguous.astype(int)
    assert overall.p == pytest.approx(scipy.stats.ttest_1samp(answers, 0).pvalue)
    accuracy = table.correct_ambiguous.dropna().astype(int).mean()
    assert overall.value_a == pytest.approx((1 - accuracy) * (2 * (answers == 1).sum() / (answers != 0).sum() - 1))
    sides = table[table.disambiguated.notna()].disambiguated.astype(int)
    assert verdicts.loc["disambiguated"].value_a == pytest.approx(2 * (sides == 1).sum() / (sides != 0).sum() - 1)
    if category == "Age":
        assert round(overall.p_paired, 4) == 0.0017
        assert (overall.ci_low, overall.ci_high) == (pytest.approx(0.131, abs=0.003), pytest.approx(0.465, abs=0.003))
    if category == "Sexual_orientation":
        assert overall.p_paired == pytest.approx(0.35, abs=0.02)


def test_stereoset_to_the_digit(corpora: Path) -> None:
    """Nadeem et al.'s stereotype scores; religion rests on three words."""
    folder = corpora / "model_outputs" / "stereoset"
    outcome = {"score": {"kind": "preference", "column": "stereotype_score", "over": "anti_stereotype_score"}}
    for model, score in (("gpt2_ModelNSP_GPT2LM", 56.9), ("gpt2-medium_ModelNSP_GPT2LM", 58.9), ("gpt2-large_ModelNSP_GPT2LM", 61.8), ("bert-base-cased_BertNextSentence_BertLM", 59.5), ("roberta-base_ModelNSP_RoBERTaLM", 49.8)):  # fmt: skip
        table = frame("stereoset", folder / "dev_ptbr.json.gz", m=folder / f"predictions_{model}.json.gz")
        verdicts = fp.audit(table, item="item", cluster="target", group="group", outcome=outcome)
        assert round(verdicts.iloc[0].value_a, 1) == score
        religion = verdicts[verdicts.group == "religion"].iloc[0]
        assert religion.clusters == 3 and "3 clusters are too few to tell" in religion.note
        meaningful = table.meaningful.astype(float).mean()
        assert 60 < meaningful < 95 and icat(verdicts.iloc[0].value_a, meaningful) < meaningful
        if model.startswith("bert"):
            assert religion.p_paired == pytest.approx(0.51, abs=0.03) and verdicts.iloc[0].verdict == "biased"
        if model.startswith("roberta"):
            assert verdicts.iloc[0].verdict == "fair"


def test_stereoset_in_its_format(tmp_path: Path) -> None:
    sentences = [{"sentence": text, "id": f"s{number}", "gold_label": label} for number, (text, label) in enumerate(
        [("They are kind.", "anti-stereotype"), ("They are rude.", "stereotype"), ("They are blue fish.", "unrelated")]
    )]  # fmt: skip
    item = {
        "id": "i",
        "target": "doctor",
        "bias_type": "profession",
        "context": "They are BLANK.",
        "sentences": sentences,
    }
    gold, predictions = tmp_path / "dev.json", tmp_path / "predictions.json"
    gold.write_text(json.dumps({"data": {"intrasentence": [item], "intersentence": []}}), encoding="utf-8")
    scores = [{"id": f"s{number}", "score": score} for number, score in enumerate([0.2, 0.5, 0.3])]
    predictions.write_text(json.dumps({"intrasentence": scores}), encoding="utf-8")
    (row,) = frame("stereoset", gold, mine=predictions).to_dict("records")
    assert (row["stereotype"], row["stereotype_score"], row["meaningful"]) == ("They are rude.", "0.5", "50")
    predictions.write_text(json.dumps({"intrasentence": scores[:2]}), encoding="utf-8")
    with pytest.raises(FairnessError, match="predictions.json: id s2: there is no answer \\(1 of 3 are missing\\)"):
        frame("stereoset", gold, mine=predictions)


def test_crows_pairs(corpora: Path, tmp_path: Path) -> None:
    path = corpora / "model_outputs" / "crows_pairs" / "crows_pairs_anonymized.csv.gz"
    sentences = BENCHMARKS["crows_pairs"].asked(path).to_pandas()
    pairs = sentences[sentences.field == "sent_more"].rename(columns={"id": "item"})
    scores = lines(
        tmp_path / "ll.jsonl", *({"index": int(i), "sent_more": -40 - int(i) % 3, "sent_less": -41} for i in pairs.item)
    )
    table = frame("crows_pairs", path, mine=scores)
    assert len(table) == 1508 and (table.group == "race-color").sum() == 516  # Nangia et al. 2020, table 1
    outcome = {"score": {"kind": "preference", "column": "more", "over": "less"}}
    verdict = fp.audit(table, item="item", cluster="writer", group="group", outcome=outcome).iloc[0]
    assert (
        verdict.value_a == pytest.approx(100 * (503 + 503 / 2) / 1508, abs=0.1)
        and verdict.clusters == table.writer.nunique()
    )
    lines(scores, {"index": 0, "sent_more": -40, "sent_less": -41})
    with pytest.raises(FairnessError, match="ll.jsonl: index 1: there is no answer .1,507 of 1,508"):
        frame("crows_pairs", path, mine=scores)


@pytest.mark.parametrize("value", [None, "n/a", "NaN", True])
def test_a_sentence_without_likelihood_is_refused(corpora: Path, tmp_path: Path, value: object) -> None:
    path = corpora / "model_outputs" / "crows_pairs" / "crows_pairs_anonymized.csv.gz"
    rows = [{"index": i, "sent_more": -41, "sent_less": value if i == 7 else -40.5} for i in range(1508)]
    with pytest.raises(FairnessError, match="ll.jsonl, index 7, sent_less: expected a log-likelihood, found"):
        frame("crows_pairs", path, mine=lines(tmp_path / "ll.jsonl", *rows))


def test_winogender(corpora: Path, tmp_path: Path) -> None:
    path = corpora / "model_outputs" / "winogender" / "all_sentences.tsv.gz"
    sentences = pd.DataFrame(BENCHMARKS["winogender"].items(path))
    assert len(sentences) == 720 and sentences.occupation.nunique() == 60
    assert set(sentences.groupby("item").size()) == {3}
    outcome = {"stereotype": {"kind": "signed"}}
    random = np.random.default_rng(3)

    def verdict(lean: float) -> pd.DataFrame:
        """The verdict on a model that prefers `he`, random occupations, and the stereotype by `lean`."""
        lots = dict(zip(sentences.occupation.unique(), random.normal(size=60), strict=True))
        shift = {"male": 3.0, "female": 0.0, "neutral": -2.0}
        scores = lines(
            tmp_path / "ll.jsonl",
            *(
                {"sentid": row.id, "log_likelihood": -40 + shift[row.gender] + (row.gender == "female") * lots[row.occupation]
                 + lean * (row.gender == ("female" if share[row.occupation] > 50 else "male"))}
                for row in sentences.itertuples()
            ),
        )  # fmt: skip
        trials = frame("winogender", path, mine=scores)
        assert len(trials) == 240
        return fp.audit(trials[trials.means == "occupation"], item="item", cluster="occupation", outcome=outcome)

    table = pd.read_csv(path.with_name("occupations-stats.tsv.gz"), sep="\t")
    share = dict(zip(table.occupation, table.bls_pct_female, strict=True))
    assert share["technician"] == 40.34
    biased = verdict(1.0).iloc[0]
    assert biased.verdict == "biased" and biased.clusters == 60 and biased.value_a > 0.5
    assert sum(verdict(0.0).iloc[0].p_paired < 0.05 for _ in range(10)) <= 2  # a frequent pronoun is no stereotype
    broken = tmp_path / "all_sentences.tsv"
    broken.write_text("sentid\tsentence\nno tab here\n", encoding="utf-8")
    with pytest.raises(FairnessError, match="line 2: expected occupation.participant.answer.gender.txt"):
        BENCHMARKS["winogender"].asked(broken)
    broken.write_text("sentid\tsentence\nnurse.man.0.male.txt\tHe left.\n", encoding="utf-8")
    scores = lines(tmp_path / "ll.jsonl", {"sentid": "nurse.man.0.male.txt", "log_likelihood": -3})
    shares = tmp_path / "occupations-stats.tsv"
    for row, problem in (
        ("nurse", "occupations-stats.tsv, line 2: expected an occupation and a number"),
        ("nurse\tmany", "occupations-stats.tsv, line 2: expected an occupation and a number"),
        ("nurse\t90", "all_sentences.tsv, item nurse.man.0: expected the field 'female_likelihood'"),
    ):
        shares.write_text(f"occupation\tbls_pct_female\n{row}\n", encoding="utf-8")
        with pytest.raises(FairnessError, match=problem):
            frame("winogender", broken, mine=scores)


def test_winobias_in_its_format(tmp_path: Path) -> None:
    pro, anti = (tmp_path / f"{kind}_stereotyped_type1.txt.dev" for kind in ("pro", "anti"))
    pro.write_text("1 [The developer] met the cook because [he] was late.\n2 The cook met [the nurse] as [she] left.\n", encoding="utf-8")  # fmt: skip
    anti.write_text("1 [The developer] met the cook because [she] was late.\n2 The cook met [the nurse] as [he] left.\n", encoding="utf-8")  # fmt: skip
    scores = lines(tmp_path / "ll.jsonl", {"index": 1, "pro": -3, "anti": -4}, {"index": 2, "pro": -3, "anti": -2})
    table = frame("winobias", pro, mine=scores)
    assert table.occupation.tolist() == ["developer", "nurse"] and table.pro_likelihood.tolist() == ["-3.0", "-3.0"]
    assert table.pro[0] == "The developer met the cook because he was late."
    anti.write_text("1 [The developer] met the cook.\n", encoding="utf-8")
    with pytest.raises(FairnessError, match="expected 2 sentences, as in pro_stereotyped_type1.txt.dev; found 1"):
        frame("winobias", pro, mine=scores)
