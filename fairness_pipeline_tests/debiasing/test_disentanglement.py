"""The autoencoder of Debiased-Chat and its losses."""

import math
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from torch import nn

from fairness_pipeline.debiasing import disentanglement
from fairness_pipeline.debiasing.disentanglement import (
    Discriminators,
    DisentanglementModel,
    Utterances,
    bag_of_words_loss,
    group_accuracy,
    negative_entropy,
    optimisers_of,
    split_balanced,
    training_step,
    unbiased_utterances,
)
from fairness_pipeline.debiasing.settings import Disentanglement
from fairness_pipeline.errors import FairnessError
from fairness_pipeline.lexicons.stop_words import stop_words
from fairness_pipeline_tests.conftest import Killed
from fairness_pipeline_tests.debiasing.tasks import DET, dialogues, task

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
    scores = torch.log(torch.tensor([[0.5, 0.25, 0.25]]))
    bags = torch.tensor([[0.5, 0.5, 0.0]])
    assert bag_of_words_loss(scores, bags).item() == pytest.approx(-(0.5 * math.log(0.5) + 0.5 * math.log(0.25)))


def test_one_step_on_an_entropy_loss_raises_the_entropy() -> None:
    """The sign that the text means: minimising it makes the distribution more even."""
    scores = nn.Parameter(torch.tensor([[2.0, -1.0]]))
    before = negative_entropy(scores)
    before.backward()
    torch.optim.SGD([scores], 0.5).step()
    assert -negative_entropy(scores).item() > -before.item()


def test_bags_leave_out_stop_words_and_groups() -> None:
    counted = np.array([False, False, False, False, True, True, False])
    utterances = Utterances([np.array([4, 4, 5, 6]), np.array([6, 6])], np.array([0, 1]), counted)
    assert utterances.bags(np.array([0, 1])).tolist() == [
        pytest.approx([0, 0, 0, 0, 2 / 3, 1 / 3, 0]),
        [0, 0, 0, 0, 0, 0, 0],
    ]


def test_reconstruction_loss_of_a_model_that_guesses() -> None:
    model = DisentanglementModel(SIZES, words=10)
    nn.init.zeros_(model.output.weight)
    nn.init.zeros_(model.output.bias)
    utterances = torch.tensor([[4, 5, 6], [7, 0, 0]])
    features = model.features(model.embedding(utterances), torch.tensor([3, 1]))
    assert [f.shape for f in features] == [(2, 2), (2, 4)]
    assert model.reconstruction_loss(features, utterances).item() == pytest.approx(math.log(10))


def test_features_do_not_depend_on_padding() -> None:
    model = DisentanglementModel(SIZES, words=10)
    alone = model.features(model.embedding(torch.tensor([[7, 8]])), torch.tensor([2]))
    padded = torch.tensor([[7, 8, 0, 0], [4, 5, 6, 7]])
    together = model.features(model.embedding(padded), torch.tensor([2, 4]))
    for one, both in zip(alone, together, strict=True):
        torch.testing.assert_close(one[0], both[0])


def _step(rate: float, adversary_rate: float) -> tuple[DisentanglementModel, Discriminators, dict[str, torch.Tensor]]:
    torch.manual_seed(0)
    settings = SIZES.model_copy(update={"learning_rate": rate, "adversary_learning_rate": adversary_rate})
    model, discriminators = DisentanglementModel(settings, 10), Discriminators(settings, 10)
    before = {n: t.clone() for m in (model, discriminators) for n, t in m.state_dict().items()}
    training_step(
        model, discriminators, settings, torch.tensor([[4, 5, 6], [7, 8, 0]]), torch.tensor([0, 1]),
        torch.eye(10)[[4, 7]], **optimisers_of(model, discriminators, settings),
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


def test_too_few_utterances_are_said(tmp_path: Path) -> None:
    few = dialogues().slice(0, 30)
    with pytest.raises(FairnessError, match=r"hold \d+ different unbiased utterances of group . \((male|female)\)"):
        unbiased_utterances(task(tmp_path, "debiased_chat", dialogues=few))


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
    assert group_accuracy(telling, groups, rest, test, 1) > 0.99
    assert group_accuracy(noise, groups, rest, test, 1) == pytest.approx(0.5, abs=0.05)


def test_training_resumes_exactly_and_keeps_what_the_report_needs(tmp_path: Path) -> None:
    (tmp_path / "whole").mkdir()
    (tmp_path / "cut").mkdir()
    settings = {"disentanglement": DET}
    figures = disentanglement.train(task(tmp_path / "whole", "debiased_chat", settings))

    def interrupt(done: int, total: int | None, note: str) -> None:
        if note.startswith("loss") and total and done > total / 2 + 3:
            raise Killed

    with pytest.raises(Killed):
        disentanglement.train(task(tmp_path / "cut", "debiased_chat", settings, progress=interrupt))
    assert disentanglement.train(task(tmp_path / "cut", "debiased_chat", settings)) == figures
    whole, cut = (sorted(f for f in (tmp_path / n / "debiased").iterdir()) for n in ("whole", "cut"))
    assert [f.name for f in whole] == [f.name for f in cut]
    assert all(a.read_bytes() == b.read_bytes() for a, b in zip(whole, cut, strict=True))
    points = pq.read_table(tmp_path / "whole" / "debiased" / "projection.parquet")
    assert set(points["features"].to_pylist()) == {"unbiased", "semantic"}
    assert figures["test_utterances"] == DET["held_out"]


def test_a_loss_that_is_not_a_number_stops_with_the_place(tmp_path: Path) -> None:
    settings = {"disentanglement": {**DET, "learning_rate": 1e30}}
    with pytest.raises(FairnessError, match=r"loss of the disentanglement model is (nan|inf) in epoch \d+, batch \d+"):
        disentanglement.train(task(tmp_path, "debiased_chat", settings))


def test_stop_words_are_those_of_nltk(corpora: Path) -> None:
    import zipfile

    with zipfile.ZipFile(corpora / "nltk" / "stopwords.zip") as archive:
        assert stop_words() == frozenset(archive.read("stopwords/english").decode().split())
