"""Scatter of scores by group: noise for one group, for one name, and for names at random."""

import numpy as np
import pyarrow.compute as pc
import pytest

from fairness_pipeline.corpora.sentiment.equity_sentences import PUBLISHED, make_equity_sentences
from fairness_pipeline.measures.sentiment.equity_pairs import Design
from fairness_pipeline.measures.sentiment.equity_spread import scatter

MARGIN = np.array([0.01])


@pytest.fixture(scope="module")
def corpus() -> tuple[Design, np.ndarray, np.ndarray]:
    sentences = make_equity_sentences()
    sentences = sentences.filter(pc.equal(sentences["templates"], PUBLISHED))
    race, person = (np.array(sentences[name].to_pylist(), dtype=object) for name in ("race", "person"))
    return Design(sentences, "race", PUBLISHED), race == "African American", person


def test_noise_for_one_group_is_detected_and_measured(corpus: tuple[Design, np.ndarray, np.ndarray]) -> None:
    design, african, _ = corpus
    random = np.random.default_rng(1)
    scores = 0.5 + random.normal(0, 0.01, len(african)) + random.normal(0, 0.1, len(african)) * african
    (result,) = scatter(design, scores[:, None], MARGIN)
    assert result.p_holm < 0.01 and result.difference == pytest.approx(0.01 - 0.1, abs=0.015)


def test_names_by_lot_keep_the_level(corpus: tuple[Design, np.ndarray, np.ndarray]) -> None:
    """Each name has its own mean and noise, whatever its group."""
    design, _, person = corpus
    names, number = np.unique(person.astype(str), return_inverse=True)
    p = []
    for seed in range(100):
        random = np.random.default_rng(seed)
        mean, noise = random.normal(0, 0.05, len(names)), random.gamma(2, 0.02, len(names))
        scores = 0.5 + mean[number] + noise[number] * random.normal(size=len(number))
        p.append(scatter(design, scores[:, None], MARGIN)[0].p_holm)
    assert np.mean(np.array(p) <= 0.05) <= 0.12


def test_one_loud_name_is_no_scatter_of_its_group(corpus: tuple[Design, np.ndarray, np.ndarray]) -> None:
    design, african, person = corpus
    random = np.random.default_rng(2)
    loud = 0.3 * (person == person[african][0])
    scores = 0.5 + random.normal(0, 0.01, len(african)) + loud
    assert abs(scatter(design, scores.astype(float)[:, None], MARGIN)[0].difference) < 0.002
