"""Measures how much two distributions over a text's words overlap, and how far two explanations agree."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import scipy

from fairness_pipeline.corpora.classifiers.authored_texts import AUTHORED_TEXTS
from fairness_pipeline.foundation.schemas import fields, schema

SALIENCY = schema(
    **fields(AUTHORED_TEXTS, "text_id"),
    seed=(pa.int64(), "which training, from 1; 0 where it was not trained here"),
    words=(pa.list_(pa.string()), "of the text, as the classifier reads them"),
    label_l2x=(pa.list_(pa.float64()), "S_Y: of each word the share that tells the label, by an explainer"),
    group_l2x=(pa.list_(pa.float64()), "S_Z: of each word the share that tells the author's group, by an explainer"),
    label_gradients=(pa.list_(pa.float64()), "the same as label_l2x, by integrated gradients"),
    group_gradients=(pa.list_(pa.float64()), "the same as group_l2x, by integrated gradients"),
    js_l2x=(pa.float64(), "Jensen-Shannon divergence of S_Y and S_Z by explainers, in nats"),
    js_gradients=(pa.float64(), "the same by integrated gradients"),
)
"""One row per text and seed. The explainer is L2X."""


def js_divergence(one: np.ndarray, other: np.ndarray) -> float:
    """JS(S || S') in nats, from 0 (the same words) to log 2 (no word in common) (Liu 2022, section 4.3.2).

    This is the divergence itself. `scipy.spatial.distance.jensenshannon` returns its square root.

    >>> round(js_divergence(np.array([1.0, 0.0]), np.array([0.0, 1.0])), 4)
    0.6931
    """
    middle = (one + other) / 2
    return float((scipy.special.rel_entr(one, middle).sum() + scipy.special.rel_entr(other, middle).sum()) / 2)


def evenness(shares: Sequence[np.ndarray]) -> float:
    """The mean over texts of entropy / log(words). 1 means no preference, 0 means a single word.

    Texts of one word are left out. Two explanations without any preference overlap completely; their small JS
    divergence then says nothing.

    Args:
        shares: One share per word for each text.

    Examples:
        >>> evenness([np.array([0.5, 0.5]), np.array([1.0, 0.0])])
        0.5
    """
    ratios = [
        float(scipy.stats.entropy(text_shares) / np.log(len(text_shares)))
        for text_shares in shares
        if len(text_shares) > 1
    ]
    return float(np.mean(ratios)) if ratios else float("nan")


def rank_correlation(one: Sequence[np.ndarray], other: Sequence[np.ndarray]) -> float:
    """The mean over texts of Spearman's correlation of two explanations.

    Texts of one word, and texts in which all words have the same share, are left out.

    Args:
        one: One share per word for each text.
        other: The same for another explanation.

    Examples:
        >>> rank_correlation([np.array([0.1, 0.2, 0.7])], [np.array([0.5, 0.3, 0.2])])
        -1.0
    """
    correlations = []
    for shares, other_shares in zip(one, other, strict=True):
        if len(shares) > 1 and np.ptp(shares) > 0 and np.ptp(other_shares) > 0:
            correlations.append(float(scipy.stats.spearmanr(shares, other_shares).statistic))
    return float(np.mean(correlations)) if correlations else float("nan")


def same_top_word(one: Sequence[np.ndarray], other: Sequence[np.ndarray]) -> tuple[float, float]:
    """The share of texts in which both explanations rank the same word first, and the share expected by chance.

    Args:
        one: One share per word for each text.
        other: The same for another explanation.

    Examples:
        >>> same_top_word([np.array([0.1, 0.9])], [np.array([0.3, 0.7])])
        (1.0, 0.5)
    """
    same = [int(shares.argmax() == other_shares.argmax()) for shares, other_shares in zip(one, other, strict=True)]
    return float(np.mean(same)), float(np.mean([1 / len(shares) for shares in one]))
