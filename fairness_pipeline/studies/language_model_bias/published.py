"""Reads the paper's tables, for comparison with ours."""

from fairness_pipeline.measures.language.phrase_bias import PAPER
from fairness_pipeline.workspace.published import rows

TABLES = ("redditbias_bias_findings", "redditbias_counts", "redditbias_downstream", "redditbias_perplexities")
"""Files of `data/published`."""
DATA = {"state_tracking": "MultiWOZ 2.0", "responses": "DSTC-7"}
"""The data sets of the paper's downstream tasks (section 3.2)."""
DOUBTFUL = "crg_nist2"
"""The paper's tables of NIST-2 and METEOR have the same values, so that one of them is wrong; which one is unknown."""


def findings(model: str | None, dimension: str) -> dict[str, str]:
    """The finding of section 5.2 on a model's bias, by our measure: `p < 0.05` or `not significant`."""
    for row in rows("redditbias_bias_findings"):
        if (row["model"], row["dimension"]) == (model, dimension) and row["significant_stereotypical_bias"]:
            return {PAPER: "p < 0.05" if row["significant_stereotypical_bias"] == "yes" else "not significant"}
    return {}


def downstream(model: str | None, dimension: str | None) -> dict[str, float]:
    """The values of tables 4, 5 and appendix C for a model, by metric; a base has the same values in all dimensions."""
    return {
        row["metric"]: float(row["value"])
        for row in rows("redditbias_downstream")
        if row["model"] == model and dimension in (None, row["dimension"])
    }


def counts(dimension: str) -> dict[str, str] | None:
    """Table 3's row of a dimension, if it has one."""
    return next((row for row in rows("redditbias_counts") if row["dimension"] == dimension), None)
