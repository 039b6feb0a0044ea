"""Arrow schemas, written once and held at every write."""

import pyarrow as pa


def schema(**columns: pa.DataType) -> pa.Schema:
    """A schema whose columns always have a value."""
    return pa.schema([pa.field(name, kind, nullable=False) for name, kind in columns.items()])


COLUMNS = {
    "corpus": "the corpus's key: its file in data/corpora",
    "dimension": "the dimension's key: its file in data/dimensions",
    "measure": "what is compared",
    "unit": "of values and differences: percent (a difference is in percentage points), count_per_response or score",
    "n": "pairs compared",
    "value_a": "the measure's value on side a, the dominant group",
    "value_b": "the measure's value on side b",
    "difference": "side a minus side b, in `unit`",
    "difference_percent": "the difference as a percentage of side a's value, as the papers print it",
    "ci_low": "lower end of the 95% interval of the paired difference",
    "ci_high": "upper end of the 95% interval of the paired difference",
    "test": "the paper's own test",
    "statistic": "its statistic",
    "p": "its p value",
    "p_holm": "the p on which the verdict rests, adjusted by Holm over the table's measures",
    "p_bh": "the same, adjusted by Benjamini and Hochberg",
    "paired_test": "the test that respects the pairs",
    "paired_statistic": "its statistic",
    "p_paired": "its p value",
    "effect_size": "Cohen's h of rates, d of counts and scores",
    "margin": "the largest difference that does not matter, in `unit`",
    "p_equivalence": "p of the two one-sided tests that the difference lies inside the margin",
    "minimum_detectable": "the true difference that would be found with 80% power at the level",
    "verdict": "fair, biased, artefact (a control shows the difference too) or inconclusive",
    "paper_verdict": "fair or biased, by the paper's own test at the level",
    "published_value_a": "what a paper prints for side a, where it has this comparison",
    "published_value_b": "what a paper prints for side b",
    "published_p": "the p value as printed",
    "pairs_needed": "pairs like these that would show fairness four times in five, if the sides did not differ",
    "beyond_margin": "whether the whole 95% interval lies beyond the margin",
    "p_wilcoxon": "p of Wilcoxon's signed rank test on the paired differences",
    "p_clusters": "p of the test that takes what moves together (all pairs of a word) for one observation",
    "clusters": "how many of these there are",
    "effective_clusters": "how many of one size would weigh as much",
    "clusters_needed": "clusters like these that would show fairness four times in five, if the sides did not differ",
    "note": "why something has no value, or is to be read with care",
    "side": "a (the dominant group) or b",
}
"""What the columns that studies share hold; a study describes its own."""
