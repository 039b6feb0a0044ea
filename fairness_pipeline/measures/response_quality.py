"""What a model's responses are worth: relevance, diversity, and how well it predicts (Liu 2022, section 3.3.3.3)."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fairness_pipeline.lexicons.text import tokenize
from fairness_pipeline.measures.text import collapsed
from fairness_pipeline.schemas import schema
from fairness_pipeline.statistics.resampling import NGrams

RESPONSE_QUALITY = schema(
    metric=pa.string(),
    value=pa.float64(),
    unit=pa.string(),
    n=pa.int64(),
    signature=pa.string(),
).append(pa.field("published_value", pa.float64()))
"""`signature` says how the number was made (sacreBLEU's own for BLEU)."""

ORDERS = (1, 2, 3)


def response_quality(
    responses: pa.ChunkedArray, references: pa.ChunkedArray, perplexity: float | None, published: dict[str, float]
) -> pa.Table:
    """A table of `RESPONSE_QUALITY`: BLEU-1 to -3, distinct-1 and -2, and the validation perplexity.

    Args:
        responses: The model's, to the contexts of the test split.
        references: What people answered, in the same order.
        perplexity: Of the validation split, if the model has one.
        published: What the thesis's table 3.5 prints for such a model, by metric.
    """
    from sacrebleu.metrics.bleu import BLEU

    written, meant = responses.to_pylist(), references.to_pylist()
    rows: list[dict[str, Any]] = []
    for order in ORDERS:
        metric = BLEU(max_ngram_order=order, lowercase=True, force=True)
        score = metric.corpus_score(written, [meant]).score
        rows.append({"metric": f"bleu_{order}", "value": score, "signature": f"{metric.get_signature()}|order:{order}"})
    distinct = pc.unique(responses)
    ngrams = NGrams([tokenize(text) for text in collapsed(distinct)])
    found = ngrams.diversity(np.asarray(pc.index_in(responses, distinct)))
    for order, value in ((1, found.distinct_1), (2, found.distinct_2)):
        rows.append(
            {"metric": f"distinct_{order}", "value": 100 * value, "signature": f"distinct {order}-grams / words"}
        )
    for row in rows:
        row["unit"] = "percent"
    if perplexity is not None:
        about = "exp of the mean validation loss a target"
        rows.append({"metric": "perplexity", "value": perplexity, "unit": "perplexity", "signature": about})
    rows = [{**row, "n": len(written), "published_value": published.get(row["metric"])} for row in rows]
    return pa.Table.from_pylist(rows, schema=RESPONSE_QUALITY)
