"""Explanations: by hand on a linear classifier, and a planted word that both methods must find."""

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.spatial.distance import jensenshannon

from fairness_pipeline.explanation.agreement import js_divergence, rank_correlation, same_top_word
from fairness_pipeline.explanation.integrated_gradients import integrated_gradients
from fairness_pipeline.explanation.l2x import train_explainer
from fairness_pipeline.explanation.settings import ExplainerSettings
from fairness_pipeline.models.classifiers.network import TextNetwork, fit
from fairness_pipeline.models.classifiers.specification import Fitting
from fairness_pipeline.models.classifiers.texts import LabelledTexts
from fairness_pipeline_tests.models.classifiers.tiny import network


class Linear(TextNetwork):
    """The sum of the words' weights is the logit of class 1: integrated gradients are known."""

    def __init__(self, weights: list[float]) -> None:
        super().__init__()
        self.embedding = torch.nn.Embedding.from_pretrained(torch.tensor(weights)[:, None], freeze=False)
        self.width = 1

    def embed(self, texts):
        return self.embedding(texts)

    def logits(self, embedded, lengths):
        present = torch.arange(embedded.shape[1])[None] < lengths[:, None]
        total = (embedded[:, :, 0] * present).sum(1)
        return torch.stack([-total / 2, total / 2], 1)


def test_integrated_gradients_of_a_linear_classifier_are_its_weights() -> None:
    """Shares |w| / sum |w| of each text, whatever it is padded to."""
    model = Linear([0.0, 3.0, -1.0, 0.5])
    shares = integrated_gradients(model, [np.array([1, 2]), np.array([1, 2, 3, 3])], steps=8)
    assert shares[0] == pytest.approx([0.75, 0.25])
    assert shares[1] == pytest.approx([3 / 5, 1 / 5, 0.5 / 5, 0.5 / 5])
    assert integrated_gradients(model, [np.array([0, 0])], steps=4)[0] == pytest.approx([0.5, 0.5])


def test_js_divergence_by_hand_and_by_scipy() -> None:
    first, second = np.array([0.5, 0.5, 0.0]), np.array([0.0, 0.5, 0.5])
    assert js_divergence(first, second) == pytest.approx(0.5 * math.log(2))
    assert js_divergence(first, first) == 0
    draw = np.random.default_rng(1)
    for _ in range(10):
        p, q = draw.dirichlet(np.ones(7), 2)
        assert js_divergence(p, q) == pytest.approx(jensenshannon(p, q) ** 2)


def test_agreement_by_hand() -> None:
    first = [np.array([0.6, 0.3, 0.1]), np.array([0.2, 0.8]), np.array([1.0])]
    second = [np.array([0.5, 0.4, 0.1]), np.array([0.9, 0.1]), np.array([1.0])]
    assert rank_correlation(first, second) == pytest.approx(0)  # 1 and -1; one word has no rank
    assert same_top_word(first, second) == pytest.approx((2 / 3, (1 / 3 + 1 / 2 + 1) / 3))


@pytest.mark.parametrize("architecture", ["cnn", "rnn"])
def test_both_explanations_find_the_predictive_word(architecture: str, tmp_path: Path) -> None:
    """Words 5 and 6 tell the class, the others nothing."""
    draw = np.random.default_rng(2)
    labels = draw.integers(0, 2, 400)
    words = [draw.integers(7, 30, draw.integers(4, 9)) for _ in labels]
    for numbers, label in zip(words, labels, strict=True):
        numbers[draw.integers(len(numbers))] = 5 + label
    texts = LabelledTexts(words, labels)
    torch.manual_seed(0)
    model = network(architecture, words=30)
    (tmp_path / "model").mkdir()
    history = fit(model, texts, texts, Fitting(learning_rate=0.01, epochs=6, patience=3), tmp_path / "model", 1)
    assert max(history) > 0.97
    settings = ExplainerSettings(hidden=8, epochs=6, learning_rate=0.01, batch=32)
    explainer = train_explainer(model, texts, settings, tmp_path / "explainer", 1)
    learned, integrated = explainer.explain(words), integrated_gradients(model, words, 16)
    for shares in (learned, integrated):
        assert all(weights.sum() == pytest.approx(1, abs=1e-5) for weights in shares)
        top = [int(text[weights.argmax()]) in (5, 6) for text, weights in zip(words, shares, strict=True)]
        assert np.mean(top) > 0.9
    assert same_top_word(learned, integrated)[0] > 0.85
    again = train_explainer(
        model, texts, settings, tmp_path / "explainer", 1
    )  # an existing explainer is not trained again
    assert all(np.array_equal(first, second) for first, second in zip(learned, again.explain(words), strict=True))
