"""The Equity Evaluation Corpus beside plain code."""

import numpy as np

from fairness_pipeline.corpora.sentiment.equity_sentences import DIMENSIONS, TEMPLATE_SETS, make_equity_sentences
from fairness_pipeline.measures.sentiment.equity_pairs import Design
from fairness_pipeline.measures.sentiment.equity_significance import judge_equity
from fairness_pipeline.statistics.equivalence import Margin
from fairness_pipeline_tests.benchmark import plain
from fairness_pipeline_tests.benchmark.shared import Ratio, rate

SYSTEMS = 400
_FEW_SYSTEMS = 20


def equity() -> list[Ratio]:
    """The statistics of submitted systems in study 3, each on its own as a partition is."""
    sentences = make_equity_sentences()
    random = np.random.default_rng(0)
    scores = random.uniform(size=(sentences.num_rows, SYSTEMS))
    parts = [
        [row for row in sentences.to_pylist() if row["templates"] == kind and (whole or row["emotion"] is None)]
        for kind in TEMPLATE_SETS
        for whole in (True, False)
    ]
    places = [np.array([row["sentence_id"] - 1 for row in part]) for part in parts]
    designs = {name: [Design(sentences, name, kind) for kind in TEMPLATE_SETS] for name in DIMENSIONS}
    margin = Margin(absolute=0.01)

    def ours() -> None:
        for i in range(SYSTEMS):
            for name, both in designs.items():
                judge_equity(both, name, ["valence"], np.ascontiguousarray(scores[:, i : i + 1]), margin)

    def theirs() -> None:
        for i in range(_FEW_SYSTEMS):
            for part, place in zip(parts, places, strict=True):
                plain.equity_tests(part, scores[place, i].tolist())

    fast = rate(SYSTEMS, ours)
    slow = rate(_FEW_SYSTEMS, theirs)
    note = f"{SYSTEMS:,} systems in {SYSTEMS / fast:.1f} s (asked: 10), each on its own as a partition is"
    missed = (
        "plainly two t tests a system; here 40 rows with 9,999 permutations and their inversion, units and names, beside "
        "which a partition's own start takes longer"
    )
    return [Ratio("equity statistics", "systems", slow, fast, 100 / slow, note, missed)]
