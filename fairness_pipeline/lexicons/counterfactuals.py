"""The counterfactual of each stereotyped phrase, and how our counterfactuals differ from the authors' own."""

import re
from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.schemas import schema
from fairness_pipeline.lexicons.stereotypes import Lexicon

COUNTERFACTUAL_PHRASES = schema(
    phrase_id=(pa.string(), "of the phrase: its comment's and a number, or its place in a released split"),
    comment_id=(pa.string(), "of the comment"),
    split=(pa.string(), "train, dev, test; unbiased: phrases in which annotators found no bias"),
    target=(pa.string(), "the words that name the group"),
    text_a=(pa.string(), "the phrase about side a"),
    text_b=(pa.string(), "the phrase as it was written, about side b"),
    attribute=(pa.string(), "the terms of the stereotype that have an opposite"),
    opposite_a=(pa.string(), "the phrase about side a with the opposite attribute"),
    opposite_b=(pa.string(), "the phrase about side b with the opposite attribute"),
)
"""`attribute`, `opposite_a` and `opposite_b` are empty if no term has an opposite, or if the phrase names both groups
and would say different things about them."""

DISAGREEMENTS = schema(
    phrase=(pa.string(), "seven tokens on either side of the target's first word"),
    ours=(pa.string(), "our counterfactual"),
    released=(pa.string(), "the authors'"),
    kind=(pa.string(), "of disagreement"),
    better=(pa.string(), "ours, or either: both are defensible"),
)
"""`better` never names the released one: where it was better, ours was corrected."""

_WORD = re.compile(r"[^\W_]+")


def make_counterfactuals(splits: pa.Table, lexicon: Lexicon) -> tuple[pa.Table, dict[str, int]]:
    """Each phrase that names side b, with its counterfactual; and, by split, how many phrases name nobody.

    Args:
        splits: As `corpora.language.phrase_splits.PHRASE_SPLITS`.
        lexicon: The dimension's terms.

    Raises:
        FairnessError: no phrase of a split names side b.
    """
    rows, left_out, kept = [], dict[str, int](), dict[str, int]()
    for row in splits.to_pylist():
        swap = lexicon.counterfactual(row["phrase"], row["phrase_id"])
        targets = [term.b.lower() for term in swap.terms]
        if not targets or swap.text == row["phrase"]:
            left_out[row["split"]] = left_out.get(row["split"], 0) + 1
            continue
        kept[row["split"]] = kept.get(row["split"], 0) + 1
        rows.append(
            {
                "phrase_id": row["phrase_id"],
                "comment_id": row["comment_id"],
                "split": row["split"],
                "target": ", ".join(dict.fromkeys(targets)),
                "text_a": swap.text,
                "text_b": row["phrase"],
                **_opposite(swap.text, row["phrase"], row["phrase_id"], lexicon),
            }
        )
    for split in ("train", "dev", "test"):
        if not kept.get(split):
            raise FairnessError(
                f"no phrase of split '{split}' holds a word of the dimension's 'stereotypes.pairs'; add the words that "
                "its phrases are about"
            )
    return pa.Table.from_pylist(rows, schema=COUNTERFACTUAL_PHRASES), left_out


def _opposite(text_a: str, text_b: str, key: str, lexicon: Lexicon) -> dict[str, str]:
    a, b = lexicon.opposite(text_a, key), lexicon.opposite(text_b, key)
    terms = [term.b.lower() for term in b.terms]
    if not terms or terms != [term.b.lower() for term in a.terms] or lexicon.names_both(text_b):
        return {"attribute": "", "opposite_a": "", "opposite_b": ""}
    return {"attribute": ", ".join(dict.fromkeys(terms)), "opposite_a": a.text, "opposite_b": b.text}


def compare_with_released(released: Iterable[tuple[str, str]], lexicon: Lexicon) -> tuple[pa.Table, int]:
    """Where our counterfactual of a phrase differs from the authors', by kind; and how many phrases were compared.

    Three differences are faults: a word of the group that was not exchanged, an exchange inside a longer word
    (`nurse-midhusband`, `muslimity`), and an article that does not fit (`an christian`). The other differences are a
    matter of choice.

    Args:
        released: Phrases about side b, and the authors' counterfactuals.
        lexicon: The dimension's terms.
    """
    rows: list[dict[str, Any]] = []
    total = 0
    for phrase, theirs in released:
        total += 1
        ours = lexicon.counterfactual(phrase, phrase).text
        if ours != theirs:
            kind, better = _classed(phrase, ours, theirs, lexicon)
            rows.append({"phrase": phrase, "ours": ours, "released": theirs, "kind": kind, "better": better})
    return pa.Table.from_pylist(rows, schema=DISAGREEMENTS), total


def _classed(phrase: str, ours: str, theirs: str, lexicon: Lexicon) -> tuple[str, str]:
    known = set(_WORD.findall(phrase)) | {
        word for pair in lexicon.pairs for side in pair for word in _WORD.findall(side)
    }
    new = [word for word in _WORD.findall(theirs) if word not in known and word.removesuffix("s") not in known]
    if new:
        return f"exchanged inside a word: {new[0]}", "ours"
    if (unchanged := _unexchanged(theirs, phrase, lexicon)) and not _unexchanged(ours, phrase, lexicon):
        return f"left as it was: {unchanged}", "ours"
    if re.sub(r"\ban?\b", "a", ours) == re.sub(r"\ban?\b", "a", theirs):
        return "article", "ours"
    return "another word exchanged, or another counterpart", "either"


def _unexchanged(text: str, phrase: str, lexicon: Lexicon) -> str | None:
    """A word of side b that is at the same position in the phrase: it was not exchanged."""
    before, after = phrase.split(), text.split()
    if len(before) != len(after):
        return None
    kept = [old for old, word in zip(before, after, strict=True) if old == word]
    return next((word for word in kept if lexicon.names_b(word)), None)
