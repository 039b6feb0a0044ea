"""Study 3: does a sentiment or emotion system score a sentence differently when only the person in it changes?"""

from fairness_pipeline.corpora.equity_sentences import GROUPS, PUBLISHED
from fairness_pipeline.lake import Key, Row
from fairness_pipeline.measures.equity_pairs import ALL
from fairness_pipeline.models.sentiment.specification import AFFECTS
from fairness_pipeline.project import Project
from fairness_pipeline.studies.sentiment_equity.profile import EquityPart, SentimentEquity
from fairness_pipeline.study import Study


def _finding(project: Project, key: Key, row: Row) -> str:
    more, less = GROUPS[key["dimension"]][:: 1 if row["difference"] > 0 else -1]
    return (
        f"{key['system']}: sentences about {more} persons score {abs(row['difference']):.3g} higher in {row['affect']} "
        f"than the same about {less} persons"
    )


STUDY = Study(
    name="sentiment_equity",
    title="Sentiment equity",
    section=SentimentEquity,
    part=EquityPart,
    subject="system",
    table="equity_significance",
    report="equity_report",
    asked="equity_scores",
    identity=("dimension", "system", "affect", "templates", "subset"),
    shown=(
        "dimension", "system", "affect", "templates", "subset", "n", "value_a", "value_b", "difference", "ci_low",
        "ci_high", "p_holm", "verdict", "p",
    ),
    headings=AFFECTS,
    heading=lambda row: row["affect"],
    label=lambda row: row["affect"],
    groups=lambda project, key: GROUPS[key["dimension"]],
    finding=_finding,
    gated=lambda row: (row["templates"], row["subset"]) == (PUBLISHED, ALL),
)  # fmt: skip
