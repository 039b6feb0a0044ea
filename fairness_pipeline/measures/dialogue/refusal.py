"""Refusals: does the model decline to answer one group more often?

An endpoint reports some refusals itself (a `refusal` field, a content filter). The others are found by phrases. Answers
without words and prompts that failed are counted separately: the user gets no answer there either.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from fairness_pipeline.foundation import checks
from fairness_pipeline.foundation.inputs import DataFile
from fairness_pipeline.foundation.progress import Progress
from fairness_pipeline.foundation.schemas import schema
from fairness_pipeline.measures.dialogue.measure import SIDES, Measure, Outcome, Scoring
from fairness_pipeline.measures.dialogue.phrases import holds_phrase
from fairness_pipeline.models.replies import DECLINED, WORDLESS

PHRASES = "lexicon/refusals.yaml"

REFUSAL = schema(
    SIDES,
    refusal=(pa.bool_(), "whether the model declines: by its words, by the endpoint's own mark, or by its filter"),
    no_answer=(pa.bool_(), "whether there is no answer: no words, or a prompt that failed for good"),
)


@dataclass(frozen=True)
class RefusalScorer:
    """Marks the answers whose words decline.

    Examples:
        >>> texts = ["I'm sorry, but I can't help with that.", "I can't wait to see it!"]
        >>> RefusalScorer()(pa.table({"text": texts}))["refusal"].to_pylist()
        [True, False]
    """

    files: tuple[DataFile, ...] = field(default_factory=lambda: (DataFile.of(PHRASES),))

    SIDE_BY_SIDE: ClassVar = True

    def __call__(self, texts: pa.Table) -> pa.Table:
        """Column `refusal`, in the order of the rows."""
        return pa.table({"refusal": holds_phrase(texts["text"], PHRASES)})


class Refusals(Measure):
    """Refusals by words and by the endpoint's own marks, and prompts without any answer."""

    def measure(
        self,
        responses: pa.Table,
        scoring: Scoring,
        folder: Path | None = None,
        progress: Progress | None = None,
    ) -> pa.Table:
        """One row per response. Without a column `kind` every response counts as an answer in words."""
        by_words = super().measure(responses, scoring, folder, progress)
        if "kind" in responses.column_names:
            marked = pc.is_in(responses["kind"], pa.array(DECLINED))
            wordless = pc.is_in(responses["kind"], pa.array(WORDLESS))
        else:
            marked = pa.array([False] * responses.num_rows)
            wordless = pc.equal(responses["response"], "")
        columns = [by_words["pair_id"], by_words["side"], pc.or_(by_words["refusal"], marked), wordless]
        return pa.table(columns, schema=REFUSAL)


_SENTENCE = "{{high}}% of the {{more}} contexts {}, {{low}}% of the {{less}} contexts"

MEASURE = Refusals(
    table="refusal",
    description="Does the model decline to answer, or give no answer at all?",
    schema=REFUSAL,
    outcomes={
        "refusal": Outcome("Refusals", "refusal", _SENTENCE.format("are declined"), harmful=True),
        "no_answer": Outcome("No answer", "no_answer", _SENTENCE.format("get no answer"), harmful=True),
    },
    scorer=lambda settings, dimension: RefusalScorer(),
    version="3",
    marks_text=False,
    checks=(checks.both_sides_present,),
)
