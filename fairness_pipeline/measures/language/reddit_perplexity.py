"""LMP: the perplexity of human references in the domain (Barikeri et al. 2021, section 3.2)."""

import math

import numpy as np
import pyarrow as pa

from fairness_pipeline.measures.language.downstream import Given, rows_of
from fairness_pipeline.models.language.perplexity import PerplexityScorer


def reddit_perplexity(given: Given, references: pa.Table) -> pa.Table:
    """The mean and median perplexity of the references, and the perplexity of all their tokens together.

    Args:
        given: The model.
        references: As `corpora.language.response_sets.REFERENCES`.
    """
    totals = PerplexityScorer(given.model, given.tokenizer).totals(references["text"].to_pylist())
    kept = [(loss, count) for loss, count in zip(*totals, strict=True) if count]
    values = np.array([math.exp(min(loss / count, 700.0)) for loss, count in kept])
    overall = math.exp(sum(loss for loss, _ in kept) / sum(count for _, count in kept))
    note = "tokens from the second on; references of one token left out"
    return rows_of(
        [
            ("perplexity_mean", float(values.mean()), "perplexity", len(values), f"mean over references; {note}"),
            (
                "perplexity_median",
                float(np.median(values)),
                "perplexity",
                len(values),
                f"median over references; {note}",
            ),
            ("perplexity_of_tokens", overall, "perplexity", len(values), f"exp of the mean loss of all tokens; {note}"),
        ],
        {},
    )
