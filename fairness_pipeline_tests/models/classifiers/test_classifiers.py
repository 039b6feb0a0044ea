"""Classifiers: trained here, published, behind HTTP, or given by a file of predictions."""

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import torch

from fairness_pipeline.corpora.classifiers.authored_texts import AUTHORED_TEXTS
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.models.classifiers import network as networks
from fairness_pipeline.models.classifiers import registry
from fairness_pipeline.models.classifiers.prediction_files import read_predictions, write_texts
from fairness_pipeline.models.classifiers.saliency import SaliencyNetwork
from fairness_pipeline.models.classifiers.specification import ClassifierSpecification, Fitting
from fairness_pipeline.models.classifiers.texts import LabelledTexts
from fairness_pipeline_tests.conftest import Killed
from fairness_pipeline_tests.local_server import chat, serve
from fairness_pipeline_tests.models.classifiers.tiny import NETWORK, encoder, network, told_by_a_word
from fairness_pipeline_tests.models.tiny_models import classifier

TESTS = pa.table(
    {
        "text_id": ["x1", "x2", "x3"],
        "text": ['say "it", now', "two\twords", "three"],
        "label": [1, 0, 1],
        "author_group": ["a", "b", "b"],
        "balanced": [True, True, False],
        "author_id": ["x1", "x2", "x3"],
        "split": ["test"] * 3,
    },
    schema=AUTHORED_TEXTS,
)


@pytest.mark.parametrize("architecture", ["cnn", "rnn"])
def test_padding_changes_nothing(architecture: str) -> None:
    torch.manual_seed(0)
    model = network(architecture).eval()
    random = np.random.default_rng(1)
    texts = [random.integers(4, 40, length) for length in (1, 2, 7, 12, 3, 12)]
    alone = [networks.probabilities(model, [text])[0] for text in texts]
    assert networks.probabilities(model, texts) == pytest.approx(alone, abs=1e-6)


def test_saliency_is_a_distribution_over_the_words_and_padding_changes_nothing() -> None:
    torch.manual_seed(0)
    saliency = SaliencyNetwork(6, 5)
    embedded, lengths = torch.randn(3, 9, 6), torch.tensor([9, 4, 1])
    weights = saliency(embedded, lengths)
    assert torch.allclose(weights.sum(1), torch.ones(3)) and (weights[1, 4:] == 0).all() and weights[2, 0] == 1
    for row, length in enumerate(lengths.tolist()):
        alone = saliency(embedded[row : row + 1, :length], lengths[row : row + 1])
        assert torch.allclose(alone[0], weights[row, :length], atol=1e-6)


def test_the_bidirectional_network_is_torchs() -> None:
    """Two networks, one on reversed texts, against `nn.GRU(bidirectional=True)` on packed texts."""
    from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

    torch.manual_seed(0)
    ours, theirs = SaliencyNetwork(4, 3), torch.nn.GRU(4, 3, batch_first=True, bidirectional=True)
    for name, weight in ours.forwards.named_parameters():
        getattr(theirs, name).data = weight.data
    for name, weight in ours.backwards.named_parameters():
        getattr(theirs, f"{name}_reverse").data = weight.data
    embedded, lengths = torch.randn(2, 6, 4), torch.tensor([6, 3])
    states, _ = theirs(pack_padded_sequence(embedded, lengths, batch_first=True))
    scores = ours.output(pad_packed_sequence(states, batch_first=True)[0])[:, :, 0]
    expected = [scores[row, :length].softmax(0) for row, length in enumerate(lengths.tolist())]
    saliency = ours(embedded, lengths)
    assert all(
        torch.allclose(saliency[row, : len(weights)], weights, atol=1e-6) for row, weights in enumerate(expected)
    )


def specification(**changes) -> ClassifierSpecification:
    return ClassifierSpecification.model_validate({"architecture": "cnn", "network": NETWORK, **changes})


def test_a_killed_training_resumes_to_the_same_weights(tmp_path: Path) -> None:
    random = np.random.default_rng(2)
    labels = random.integers(0, 2, 200)
    texts = LabelledTexts([np.array([5 + label, *random.integers(7, 30, 4)]) for label in labels], labels)
    fitting = Fitting(learning_rate=0.01, epochs=3, batch=16, checkpoint_seconds=0.0)
    weights = []
    for name in ("whole", "cut"):
        (tmp_path / name).mkdir()

        def dies(done, total, note, name=name):
            if name == "cut" and done == 20:
                raise Killed

        for progress in (dies, None):
            torch.manual_seed(0)
            model = network("cnn")
            try:
                networks.fit(model, texts, texts, fitting, tmp_path / name, 1, progress)
            except Killed:
                continue
            break
        weights.append(torch.cat([value.flatten() for value in model.state_dict().values()]))
    loaded = network("cnn")  # a finished training is not repeated, and its weights are loaded
    networks.fit(loaded, texts, texts, fitting, tmp_path / "whole", 1)
    weights.append(torch.cat([value.flatten() for value in loaded.state_dict().values()]))
    assert torch.equal(weights[0], weights[1]) and torch.equal(weights[0], weights[2])


def test_weights_count_in_the_loss_by_hand() -> None:
    torch.manual_seed(0)
    model = network("cnn").eval()
    texts = LabelledTexts([np.array([5, 6]), np.array([7])], np.array([1, 0]), np.array([0.625, 2.5]))
    batch = texts.batch(np.array([0, 1]), torch.device("cpu"))
    logits = model.logits(model.embed(batch.texts), batch.lengths)
    losses = -logits.detach().log_softmax(1)[[0, 1], [1, 0]]
    total, count = model(batch)
    assert float(total.detach()) == pytest.approx(float(0.625 * losses[0] + 2.5 * losses[1])) and int(count) == 2


def test_a_pretrained_encoder_is_fine_tuned(tmp_path: Path) -> None:
    texts, labels, _ = told_by_a_word(240, 1)
    name = encoder(tmp_path / "bert", ["good", "bad", "new", "yes", "yup", "the", "phone", "is"])
    spec = ClassifierSpecification(architecture="encoder", encoder={"name": name, "longest": 20})
    tokens = registry.new_tokens(spec, texts)
    encoded = tokens.encode(texts)
    assert tokens.words(encoded[0])[0] in ("[UNK]", *texts[0].split())
    torch.manual_seed(0)
    model = registry.new_network(spec, tokens)
    folder = tmp_path / "made"
    folder.mkdir()
    tokens.save(folder)
    train = LabelledTexts(encoded, labels)
    networks.fit(model, train, train, Fitting(learning_rate=0.01, batch=16, epochs=4, clipping=1.0), folder, 1)
    predicted = networks.probabilities(model, encoded)
    assert np.mean((predicted >= 0.5) == labels) > 0.85
    assert networks.probabilities(model, [encoded[3]])[0] == pytest.approx(predicted[3], abs=1e-5)
    assert registry.tokens_of(spec, folder).encode(texts[:1])[0].tolist() == encoded[0].tolist()
    with pytest.raises(FairnessError, match=r"encoder.name: there is no folder"):
        registry.new_tokens(ClassifierSpecification(architecture="encoder", encoder={"name": str(tmp_path / "no")}), [])


def test_a_published_classifier_gives_its_labels_probability(tmp_path: Path) -> None:
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    name = classifier(tmp_path / "model")
    spec = ClassifierSpecification(architecture="huggingface", huggingface={"name": name, "positive": ["positive"]})
    texts = ["what is red", "the man", "it is the green woman"]
    scored = registry.scorer(spec, tmp_path, 1)(pa.table({"text": texts}))["probability"].to_pylist()
    encode, model = (
        AutoTokenizer.from_pretrained(name),
        AutoModelForSequenceClassification.from_pretrained(name).eval(),
    )
    for text, value in zip(texts, scored, strict=True):
        logits = model(**encode(text, return_tensors="pt")).logits[0]
        assert value == pytest.approx(float(logits.softmax(0)[1].detach()), abs=1e-5)
    wrong = spec.model_copy(update={"huggingface": spec.huggingface.model_copy(update={"positive": ("joy",)})})
    with pytest.raises(
        FairnessError, match=r"huggingface.positive: .*has no label 'joy'; its labels: negative, positive"
    ):
        registry.scorer(wrong, tmp_path, 1)(pa.table({"text": texts}))


def test_a_text_longer_than_the_model_is_cut(tmp_path: Path) -> None:
    """The tokenizers are saved without a length, for models of 32 positions: one published, one fine-tuned here."""
    from transformers import AutoTokenizer, BertForSequenceClassification

    name = encoder(tmp_path / "bert", ["good", "bad"])
    assert AutoTokenizer.from_pretrained(name).model_max_length > 10**6
    made = tmp_path / "made"
    BertForSequenceClassification.from_pretrained(name, num_labels=2).save_pretrained(made)
    AutoTokenizer.from_pretrained(name).save_pretrained(made)
    spec = ClassifierSpecification(architecture="huggingface", huggingface={"name": str(made), "positive": ["LABEL_1"]})
    texts = ["good " * 200, "good " * 32, "bad"]
    scored = registry.scorer(spec, tmp_path, 1)(pa.table({"text": texts}))["probability"].to_pylist()
    assert scored[0] == pytest.approx(scored[1]) and scored[0] != pytest.approx(scored[2], abs=1e-6)
    tokens = registry.new_tokens(ClassifierSpecification(architecture="encoder", encoder={"name": name}), texts)
    assert [len(row) for row in tokens.encode(texts)] == [32, 32, 1]


def test_an_endpoint_says_yes_or_no(tmp_path: Path) -> None:
    asked: Counter[str] = Counter()
    reply = {"value": "Yes."}

    def talk(question: str) -> str:
        text = question.rsplit("\n", 1)[-1]
        asked[text] += 1
        return reply["value"] if text != "bad" else " no, it is not"

    with serve(chat(talk)) as address:
        spec = ClassifierSpecification(architecture="endpoint", endpoint={"base_url": f"{address}/v1", "model": "m"})
        texts = pa.table({"text": ["good", "bad"]})
        assert registry.scorer(spec, tmp_path, 1)(texts)["probability"].to_pylist() == [1.0, 0.0]
        assert registry.scorer(spec, tmp_path, 1)(texts)["probability"].to_pylist() == [1.0, 0.0]
        assert asked == {"good": 1, "bad": 1}  # answers are kept
        reply["value"] = "perhaps"
        (tmp_path / "other").mkdir()
        with pytest.raises(FairnessError, match=r"1 of 1 answers begin with neither yes nor no, such as 'perhaps'"):
            registry.scorer(spec, tmp_path / "other", 1)(pa.table({"text": ["new"]}))


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl"])
def test_exported_texts_come_back_as_predictions(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"texts{suffix}"
    texts = TESTS if suffix == ".csv" else TESTS.set_column(1, "text", pa.array(["say it", "@two words", "=three()"]))
    texts = texts.set_column(0, "text_id", pa.array(["-x", "@2", "3"]))
    assert write_texts(texts, path) == {".csv": 2, ".tsv": 4, ".jsonl": 0}[suffix]
    lines = path.read_text(encoding="utf-8").splitlines()
    if suffix == ".jsonl":
        assert json.loads(lines[1]) == {"text_id": "@2", "text": "@two words", "probability": ""}
        filled = [json.dumps({**json.loads(line), "probability": 0.7}) for line in lines]
    else:
        filled = [lines[0], *(line + "0.7" for line in lines[1:])]
    path.write_text("\n".join(filled) + "\n", encoding="utf-8")
    table = read_predictions(path, texts)
    assert table["probability"].to_pylist() == [0.7] * 3 and table["prediction"].to_pylist() == [1] * 3
    assert table["label"].to_pylist() == [1, 0, 1] and table["seed"].to_pylist() == [0] * 3


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        (["text_id,prediction", "x1,1", "x2,0"], r"1 of 3 texts have no prediction, such as x3"),
        (["text_id,prediction", "x1,1", "x1,0"], r"line 3: text_id 'x1' was predicted before: .*line 2"),
        (["text_id,prediction", "x1,1", "x2,0", "x3,1", "x9,0", "x8,1"], r"2 unknown texts, such as 'x9' .*line 5"),
        (["text_id,prediction", "x1,0.5"], r"line 2: prediction: expected 0 or 1, found '0.5'"),
        (["text_id,probability", "x1,1.5"], r"line 2: probability: expected a number from 0 to 1, found '1.5'"),
        (["text_id,probability", "x1,nan"], r"found 'nan'"),
        (["id,probability", "x1,1"], r"expected a column 'text_id'"),
        (["text_id,score", "x1,1"], r"expected a column 'probability'"),
    ],
)
def test_an_invalid_file_of_predictions_is_refused(lines: list[str], reason: str, tmp_path: Path) -> None:
    path = tmp_path / "predictions.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    with pytest.raises(FairnessError, match=reason):
        read_predictions(path, TESTS)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"encoder": {"name": "x"}}, "does not take 'encoder'"),
        ({"architecture": "encoder", "network": None}, "needs 'encoder'"),
        ({"debiasing": "data_aug"}, "go together"),
        ({"settings": {}}, "needs a method"),
        ({"architecture": "svm", "network": None}, "expected one of cnn, rnn"),
        ({"architecture": "endpoint", "network": None, "endpoint": {"base_url": "https://h/v1", "model": "m"},
          "base": "x", "debiasing": "data_aug"}, "cannot be debiased"),
    ],
)  # fmt: skip
def test_contradictions_are_refused(changes: dict, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        specification(**changes)
