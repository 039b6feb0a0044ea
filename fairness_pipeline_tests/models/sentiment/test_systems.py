"""Sentiment systems: against their libraries, on their training data, and invalid score files."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from scipy.stats import pearsonr
from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer

from fairness_pipeline.corpora.sentiment.affect_tweets import read_affect_tweets
from fairness_pipeline.corpora.sentiment.equity_sentences import make_equity_sentences
from fairness_pipeline.foundation import paths
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.models.sentiment import registry
from fairness_pipeline.models.sentiment.encoders import Regressor
from fairness_pipeline.models.sentiment.score_files import read_scores, write_sentences
from fairness_pipeline.models.sentiment.scoring import score_sentences
from fairness_pipeline.models.sentiment.specification import AFFECTS, EncoderSettings, SystemSpecification
from fairness_pipeline_tests.conftest import Killed
from fairness_pipeline_tests.local_server import Handler, chat, serve
from fairness_pipeline_tests.models.tiny_models import tokenizer

TEXTS = pa.table({"text": ["She feels happy.", "He is sad!", "Ebony was furious", "what", "She feels happy."]})


def columns(table: pa.Table) -> dict[str, np.ndarray]:
    return {name: table[name].to_numpy() for name in table.column_names}


def system(architecture: str, **options: Any) -> SystemSpecification:
    return SystemSpecification(**{"architecture": architecture, "affects": AFFECTS, **options})


@pytest.fixture(scope="module")
def sentences() -> pa.Table:
    return make_equity_sentences()


def test_vader_is_the_librarys(sentences: pa.Table, tmp_path: Path) -> None:
    part = sentences.slice(3000, 200)
    scorer = registry.scorer(system("vader", affects=["valence"]), tmp_path, tmp_path, 0)
    scored = score_sentences(part, scorer)
    analyzer = SentimentIntensityAnalyzer()
    expected = [(analyzer.polarity_scores(text)["compound"] + 1) / 2 for text in part["sentence"].to_pylist()]
    assert scored["score"].to_pylist() == expected
    assert scored["sentence_id"].equals(part["sentence_id"])
    assert len(set(expected)) > 3


@pytest.mark.verify
@pytest.mark.parametrize("architecture", ["linear_svm", "cnn", "gru"])
def test_trained_systems_learn_and_a_second_training_is_the_same(architecture: str, tmp_path: Path) -> None:
    tweets = read_affect_tweets([paths.data_file("affect/sample.tsv")])
    rows = tweets.to_pylist()
    train, test = (
        tweets.take([i for i in range(len(rows)) if (i % 10 == 0) == held_out]) for held_out in (False, True)
    )
    specification = system(architecture)
    scores = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        registry.prepare(specification, train, tmp_path / name, seed=3)
        scores.append(
            registry.scorer(specification, tmp_path / name, tmp_path, 0)(test.rename_columns({"tweet": "text"}))
        )
    assert set(scores[0].column_names) == set(AFFECTS)
    scores = [{affect: table[affect].to_numpy() for affect in AFFECTS} for table in scores]
    for affect in AFFECTS:
        np.testing.assert_array_equal(scores[0][affect], scores[1][affect])
        assert ((scores[0][affect] >= 0) & (scores[0][affect] <= 1)).all()
        of_affect = np.array([row["affect"] == affect for row in test.to_pylist()])
        assert pearsonr(scores[0][affect][of_affect], test["score"].to_numpy()[of_affect]).statistic > 0.75


@pytest.mark.parametrize("architecture", ["cnn", "gru"])
def test_padding_changes_no_score(architecture: str) -> None:
    torch.manual_seed(0)
    model = Regressor(architecture, EncoderSettings(embedding=6, hidden=5, filters=4), words=20, affects=3).eval()
    short, long = torch.tensor([[5, 6]]), torch.tensor([[7, 8, 9, 10, 11, 12]])
    batch = torch.zeros(2, 6, dtype=torch.int64)
    batch[0, :2], batch[1] = short[0], long[0]
    together = model.scores(batch, torch.tensor([2, 6]))
    torch.testing.assert_close(together[:1], model.scores(short, torch.tensor([2])))
    torch.testing.assert_close(together[1:], model.scores(long, torch.tensor([6])))


def classifier(folder: Path, **options: Any) -> str:
    from transformers import GPT2Config, GPT2ForSequenceClassification

    words = tokenizer()
    config = GPT2Config(
        vocab_size=len(words), n_positions=64, n_embd=8, n_layer=1, n_head=2, pad_token_id=words.pad_token_id, **options
    )
    torch.manual_seed(1)
    GPT2ForSequenceClassification(config).save_pretrained(folder)
    words.save_pretrained(folder)
    return str(folder)


@pytest.mark.parametrize("problem", ["single_label_classification", "multi_label_classification"])
def test_a_hugging_face_classifier_is_scored_by_its_labels(tmp_path: Path, problem: str) -> None:
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    name = classifier(tmp_path / "m", id2label={0: "Joy", 1: "other", 2: "anger"}, problem_type=problem, num_labels=3)
    specification = system(
        "huggingface", affects=["anger", "joy"], device="cpu",
        huggingface={"name": name, "labels": {"anger": "anger", "joy": "joy"}, "batch": 2},
    )  # fmt: skip
    scores = columns(registry.scorer(specification, tmp_path, tmp_path, 0)(TEXTS))
    encode, model = (
        AutoTokenizer.from_pretrained(name),
        AutoModelForSequenceClassification.from_pretrained(name).eval(),
    )
    for i, text in enumerate(TEXTS["text"].to_pylist()):
        logits = model(**encode([text], return_tensors="pt")).logits[0].double()
        expected = logits.sigmoid() if problem.startswith("multi") else logits.softmax(0)
        assert scores["joy"][i] == pytest.approx(expected[0].item(), abs=1e-6)
        assert scores["anger"][i] == pytest.approx(expected[2].item(), abs=1e-6)
    assert scores["joy"][0] == pytest.approx(scores["joy"][4])


def test_a_regressors_output_is_brought_into_range(tmp_path: Path) -> None:
    name = classifier(tmp_path / "m", num_labels=1)

    def scores(low: float, high: float) -> np.ndarray:
        specification = system(
            "huggingface", affects=["valence"], huggingface={"name": name, "output_range": (low, high)}
        )
        return registry.scorer(specification, tmp_path, tmp_path, 0)(TEXTS)["valence"].to_numpy()

    narrow_range, wide_range = scores(-5, 5), scores(-10, 10)
    assert len(set(narrow_range)) > 2
    np.testing.assert_allclose(narrow_range * 10 - 5, wide_range * 20 - 10, atol=1e-6)


def test_a_regressor_of_several_numbers_is_read_by_its_labels(tmp_path: Path) -> None:
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    labels = {0: "valence", 1: "arousal", 2: "joy"}
    name = classifier(tmp_path / "m", id2label=labels, problem_type="regression", num_labels=3)
    specification = system(
        "huggingface", affects=["joy", "valence"],
        huggingface={"name": name, "labels": {"joy": "joy", "valence": "Valence"}, "output_range": (-4, 4)},
    )  # fmt: skip
    scores = columns(registry.scorer(specification, tmp_path, tmp_path, 0)(TEXTS))
    encode, model = (
        AutoTokenizer.from_pretrained(name),
        AutoModelForSequenceClassification.from_pretrained(name).eval(),
    )
    for i, text in enumerate(TEXTS["text"].to_pylist()):
        outputs = model(**encode([text], return_tensors="pt")).logits[0].tolist()
        assert scores["valence"][i] == pytest.approx((outputs[0] + 4) / 8, abs=1e-6)
        assert scores["joy"][i] == pytest.approx((outputs[2] + 4) / 8, abs=1e-6)


def test_a_system_that_gives_no_number_is_refused(sentences: pa.Table) -> None:
    def broken(texts: pa.Table) -> pa.Table:
        return pa.table({"joy": np.where(np.arange(len(texts)) == 1, np.nan, 0.5)})

    with pytest.raises(FairnessError, match="joy: the system gave no number .* for 1 of 3 sentences, the first is '"):
        score_sentences(sentences.slice(0, 3), broken)


def test_a_classifier_whose_tokenizer_does_not_pad(tmp_path: Path) -> None:
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    name = classifier(tmp_path / "m", num_labels=1)
    for file, key in (("tokenizer_config.json", "pad_token"), ("config.json", "pad_token_id")):
        path = tmp_path / "m" / file
        path.write_text(json.dumps({**json.loads(path.read_text()), key: None}))
    specification = system("huggingface", affects=["valence"], huggingface={"name": name, "output_range": (-9, 9)})
    scores = registry.scorer(specification, tmp_path, tmp_path, 0)(TEXTS)["valence"].to_numpy()
    encode, model = (
        AutoTokenizer.from_pretrained(name),
        AutoModelForSequenceClassification.from_pretrained(name).eval(),
    )
    assert encode.pad_token is None
    for score, text in zip(scores, TEXTS["text"].to_pylist(), strict=True):
        alone = model(**encode([text], return_tensors="pt")).logits[0, 0].item()
        assert score == pytest.approx((alone + 9) / 18, abs=1e-6)


def test_an_untrained_head_is_refused(tmp_path: Path) -> None:
    from transformers import GPT2ForSequenceClassification

    name = classifier(tmp_path / "m", num_labels=1)
    GPT2ForSequenceClassification.from_pretrained(name).transformer.save_pretrained(name)
    specification = system("huggingface", affects=["joy"], huggingface={"name": name})
    with pytest.raises(
        FairnessError, match=r"lacks 1 of the weights of a GPT2ForSequenceClassification \(score.weight"
    ):
        registry.scorer(specification, tmp_path, tmp_path, 0)(TEXTS)


def test_missing_labels_are_refused_by_name(tmp_path: Path) -> None:
    name = classifier(tmp_path / "m", num_labels=2)
    wrong = system("huggingface", affects=["joy"], huggingface={"name": name, "labels": {"joy": "happy"}})
    with pytest.raises(FairnessError, match="joy: .* has no label 'happy'; its labels: label_0, label_1"):
        registry.scorer(wrong, tmp_path, tmp_path, 0)(TEXTS)
    unlabelled = system("huggingface", affects=["joy"], huggingface={"name": name})
    with pytest.raises(FairnessError, match="say which stands for which affect"):
        registry.scorer(unlabelled, tmp_path, tmp_path, 0)(TEXTS)
    regressor = classifier(tmp_path / "one", num_labels=1)
    ranged = {"name": name, "labels": {"joy": "LABEL_0"}, "output_range": (-1, 1)}
    with pytest.raises(FairnessError, match="output_range: .* is a classifier, whose probabilities lie in 0..1"):
        registry.scorer(system("huggingface", affects=["joy"], huggingface=ranged), tmp_path, tmp_path, 0)(TEXTS)
    narrow = system("huggingface", affects=["joy"], huggingface={"name": regressor, "output_range": (50, 60)})
    with pytest.raises(FairnessError, match="output_range: .* outside 50 to 60"):
        registry.scorer(narrow, tmp_path, tmp_path, 0)(TEXTS)
    missing = system("huggingface", affects=["joy"], huggingface={"name": str(tmp_path / "no")})
    with pytest.raises(FairnessError, match="there is no folder"):
        registry.scorer(missing, tmp_path, tmp_path, 0)(TEXTS)


def answering(answer: str, prompts: Counter) -> Handler:
    def talk(prompt: str) -> str:
        prompts[prompt] += 1
        return answer

    return chat(talk)


def test_an_endpoint_is_asked_once_for_each_sentence_and_affect(tmp_path: Path) -> None:
    prompts: Counter = Counter()
    with serve(answering("The score is 0.25.", prompts)) as address:
        specification = system(
            "endpoint", affects=["fear", "joy"], endpoint={"base_url": f"{address}/v1", "model": "m"}
        )
        for _ in range(2):  # answers are kept
            scores_of_affects = columns(registry.scorer(specification, tmp_path, tmp_path, 0)(TEXTS))
    assert {affect: set(scores.tolist()) for affect, scores in scores_of_affects.items()} == {
        "fear": {0.25},
        "joy": {0.25},
    }
    assert len(prompts) == sum(prompts.values()) == 2 * 4
    assert sum("fear" in prompt and "Ebony was furious" in prompt for prompt in prompts) == 1


def test_max_requests_bounds_a_system_and_is_checked_first(tmp_path: Path) -> None:
    prompts: Counter = Counter()
    with serve(answering("0.5", prompts)) as address:
        specification = system(
            "endpoint", affects=["fear", "joy"],
            endpoint={"base_url": f"{address}/v1", "model": "m", "max_requests": 7, "concurrency": 1},
        )  # fmt: skip
        scorer = registry.scorer(specification, tmp_path, tmp_path, 0)
        few = make_equity_sentences().slice(0, 4)
        with pytest.raises(FairnessError, match="8 requests would be made, 7 are allowed; nothing was sent"):
            score_sentences(few, scorer)
        assert not prompts
        with pytest.raises(FairnessError, match="7 requests are made, as many as allowed"):
            scorer(few.rename_columns({"sentence": "text"}))
        assert sum(prompts.values()) == 7
        scored = score_sentences(few, registry.scorer(specification, tmp_path, tmp_path, 0))  # one request is left
    assert scored["score"].to_pylist() == [0.5] * 8
    assert set(prompts.values()) == {1}


@pytest.mark.parametrize(
    "answer", ["very", "7", "50%", "-0.3", "0.2 or 0.3", "1.5", "0,8", "1/5", "1 out of 10", "0.5-0.7", "It is 0."]
)
def test_an_answer_without_a_score_is_shown(tmp_path: Path, answer: str) -> None:
    with serve(answering(answer, Counter())) as address:
        specification = system("endpoint", affects=["joy"], endpoint={"base_url": f"{address}/v1", "model": "m"})
        with pytest.raises(FairnessError, match="5 of 5 answers hold no number from 0 to 1, such as"):
            registry.scorer(specification, tmp_path, tmp_path, 0)(TEXTS)


def test_an_answer_without_a_score_is_asked_for_again(tmp_path: Path) -> None:
    prompts: Counter = Counter()
    specification: Any = None
    for answer, wrong in (("0.25", None), ("I cannot rate this", "furious"), ("0.75", None)):
        with serve(answering(answer, prompts)) as address:
            specification = system("endpoint", affects=["joy"], endpoint={"base_url": f"{address}/v1", "model": "m"})
            texts = TEXTS.slice(0, 2) if answer == "0.25" else TEXTS
            scorer = registry.scorer(specification, tmp_path, tmp_path, 0)
            if wrong:
                with pytest.raises(FairnessError, match=f"2 of 5 answers hold no number .*'{answer}' to .*{wrong}"):
                    scorer(texts)
            else:
                scores = scorer(texts)["joy"].to_pylist()
    assert scores == [0.25, 0.25, 0.75, 0.75, 0.25]
    assert sum(prompts.values()) == 2 + 2 + 2


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"architecture": "vader"}, "VADER scores valence only"),
        ({"architecture": "cnn", "svm": {}}, "'cnn' does not take 'svm'"),
        ({"architecture": "huggingface"}, "needs 'huggingface'"),
        ({"architecture": "huggingface", "huggingface": {"name": "m"}}, "has one output: expected one of 'affects'"),
        ({"architecture": "huggingface", "huggingface": {"name": "m", "labels": {"joy": "j"}}}, "a label for each of"),
        (
            {"architecture": "endpoint", "endpoint": {"base_url": "http://h", "model": "m", "prompt": "{context}"}},
            "affect",
        ),
        (
            {
                "architecture": "endpoint",
                "endpoint": {"base_url": "http://h", "model": "m", "system": "Rate {affect}."},
            },
            "is replaced in 'prompt' only",
        ),
        ({"architecture": "gru", "affects": []}, "affects"),
        ({"architecture": "gru", "affects": ["joy", "fear", "joy"]}, "'joy' is listed twice in 'affects'"),
    ],
)
def test_contradictions_are_refused_when_the_file_is_read(options: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        system(**options)


def filled_lines(sentences: pa.Table, path: Path, separator: str = ",") -> list[str]:
    write_sentences(sentences, path)
    return [line + ("0.5" if number else "") for number, line in enumerate(path.read_text().splitlines())]


@pytest.mark.parametrize("form", [".csv", ".tsv"])
def test_exported_sentences_come_back_as_scores(sentences: pa.Table, tmp_path: Path, form: str) -> None:
    path = tmp_path / f"s{form}"
    lines = filled_lines(sentences, path)
    path.write_text("\r\n".join(lines), encoding="utf-8")
    assert read_scores(path, sentences).num_rows == 17280
    path.write_text("\n".join(lines[:8641]), encoding="utf-8")  # the reworded sentences may be left out
    assert set(read_scores(path, sentences)["affect"].to_pylist()) == {"valence"}


def test_scores_by_sentence_and_affect(sentences: pa.Table, tmp_path: Path) -> None:
    path = tmp_path / "s.csv"
    texts = sentences["sentence"].to_pylist()[:8640]
    rows = [f"{affect},{text},{score}" for affect, score in (("Joy", 0.1), ("fear", 1)) for text in texts]
    path.write_text("affect,sentence,score\n" + "\n".join(reversed(rows)), encoding="utf-8")
    table = read_scores(path, sentences)
    assert Counter(zip(table["affect"].to_pylist(), table["score"].to_pylist(), strict=True)) == {
        ("joy", 0.1): 8640, ("fear", 1.0): 8640
    }  # fmt: skip


def test_affects_must_cover_the_same_sentences(sentences: pa.Table, tmp_path: Path) -> None:
    path = tmp_path / "s.csv"
    rows = [
        f"{affect},{number},0.5" for affect, last in (("joy", 17280), ("fear", 8640)) for number in range(1, last + 1)
    ]
    path.write_text("affect,sentence_id,score\n" + "\n".join(rows), encoding="utf-8")
    with pytest.raises(FairnessError, match="for every affect or for none; found joy 17,280, fear 8,640 scores"):
        read_scores(path, sentences)


@pytest.mark.parametrize(
    ("line", "instead", "reason"),
    [
        (5, None, "1 of the 8,640 published sentences have no score for valence, the first is 5: "),
        (9000, None, "1 of the 8,640 reworded sentences have no score"),
        (5, "5,x,high", "line 6: score: expected a number from 0 to 1, found 'high'"),
        (5, "5,x,", "line 6: score: expected a number from 0 to 1, found ''"),
        (5, "5,x,nan", "line 6: score: expected a number from 0 to 1, found 'nan'"),
        (5, "5,x,1.01", "line 6: score: expected a number from 0 to 1, found '1.01'"),
        (5, "5,x,-0.1", "line 6: score: expected a number from 0 to 1, found '-0.1'"),
        (5, "5,x,0_1", "line 6: score: expected a number from 0 to 1, found '0_1'"),
        (5, "99999,x,0.5", "line 6: unknown sentence_id '99999'"),
        (5, "4,x,0.5", "line 6: sentence_id '4' was scored before, in line 5"),
        (5, "5,Another sentence.,0.5", "line 6: sentence 5 is .* found 'Another sentence.'"),
        (5, "5,0.5", "line 6: expected 3 columns .sentence_id, sentence, score., found 2"),
        (0, "sentence_id;sentence;score", "line 1: .* separated by ';'"),
        (0, "sentence_id,sentence", "line 1: expected columns sentence_id .or sentence. and score"),
        (0, "\ufeffsentence_id,sentence,score", "line 1: begins with a byte order mark"),
    ],
)
def test_a_wrong_score_file_is_refused_with_line_and_reason(
    sentences: pa.Table, tmp_path: Path, line: int, instead: str | None, reason: str
) -> None:
    path = tmp_path / "s.csv"
    lines = filled_lines(sentences, path)
    lines[line : line + 1] = [instead] if instead is not None else []
    path.write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(FairnessError, match=f"s.csv.*{reason}"):
        read_scores(path, sentences)


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("s.csv", "", "found an empty file"),
        ("s.csv", "sentence_id,score\n", "found a header only"),
        ("s.csv", "sentence_id\tscore\n1\t0.5\n", "line 1: .*means commas"),
        ("s.tsv", "sentence_id,score\n1,0.5\n", "line 1: .*means tabs"),
        ("s.csv", "sentence_id,affect,score\n1,hope,0.5\n", "line 2: affect: expected one of .* found 'hope'"),
        ("s.csv", "sentence_id,score,score\n", "a column is listed twice"),
        ("s.txt", "sentence_id,score\n", "expected a file that ends in .csv or .tsv"),
    ],
)
def test_a_file_of_another_format_is_refused(
    sentences: pa.Table, tmp_path: Path, name: str, content: str, reason: str
) -> None:
    path = tmp_path / name
    path.write_text(content, encoding="utf-8")
    with pytest.raises(FairnessError, match=reason):
        read_scores(path, sentences)


def test_the_error_for_empty_answers_gives_valid_advice(tmp_path: Path) -> None:
    with serve(answering("", Counter())) as address:
        source = {"base_url": f"{address}/v1", "model": "m", "attempts": 1}
        specification = system("endpoint", affects=["joy"], endpoint=source)
        with pytest.raises(FairnessError, match=r"such as \[empty\] to .*change endpoint.prompt") as error:
            registry.scorer(specification, tmp_path, tmp_path, 0)(TEXTS)
    assert "keep_empty" not in str(error.value)


@pytest.mark.parametrize("architecture", ["cnn", "gru"])
def test_a_killed_training_resumes_to_the_same_weights(architecture: str, tmp_path: Path) -> None:
    """The shared training loop, which saves checkpoints, trains both networks."""
    tweets = read_affect_tweets([paths.data_file("affect/sample.tsv")]).slice(0, 400)
    affects = sorted(set(tweets["affect"].to_pylist()))
    specification = system(architecture, affects=affects, encoder={"epochs": 4, "checkpoint_seconds": 0.0})
    for name in ("whole", "killed"):
        (tmp_path / name).mkdir()
    registry.prepare(specification, tweets, tmp_path / "whole", seed=3)

    def dies(done: int, total: int | None, note: str) -> None:
        if done == 2 * (total or 0) // 3:
            raise Killed

    with pytest.raises(Killed):
        registry.prepare(specification, tweets, tmp_path / "killed", 3, dies)
    assert (tmp_path / "killed" / "training.safetensors").exists()
    registry.prepare(specification, tweets, tmp_path / "killed", seed=3)
    whole, resumed = ((tmp_path / name / "model.safetensors").read_bytes() for name in ("whole", "killed"))
    assert whole == resumed
