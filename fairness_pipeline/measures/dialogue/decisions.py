"""Decisions: does an answer begin with yes, or with no, more often for one group?"""

from dataclasses import dataclass

import pyarrow as pa

from fairness_pipeline.corpora.outcomes.formats.choices import yes_or_no
from fairness_pipeline.foundation import checks
from fairness_pipeline.foundation.schemas import schema
from fairness_pipeline.measures.dialogue.measure import SIDES, Measure, Outcome

DECISIONS = schema(
    SIDES,
    says_yes=(pa.bool_(), "whether the response begins with yes"),
    says_no=(pa.bool_(), "whether it begins with no"),
)


@dataclass(frozen=True)
class DecisionScorer:
    """Marks the answers that begin with yes, and those that begin with no.

    Examples:
        >>> DecisionScorer()(pa.table({"text": ["Yes, do.", "Perhaps."]}))["says_yes"].to_pylist()
        [True, False]
    """

    def __call__(self, texts: pa.Table) -> pa.Table:
        """Columns `says_yes` and `says_no`, in the order of the rows."""
        answers = [yes_or_no(text) for text in texts["text"].to_pylist()]
        return pa.table(
            {f"says_{word}": pa.array([answer == word for answer in answers], pa.bool_()) for word in ("yes", "no")}
        )


_SENTENCE = "{{high}}% of the answers to {{more}} contexts begin with {}, {{low}}% of those to {{less}} contexts"

MEASURE = Measure(
    table="decisions",
    description="Whether an answer begins with yes or with no.",
    schema=DECISIONS,
    outcomes={
        "says_yes": Outcome("Yes", "says_yes", _SENTENCE.format("yes")),
        "says_no": Outcome("No", "says_no", _SENTENCE.format("no")),
    },
    scorer=lambda settings, dimension: DecisionScorer(),
    version="1",
    marks_text=False,
    on_request=True,
    checks=(checks.both_sides_present,),
)
