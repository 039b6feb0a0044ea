"""CDA: adds to each stereotyped phrase the same about the other group (Barikeri et al. 2021, section 4.4)."""

import pyarrow as pa
import pyarrow.compute as pc

from fairness_pipeline.lexicons.stereotypes import Lexicon


def augmented(phrases: pa.Table, lexicon: Lexicon) -> list[str]:
    """`COUNTERFACTUAL_PHRASES` to train on, and the counterfactual of each that holds a target and an attribute."""
    return _twice(phrases, lexicon, "text_a")


def as_they_are(phrases: pa.Table, lexicon: Lexicon) -> list[str]:
    """The training phrases twice: the control, which gets CDA's updates without its counterfactuals."""
    return _twice(phrases, lexicon, "text_b")


def _twice(phrases: pa.Table, lexicon: Lexicon, column: str) -> list[str]:
    train = phrases.filter(pc.equal(phrases["split"], "train"))
    texts: list[str] = train["text_b"].to_pylist()
    additions = zip(texts, train[column].to_pylist(), strict=True)
    return texts + [addition for text, addition in additions if lexicon.holds_attribute(text)]
