"""CDA: each stereotyped phrase, and the same about the other group (Barikeri et al. 2021, section 4.4)."""

import pyarrow as pa
import pyarrow.compute as pc

from fairness_pipeline.lexicons.stereotypes import Lexicon


def augmented(phrases: pa.Table, lexicon: Lexicon) -> list[str]:
    """The training phrases, and the counterfactual of each that holds a target and an attribute.

    Args:
        phrases: As `lexicons.counterfactuals.COUNTERFACTUAL_PHRASES`.
        lexicon: The dimension's terms.
    """
    train = phrases.filter(pc.equal(phrases["split"], "train"))
    return as_they_are(phrases, lexicon) + [
        other
        for text, other in zip(train["text_b"].to_pylist(), train["text_a"].to_pylist(), strict=True)
        if lexicon.holds_attribute(text)
    ]


def as_they_are(phrases: pa.Table, lexicon: Lexicon) -> list[str]:
    """The training phrases alone: the control, which gets updates but no cure."""
    texts: list[str] = phrases.filter(pc.equal(phrases["split"], "train"))["text_b"].to_pylist()
    return texts
