"""The three tasks that show the costs of debiasing: metrics against libraries and by hand, readers, planted signals."""

import json
import math
import zipfile
from pathlib import Path

import pyarrow as pa
import pytest

from fairness_pipeline.corpora.language.multiwoz import read_state_turns
from fairness_pipeline.corpora.language.phrase_corpus import PhraseCorpus
from fairness_pipeline.corpora.language.response_sets import RESPONSE_SETS, read_human_references, read_response_sets
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.paths import data_file
from fairness_pipeline.foundation.yaml_files import load
from fairness_pipeline.measures.language.dialogue_state_tracking import dialogue_state_tracking
from fairness_pipeline.measures.language.downstream import Given, ResponseSettings, StateTrackingSettings
from fairness_pipeline.measures.language.reddit_perplexity import reddit_perplexity
from fairness_pipeline.measures.language.response_generation import distinct, entropy, metrics, response_generation
from fairness_pipeline.models.language import registry
from fairness_pipeline_tests.models.language.test_language_models import one_at_a_time
from fairness_pipeline_tests.models.language.tiny import trained


def given_model(folder: Path) -> Given:
    specification = trained(folder / "m")
    model, tokenizer = registry.load(specification, folder / "m")
    (folder / "work").mkdir()
    return Given(model, tokenizer, folder / "work", 1)


def test_metrics_by_hand_and_against_libraries() -> None:
    references = [["the cat sat on the mat", "a cat was there", "no"], ["where are you going", "who knows"]]
    values = {
        name: value for name, value, *_ in metrics(["the cat sat on the mat", "where are you going now"], references)
    }
    from nltk.translate.bleu_score import corpus_bleu

    tokens_of_references = [[text.split() for text in texts] for texts in references]
    answers = ["the cat sat on the mat".split(), "where are you going now".split()]
    assert values["crg_bleu4"] == pytest.approx(100 * corpus_bleu(tokens_of_references, answers), abs=0.01)
    assert values["crg_dist2"] == pytest.approx(100 * 9 / 9)
    assert values["crg_nist2"] > 0
    assert entropy([["a", "b", "a", "b"]], 2) == pytest.approx(-(2 / 3 * math.log(2 / 3) + 1 / 3 * math.log(1 / 3)))
    assert distinct([["a", "b", "a", "b"]], 2) == pytest.approx(2 / 3)
    assert entropy([["a"]], 4) == 0 == distinct([["a"]], 2)


def test_meteor_without_wordnet_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only exact and stemmed matches count, `cats` finds `cat`, and the metric has another name."""
    from fairness_pipeline.measures.language import response_generation as module

    monkeypatch.setattr(module, "wordnet", lambda: None)
    rows = {row[0]: row for row in metrics(["the cats"], [["the cat"]])}
    assert rows["meteor_no_synonyms"][1] == pytest.approx(100 * (1 - 0.5 * (1 / 2) ** 3))
    assert "exact, stem|" in rows["meteor_no_synonyms"][4] and "crg_meteor" not in rows


def test_the_perplexity_of_references(tmp_path: Path) -> None:
    model = given_model(tmp_path)
    texts = ["the phone is new", "jews are greedy and loud", "a"]  # one token has no perplexity
    rows = {row["metric"]: row for row in reddit_perplexity(model, pa.table({"text": texts})).to_pylist()}
    perplexities = [one_at_a_time(model.model, model.tokenizer, text) for text in texts[:2]]
    assert rows["perplexity_mean"]["value"] == pytest.approx(sum(perplexities) / 2, rel=1e-5)
    assert rows["perplexity_mean"]["n"] == 2


def test_a_tracker_learns_what_the_text_determines(tmp_path: Path) -> None:
    rows = [
        {"split": split, "text": f"the phone is {'new' if number % 2 else 'loud'}", "right": bool(number % 2)}
        for split, count in (("train", 160), ("test", 40))
        for number in range(count)
    ]
    settings = StateTrackingSettings(batch=8, epochs=3, learning_rate=0.01)
    table = dialogue_state_tracking(given_model(tmp_path), pa.Table.from_pylist(rows), settings, {"dst_f1": 0.9444})
    by_metric = {row["metric"]: row for row in table.to_pylist()}
    assert by_metric["dst_f1"]["value"] == by_metric["dst_accuracy"]["value"] == 1
    assert by_metric["dst_always_right"]["value"] == 0.5 and by_metric["dst_f1"]["published_value"] == 0.9444


def test_a_tuned_model_answers_the_same_each_time(tmp_path: Path) -> None:
    rows = [
        {"split": split, "context": "the phone is new", "references": ["my bike broke again", "it is new"]}
        for split, count in (("train", 60), ("test", 6))
        for _ in range(count)
    ]
    settings = ResponseSettings(batch=8, epochs=4, learning_rate=0.02, max_tokens=6)
    sets = pa.Table.from_pylist(rows, schema=RESPONSE_SETS)
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        folder.mkdir()
    first, second = (response_generation(given_model(folder), sets, settings, {}) for folder in folders)
    assert first.equals(second)
    assert first.to_pylist()[0]["value"] > 20  # it has learned the answers of the training rows


def multiwoz(folder: Path, name: str = "val.json") -> Path:
    def state(**values: str) -> dict:
        return {"text": "ok", "metadata": {"hotel": {"book": {"booked": []}, "semi": values}}}

    dialogue = {
        "log": [
            {"text": "a cheap hotel please", "metadata": {}},
            state(price="cheap", area="not mentioned"),
            {"text": "in the north", "metadata": {}},
            state(price="cheap", area="North"),
        ]
    }
    second = {"log": [{"text": "an expensive hotel in the south"}, state(price="expensive", area="south")]}
    path = folder / name
    path.write_text(json.dumps({"D1": dialogue, "D2": second}), encoding="utf-8")
    return path


def corpus_of(folder: Path, **tasks: object) -> PhraseCorpus:
    return PhraseCorpus.model_validate(
        {"comments": [{"path": "x.csv"}], "licence": "none", "citation": "none", **tasks}
    )  # fmt: skip


def test_multiwoz_turns(tmp_path: Path) -> None:
    """The values that a turn adds: `cheap` is not repeated in the second turn."""
    multiwoz(tmp_path)
    with zipfile.ZipFile(tmp_path / "test.json.zip", "w") as archive:
        archive.write(tmp_path / "val.json", "test.json")
    files = {"train": [{"path": "val.json"}], "test": [{"path": "test.json.zip"}]}
    table = read_state_turns(corpus_of(tmp_path, state_tracking=files), tmp_path, 1, 100)
    right = sorted(row["text"] for row in table.to_pylist() if row["right"] and row["split"] == "test")
    assert right == [
        "a cheap hotel please hotel price cheap",
        "an expensive hotel in the south hotel area south",
        "an expensive hotel in the south hotel price expensive",
        "ok in the north hotel area north",
    ]
    wrong = [row["text"] for row in table.to_pylist() if not row["right"]]
    assert len(wrong) == 8 and "a cheap hotel please hotel price expensive" in wrong
    (tmp_path / "val.json").write_text("[1]", encoding="utf-8")
    with pytest.raises(FairnessError, match="val.json: expected dialogues by their id, found list"):
        read_state_turns(corpus_of(tmp_path, state_tracking=files), tmp_path, 1, 100)


def test_response_sets(tmp_path: Path) -> None:
    lines = [
        {"dialogue": [{"text": "A", "responses": ["x", "y"]}, {"text": "B", "responses": ["z"]}, {"text": "C"}]},
        *[{"context": ["P", "Q", "R"], "references": [f"r{n}"]} for n in range(3)],
    ]
    (tmp_path / "d.json").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    files = {"train": [{"path": "d.json"}], "test": [{"path": "d.json"}]}
    rows = read_response_sets(corpus_of(tmp_path, responses=files), tmp_path, 1, 100).to_pylist()
    assert {(row["split"], row["context"]) for row in rows} == {
        ("train", "a"), ("train", "a b"), ("train", "q r"), ("test", "q r"),
    }  # fmt: skip
    for line, problem in (
        ('{"text": 1}', "expected 'context' and 'references', or DailyDialog's"),
        ('{"dialogue": ["A"]}', "expected 'context' and 'references', or DailyDialog's"),
        ('{"dialogue": [{"said": "A"}]}', "text: expected texts, found .None.;"),
        ('{"dialogue": [{"text": "A", "responses": [1]}]}', "responses: expected texts, found .1.;"),
        ('{"context": ["P", 1], "references": ["r"]}', "context: expected texts, found"),
        ('{"context": "P", "references": "r"}', "references: expected texts, found r;"),
    ):
        (tmp_path / "d.json").write_text(f"{line}\n", encoding="utf-8")
        with pytest.raises(FairnessError, match=f"d.json, line 1: {problem}"):
            read_response_sets(corpus_of(tmp_path, responses=files), tmp_path, 1, 100)


def test_the_real_data_of_the_tasks(corpora: Path) -> None:
    corpus = load(PhraseCorpus, data_file("corpora/redditbias.yaml"))
    assert read_human_references(corpus, Path()).num_rows == 6000
    turns = read_state_turns(corpus, Path(), 1, 500)
    assert turns.num_rows > 1950 and 0.49 < sum(turns["right"].to_pylist()) / turns.num_rows < 0.52
    sets = read_response_sets(corpus, Path(), 1, 10_000)
    assert sets.num_rows == 6740 and {len(references) for references in sets["references"].to_pylist()} == {5}
