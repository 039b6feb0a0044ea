"""The quality of a model's responses: relevance, diversity, and how well it predicts (Liu 2022, section 3.3.3.3)."""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fairness_pipeline.corpora.cleaning import USER
from fairness_pipeline.foundation.schemas import fields, optional, schema
from fairness_pipeline.lexicons.text import encode_texts
from fairness_pipeline.measures.dialogue.text import collapsed
from fairness_pipeline.statistics.comparison import COMPARISON
from fairness_pipeline.statistics.resampling import NGrams

if TYPE_CHECKING:
    from sacrebleu.metrics.bleu import BLEU

RESPONSE_QUALITY = schema(
    metric=(pa.string(), "of response quality"),
    value=(pa.float64(), "the metric's value"),
    **fields(COMPARISON, "unit"),
    n=(pa.int64(), "answers"),
    signature=(pa.string(), "how it was computed; of BLEU sacreBLEU's own"),
    published_value=optional(pa.float64(), "what table 3.5 of Liu 2022 prints"),
    constant_value=optional(pa.float64(), "what one answer to everything would get"),
)
"""One row per metric. `constant_value` is of the best of the training split's most frequent answers: a model that does
no better has learned nothing that this metric can see."""

ORDERS = (1, 2, 3)
_CONSTANTS = 20
"""The number of most frequent answers among which the best constant answer is searched."""
_MASK = re.compile(rf"{re.escape(USER)}\s*")


def measure_quality(
    responses: pa.ChunkedArray,
    references: pa.ChunkedArray,
    perplexity: tuple[float, str] | None,
    published: dict[str, float],
    frequent: Sequence[str] = (),
) -> pa.Table:
    """A table of `RESPONSE_QUALITY`: BLEU-1 to -3, distinct-1 and -2, and a perplexity.

    Masked user names are removed from answers and references. Most replies on Twitter begin with one, and an answer of
    nothing but user names would score above every model.

    Args:
        responses: The model's responses to the contexts of the test split.
        references: The answers of people, in the same order.
        perplexity: The perplexity of the model, if it has one, and how it was computed.
        published: The values in table 3.5 of the thesis for such a model, by metric.
        frequent: The most frequent answers of the training split.
    """
    answers, targets, constants = (
        [_MASK.sub("", text).strip() for text in texts]
        for texts in (responses.to_pylist(), references.to_pylist(), frequent[:_CONSTANTS])
    )
    rows: list[dict[str, Any]] = []
    for order in ORDERS:
        metric, constant_value = _bleu(order, tuple(targets), tuple(dict.fromkeys(filter(None, constants))))
        score = metric.corpus_score(answers, None).score
        row = {"metric": f"bleu_{order}", "value": score, "signature": f"{metric.get_signature()}|order:{order}"}
        rows.append({**row, "constant_value": constant_value})
    responses = pa.chunked_array([pa.array(answers, pa.string())])
    distinct = pc.unique(responses)
    ngrams = NGrams(encode_texts(distinct, collapsed))
    diversity = ngrams.diversity(np.asarray(pc.index_in(responses, distinct)))
    for order, value in ((1, diversity.distinct_1), (2, diversity.distinct_2)):
        rows.append(
            {"metric": f"distinct_{order}", "value": 100 * value, "signature": f"distinct {order}-grams / words"}
        )
    for row in rows:
        row["unit"] = "percent"
    if perplexity is not None:
        value, signature = perplexity
        rows.append({"metric": "perplexity", "value": value, "unit": "perplexity", "signature": signature})
    rows = [{**row, "n": len(answers), "published_value": published.get(row["metric"])} for row in rows]
    return pa.Table.from_pylist(rows, schema=RESPONSE_QUALITY)


@lru_cache(maxsize=2 * len(ORDERS))
def _bleu(order: int, references: tuple[str, ...], constants: tuple[str, ...]) -> "tuple[BLEU, float | None]":
    """BLEU against references, whose n-grams are counted once, and the score of the best constant answer. Both are the
    same for all models of a corpus."""
    from sacrebleu.metrics.bleu import BLEU

    metric = BLEU(max_ngram_order=order, lowercase=True, force=True, references=[list(references)])
    scores = [metric.corpus_score([text] * len(references), None).score for text in constants]
    return metric, max(scores, default=None)
