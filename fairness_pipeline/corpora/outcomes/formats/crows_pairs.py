"""CrowS-Pairs (Nangia et al. 2020): is the more stereotypical of two sentences the likelier one?

The authors' `crows_pairs_anonymized.csv` has the pairs. Likelihoods: JSON Lines with `index` (the first column),
`sent_more` and `sent_less`. The writers of the pairs are the sample, because each wrote many similar ones.
"""

from collections.abc import Iterator
from pathlib import Path

from fairness_pipeline.corpora.outcomes.formats.shared import Benchmark, Row, needed
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.text_files import read_csv_rows

_COLUMNS = ("sent_more", "sent_less", "stereo_antistereo", "bias_type", "anon_writer")


def _pairs(path: Path) -> Iterator[Row]:
    rows = read_csv_rows(path)
    _, names = next(rows, (0, []))
    needed(dict.fromkeys(names), _COLUMNS, f"{path}, line 1")
    for number, cells in rows:
        if len(cells) != len(names):
            raise FairnessError(f"{path}, line {number}: expected {len(names)} columns, found {len(cells)}")
        pair = dict(zip(names, cells, strict=True))
        yield {
            "item": cells[0],
            "writer": pair["anon_writer"],
            "group": pair["bias_type"],
            "direction": pair["stereo_antistereo"],
            "sent_more": pair["sent_more"],
            "sent_less": pair["sent_less"],
        }


BENCHMARK = Benchmark(
    _pairs,
    key="index",
    row_id="item",
    texts={"sent_more": ("sent_more", "more"), "sent_less": ("sent_less", "less")},
    answer="likelihood",
)
"""A row for each pair: `item`, `writer`, `group` (its type of bias), `direction`, both sentences, and their likelihoods
`more` and `less`."""
