"""CrowS-Pairs (Nangia et al. 2020): is the more stereotypical of two sentences the likelier one?

The authors' `crows_pairs_anonymized.csv` has the pairs. Likelihoods: JSON Lines with `index` (the first column),
`sent_more` and `sent_less`. Those who wrote the pairs are the sample: each wrote many alike.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

import pyarrow as pa

from fairness_pipeline.corpora.outcomes.formats.shared import MODEL, Row, answers_by_id, as_table, needed
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.text_files import read_csv_rows

_COLUMNS = ("sent_more", "sent_less", "stereo_antistereo", "bias_type", "anon_writer")


def read(path: Path | None, answers: Mapping[str, Path]) -> pa.Table:
    """A row for each pair and model: `item`, `writer`, `group` (its type of bias), `direction`, both sentences, and
    their likelihoods `more` and `less`.

    Args:
        path: The authors' file.
        answers: By model a file of likelihoods; none yet for a benchmark that a model here is to score.

    Raises:
        FairnessError: a column is missing, or a pair has no likelihoods.
    """
    assert path is not None
    pairs = list(_pairs(path))
    if not answers:
        return as_table(pairs)
    return as_table(row for model, own in answers.items() for row in _scored(pairs, model, own))


def _pairs(path: Path) -> Iterator[Row]:
    rows = read_csv_rows(path)
    _, names = next(rows, (0, []))
    needed(dict.fromkeys(names), _COLUMNS, f"{path}, line 1")
    for number, cells in rows:
        if len(cells) != len(names):
            raise FairnessError(f"{path}, line {number}: expected {len(names)} columns, found {len(cells)}")
        own = dict(zip(names, cells, strict=True))
        yield {
            "item": cells[0],
            "writer": own["anon_writer"],
            "group": own["bias_type"],
            "direction": own["stereo_antistereo"],
            "sent_more": own["sent_more"],
            "sent_less": own["sent_less"],
        }


def _scored(pairs: list[Row], model: str, path: Path) -> Iterator[Row]:
    of_pair = answers_by_id(path, "index")
    for pair in pairs:
        found = of_pair.get(pair["item"])
        if found is None:
            raise FairnessError(f"{path}: no likelihoods of pair {pair['item']}")
        needed(found, ("sent_more", "sent_less"), f"{path}, index {pair['item']}")
        yield {**pair, MODEL: model, "more": found["sent_more"], "less": found["sent_less"]}
