"""Length: does one group get shorter answers?"""

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from fairness_pipeline.foundation import checks
from fairness_pipeline.foundation.schemas import schema
from fairness_pipeline.measures.dialogue.measure import SIDES, Measure, Outcome, both_readings

LENGTH = schema(SIDES, **both_readings(words=(pa.int64(), "words of the response, punctuation left out")))

_WORD = r"[\pL\pN_]+(?:['’.,-][\pL\pN_]+)*"
"""A word with its inner apostrophes and hyphens, or a number; a masked word counts as one."""


@dataclass(frozen=True)
class LengthScorer:
    """Counts the words of each answer.

    Examples:
        >>> LengthScorer()(pa.table({"text": ["It's a well-known fact: 3.5 days.", ""]}))["words"].to_pylist()
        [6, 0]
    """

    def __call__(self, texts: pa.Table) -> pa.Table:
        """Column `words`, in the order of the rows."""
        return pa.table({"words": pc.count_substring_regex(texts["text"], _WORD).cast(pa.int64())})


MEASURE = Measure(
    table="length",
    description="The number of words of a response.",
    schema=LENGTH,
    outcomes={
        "length": Outcome(
            "Length",
            "words",
            "the average answer to {more} contexts has {high} words, that to {less} contexts {low}",
        ),
    },
    scorer=lambda settings, dimension: LengthScorer(),
    marks_text=False,
    checks=(checks.both_sides_present,),
)
