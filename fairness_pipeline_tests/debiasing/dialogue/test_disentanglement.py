"""The autoencoder of Debiased-Chat and its losses."""

import dataclasses
import math
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from torch import nn

from fairness_pipeline.debiasing.dialogue import disentanglement, probes
from fairness_pipeline.debiasing.dialogue.disentanglement import (
    Bags,
    Discriminators,
    DisentanglementModel,
    bag_of_words_loss,
    negative_entropy,
    optimisers_of,
    training_step,
)
from fairness_pipeline.debiasing.dialogue.gendered_utterances import (
    NEUTRAL,
    Utterances,
    encode,
    neutral_utterances,
    unbiased_utterances,
)
from fairness_pipeline.debiasing.dialogue.probes import (
    content_accuracy,
    group_accuracy,
    nonlinear_accuracy,
    split_balanced,
    trained_accuracy,
)
from fairness_pipeline.debiasing.dialogue.settings import Disentanglement
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.lexicons.contexts import PairSettings
from fairness_pipeline.lexicons.stop_words import stop_words
from fairness_pipeline.models.vocabulary import END, UNKNOWN, Vocabulary
from fairness_pipeline_tests.conftest import Killed
from fairness_pipeline_tests.debiasing.dialogue.tasks import DET, dialogues, task

SIZES = Disentanglement(hidden=6, embedding=4, unbiased=2, semantic=4)


def test_negative_entropy_by_hand() -> None:
    even, certain = torch.zeros(1, 2), torch.tensor([[50.0, -50.0]])
    quarter = torch.log(torch.tensor([[0.25, 0.75]]))
    assert negative_entropy(even).item() == pytest.approx(-math.log(2))
    assert negative_entropy(certain).item() == pytest.approx(0, abs=1e-6)
    expected = 0.25 * math.log(0.25) + 0.75 * math.log(0.75)
    assert negative_entropy(quarter).item() == pytest.approx(expected)
    assert negative_entropy(torch.cat([even, quarter])).item() == pytest.approx((expected - math.log(2)) / 2)


def test_bag_of_words_loss_by_hand() -> None:
    scores = torch.log(torch.tensor([[0.5, 0.25, 0.25], [0.5, 0.25, 0.25]])) + torch.tensor([[0.0], [3.0]])
    bags = Bags.of([np.array([0, 1]), np.array([], np.int64)], torch.device("cpu"))
    by_hand = -(0.5 * math.log(0.5) + 0.5 * math.log(0.25))
    assert bag_of_words_loss(scores, bags).item() == pytest.approx(by_hand / 2)  # the second has no counted word


def test_one_step_on_an_entropy_loss_raises_the_entropy() -> None:
    """The sign that the paper's text means: minimising it makes the distribution more even."""
    scores = nn.Parameter(torch.tensor([[2.0, -1.0]]))
    before = negative_entropy(scores)
    before.backward()
    torch.optim.SGD([scores], 0.5).step()
    assert -negative_entropy(scores).item() > -before.item()


def test_bags_leave_out_stop_words_and_groups(tmp_path: Path) -> None:
    """By the matcher: a clitic goes with its word, and a phrase goes as a whole; its words stay elsewhere."""
    texts = ["He'll bring the old tea", "my uncle the tea", "the rice is hers", "tea or rice"]
    words = ["he'll", "bring", "the", "old", "tea", "my", "uncle", "rice", "is", "hers", "or"]
    vocabulary, sides = Vocabulary(words), ["a", "a", "b", None]
    rows, utterances = encode(
        pa.table({"utterance": texts, "side": pa.array(sides, pa.string())}), vocabulary, len(vocabulary),
        task(tmp_path, "debiased_chat", pairs=PairSettings(pronouns="extended")),
    )  # fmt: skip
    assert rows.tolist() == [0, 1, 2, 3]
    assert utterances.groups.tolist() == [0, 0, 1, NEUTRAL]
    counted = [[vocabulary.words[number] for number in numbers] for numbers in utterances.counted]
    assert counted == [["bring", "old", "tea"], ["tea"], ["rice"], ["tea", "rice"]]
    bags = Bags.of(utterances.counted, torch.device("cpu"))
    assert bags.shares.tolist() == [pytest.approx([1 / 3] * 3), [1, 0, 0], [1, 0, 0], [0.5, 0.5, 0]]


def test_utterances_without_a_visible_group_word_are_left_out(tmp_path: Path) -> None:
    """Their only such word is unknown, or comes after the end of the longest turn (8 words)."""
    texts = ["my uncle has tea", "my nephew has tea", "tea tea tea tea tea tea tea tea uncle", "my aunt"]
    vocabulary = Vocabulary(["my", "has", "tea", "uncle", "aunt"])
    corpus = pa.table({"utterance": texts, "side": ["a", "a", "a", "b"]})
    prepared = task(tmp_path, "debiased_chat")
    assert encode(corpus, vocabulary, len(vocabulary), prepared)[0].tolist() == [0, 3]
    rows, utterances = encode(corpus, vocabulary, len(vocabulary) - 1, prepared)  # a smaller vocabulary: no aunt
    assert rows.tolist() == [0]
    assert utterances.turns[0].tolist() == [4, 7, 5, 6]


def test_neutral_utterances_name_no_group_and_may_be_biased(tmp_path: Path) -> None:
    prepared = task(tmp_path, "debiased_chat")
    utterances = neutral_utterances(prepared, 1000)["utterance"].to_pylist()
    assert all("uncle" not in text and "aunt" not in text for text in utterances)
    assert any("idiot" in text for text in utterances)
    assert len(neutral_utterances(prepared, 3)) == 3


def test_words_beyond_the_known_ones_are_unknown_to_the_autoencoder() -> None:
    model = DisentanglementModel(SIZES, words=6)
    words = torch.eye(9)[[4, 5, 6, 8]]
    expected = model.embedding.weight[[4, 5, UNKNOWN, UNKNOWN]]
    torch.testing.assert_close(model.embed(words), expected)


def test_reconstruction_loss_of_a_model_that_guesses() -> None:
    model = DisentanglementModel(SIZES, words=10)
    nn.init.zeros_(model.output.weight)
    nn.init.zeros_(model.output.bias)
    utterances = torch.tensor([[4, 5, 6], [7, 0, 0]])
    features, loss = model.read(utterances)
    assert [f.shape for f in features] == [(2, 2), (2, 4)]
    assert loss.item() == pytest.approx(math.log(10))


def test_rare_words_are_scored_in_two_steps() -> None:
    """By hand: 4 listed words and "a rare word" are equally likely; the rare words 4 to 9 have shares of 1/21 to 6/21."""
    model = DisentanglementModel(SIZES.model_copy(update={"shortlist": 4}), words=10)
    for weights in model.output.parameters():
        nn.init.zeros_(weights)
    with torch.no_grad():
        model.output.bias[5:] = torch.log(torch.arange(1.0, 7.0))
    _, loss = model.read(torch.tensor([[4, 5, 3], [9, 0, 0]]))  # and END, which is listed, after each
    assert loss.item() == pytest.approx((6 * math.log(5) + math.log(21) + math.log(21 / 2) + math.log(21 / 6)) / 6)
    _, loss = model.read(torch.tensor([[3, 1]]))
    assert loss.item() == pytest.approx(math.log(5))


def test_a_shortlist_is_the_adaptive_softmax_of_torch() -> None:
    """torch's has no bias for rare words; its projection is the identity here."""
    model = DisentanglementModel(SIZES.model_copy(update={"shortlist": 4}), words=10)
    theirs = nn.AdaptiveLogSoftmaxWithLoss(SIZES.hidden, 10, [4], div_value=1, head_bias=True)
    with torch.no_grad():
        model.output.bias[5:] = 0
        theirs.head.weight.copy_(model.output.weight[:5])
        theirs.head.bias.copy_(model.output.bias[:5])
        theirs.tail[0][0].weight.copy_(torch.eye(SIZES.hidden))
        theirs.tail[0][1].weight.copy_(model.output.weight[5:])
    decoded: list[tuple[torch.Tensor, ...]] = []
    model.decoder.register_forward_hook(lambda module, inputs, output: decoded.append(output))
    _, loss = model.read(torch.tensor([[4, 9, 3, 5]]))
    assert loss.item() == pytest.approx(theirs(decoded[0][0][0], torch.tensor([4, 9, 3, 5, END])).loss.item())


def test_rare_words_are_learned_as_when_all_are_scored_everywhere() -> None:
    """Planted: each word is followed by the next one; after training, both reconstruct that with hardly a loss."""
    utterances = (torch.arange(12).unsqueeze(1) + torch.arange(3)) % 12 + 4
    for shortlist in (None, 7, 16):  # 16: all of them
        torch.manual_seed(0)
        model = DisentanglementModel(SIZES.model_copy(update={"shortlist": shortlist}), words=16)
        assert model.shortlist == (7 if shortlist == 7 else None)
        optimiser = torch.optim.Adam(model.parameters(), 0.05)
        for _ in range(300):
            _, loss = model.read(utterances)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        assert loss.item() < 0.05, shortlist


def test_features_do_not_depend_on_padding() -> None:
    model = DisentanglementModel(SIZES, words=10)
    alone = model.features(model.embedding(torch.tensor([[7, 8]])), torch.tensor([2]))
    padded = torch.tensor([[7, 8, 0, 0], [4, 5, 6, 7]])
    together = model.features(model.embedding(padded), torch.tensor([2, 4]))
    for single, batched in zip(alone, together, strict=True):
        torch.testing.assert_close(single[0], batched[0])


def _step(rate: float, adversary_rate: float) -> tuple[DisentanglementModel, Discriminators, dict[str, torch.Tensor]]:
    torch.manual_seed(0)
    settings = SIZES.model_copy(update={"learning_rate": rate, "adversary_learning_rate": adversary_rate})
    model, discriminators = DisentanglementModel(settings, 10), Discriminators(settings, 10)
    before = {n: t.clone() for m in (model, discriminators) for n, t in m.state_dict().items()}
    training_step(
        model, discriminators, settings, torch.tensor([[4, 5, 6], [7, 8, 0]]), torch.tensor([0, 1]),
        Bags.of([np.array([4]), np.array([7])], torch.device("cpu")), **optimisers_of(model, discriminators, settings),
    )  # fmt: skip
    return model, discriminators, before


def test_gradients_flow_where_they_should_and_nowhere_else() -> None:
    """D2 and D3 learn apart from the rest: each optimiser moves its own parameters only."""
    for rate, adversary_rate in ((0.0, 0.1), (0.1, 0.0)):
        model, discriminators, before = _step(rate, adversary_rate)
        for module in (model, discriminators):
            for name, tensor in module.state_dict().items():
                adversary = name.startswith(("d2", "d3"))
                moved = not torch.equal(tensor, before[name])
                assert moved == (adversary == (adversary_rate > 0)), name
    assert all(p.requires_grad for p in discriminators.parameters())


def test_the_corpus_is_of_one_group_and_unbiased(tmp_path: Path) -> None:
    corpus = unbiased_utterances(task(tmp_path, "debiased_chat")).to_pylist()
    train = dialogues().filter(pa.compute.equal(dialogues()["split"], "train")).to_pylist()
    expected = [row[turn] for turn in ("context", "response") for row in train]
    expected = [text for text in expected if ("uncle" in text or "aunt" in text) and "idiot" not in text]
    assert [row["utterance"] for row in corpus] == expected
    assert all((row["side"] == "a") == ("uncle" in row["utterance"]) for row in corpus)


def test_too_few_utterances_are_refused(tmp_path: Path) -> None:
    few = dialogues().slice(0, 30)
    message = (
        r"hold 1\d different unbiased utterances of group a \(male\), 1\d of them .* needs 20 or more of each group"
    )
    with pytest.raises(FairnessError, match=message):
        disentanglement.train(task(tmp_path, "debiased_chat", {"disentanglement": DET}, dialogues=few))


def test_the_test_is_balanced_and_unseen() -> None:
    texts = [f"u{i % 40}" for i in range(200)]
    corpus = pa.table({"utterance": texts, "side": ["a" if int(t[1:]) < 25 else "b" for t in texts]})
    test, rest = split_balanced(corpus, held_out=5000, seed=3)
    held = [texts[i] for i in test]
    assert len(held) == len(set(held)) == 6  # a fifth of the smaller group's 15, each group
    assert sum(int(t[1:]) < 25 for t in held) == 3
    assert not set(held) & {texts[i] for i in rest}
    assert len(rest) == 200 - 6 * 5
    small, _ = split_balanced(corpus, held_out=4, seed=3)
    assert len(small) == 4


def test_the_accuracy_is_that_of_what_the_features_hold() -> None:
    """Planted: one column tells the group, the others are noise; without it the accuracy is chance."""
    random = np.random.default_rng(0)
    groups = random.integers(0, 2, 4000)
    noise = torch.from_numpy(random.normal(size=(4000, 5)))
    telling = torch.cat([noise, torch.from_numpy(groups[:, None] + random.normal(size=(4000, 1)) * 0.1)], dim=1)
    test, rest = np.arange(2000), np.arange(2000, 4000)
    for probe in (group_accuracy, trained_accuracy):
        assert probe(telling.float(), groups, rest, test, 1) > 0.99
        assert probe(noise.float(), groups, rest, test, 1) == pytest.approx(0.5, abs=0.05)


def test_the_strict_probe_finds_what_a_trained_one_misses() -> None:
    """Planted: the group in a direction of little variance, which some steps of Adam do not reach."""
    random = np.random.default_rng(0)
    groups = random.integers(0, 2, 4000)
    vectors = torch.from_numpy(
        np.column_stack([groups * 0.002 + random.normal(size=4000) * 2e-4, random.normal(size=(4000, 5))])
    )
    test, rest = np.arange(2000), np.arange(2000, 4000)
    assert group_accuracy(vectors.float(), groups, rest, test, 1) > 0.99
    assert trained_accuracy(vectors.float(), groups, rest, test, 1) < 0.6


def test_content_words_predict_the_group_as_far_as_they_differ() -> None:
    """Planted: word 4 is in four of five utterances of group b and in one of five of group a; word 5 is in all."""
    random = np.random.default_rng(0)
    groups = random.integers(0, 2, 4000)
    occurs = random.random(4000) < np.where(groups == 1, 0.8, 0.2)
    counted = [np.array([4, 5] if present else [5], dtype=np.int64) for present in occurs]
    utterances = Utterances(counted, groups, counted)
    test, rest = np.arange(2000), np.arange(2000, 4000)
    assert content_accuracy(utterances, 6, rest, test, 1) == pytest.approx(0.8, abs=0.03)
    blank = Utterances(counted, groups, [np.array([], np.int64)] * 4000)
    assert content_accuracy(blank, 6, rest, test, 1) == pytest.approx(0.5, abs=0.05)


@pytest.mark.verify
@pytest.mark.parametrize("shortlist", [None, 20])
def test_training_resumes_exactly_and_keeps_what_the_report_needs(
    shortlist: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        probes, "_PROBE_STEPS", 50
    )  # few steps, the same before and after; the tests above cover the accuracies
    (tmp_path / "whole").mkdir()
    (tmp_path / "cut").mkdir()
    settings = {"disentanglement": {**DET, "shortlist": shortlist}}
    figures = disentanglement.train(task(tmp_path / "whole", "debiased_chat", settings))

    def interrupt(done: int, total: int | None, note: str) -> None:
        if note.startswith("loss") and total and done > total / 2 + 3:
            raise Killed

    with pytest.raises(Killed):
        disentanglement.train(task(tmp_path / "cut", "debiased_chat", settings, progress=interrupt))
    assert disentanglement.train(task(tmp_path / "cut", "debiased_chat", settings)) == figures
    whole, cut = (sorted(path for path in (tmp_path / n / "debiased").iterdir()) for n in ("whole", "cut"))
    assert [path.name for path in whole] == [path.name for path in cut]
    assert all(a.read_bytes() == b.read_bytes() for a, b in zip(whole, cut, strict=True))
    points = pq.read_table(tmp_path / "whole" / "debiased" / "projection.parquet")
    assert set(points["features"].to_pylist()) == {"unbiased", "semantic"}
    assert figures["test_utterances"] == DET["held_out"]
    trained = dataclasses.replace(
        task(tmp_path, "debiased_chat", settings), disentanglement=tmp_path / "whole" / "debiased"
    )
    assert disentanglement.load(trained).shortlist == shortlist


def test_a_loss_that_is_not_a_number_stops_with_the_place(tmp_path: Path) -> None:
    settings = {"disentanglement": {**DET, "learning_rate": 1e30}}
    with pytest.raises(FairnessError, match=r"loss of the disentanglement model is (nan|inf) in epoch \d+, batch \d+"):
        disentanglement.train(task(tmp_path, "debiased_chat", settings))


def test_stop_words_are_those_of_nltk(corpora: Path) -> None:
    import zipfile

    with zipfile.ZipFile(corpora / "nltk" / "stopwords.zip") as archive:
        assert stop_words() == frozenset(archive.read("stopwords/english").decode().split())


def test_d2_may_have_more_layers_as_in_the_game() -> None:
    single, three = (Discriminators(Disentanglement(**{**DET, "d2_layers": layers}), 20).d2 for layers in (1, 3))
    assert [type(layer).__name__ for layer in single] == ["Linear"]
    assert [type(layer).__name__ for layer in three] == ["Linear", "ReLU", "Linear", "ReLU", "Linear"]
    assert three[0].in_features == DET["semantic"] and three[-1].out_features == 2


def test_a_probe_of_three_layers_finds_what_a_linear_one_cannot() -> None:
    """Groups by the sign of a product: exclusive or."""
    draw = np.random.default_rng(1)
    vectors = draw.normal(size=(1200, 4))
    groups = (vectors[:, 0] * vectors[:, 1] > 0).astype(np.int64)
    rest, test = np.arange(1000), np.arange(1000, 1200)
    features = torch.from_numpy(vectors).float()
    assert group_accuracy(features, groups, rest, test, 1) < 0.65
    assert nonlinear_accuracy(features, groups, rest, test, 1) > 0.85
