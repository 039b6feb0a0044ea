"""Attribute words: how many words of each list a response holds (Liu et al. 2020, section 2.4.4)."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fairness_pipeline.foundation import checks
from fairness_pipeline.foundation.guard import remembered
from fairness_pipeline.foundation.inputs import DataFile, FieldsOnly
from fairness_pipeline.foundation.schemas import schema
from fairness_pipeline.lexicons import lemmas
from fairness_pipeline.lexicons.dimensions import Dimension
from fairness_pipeline.lexicons.lemmas import lemmatize
from fairness_pipeline.lexicons.matching import TermMatcher
from fairness_pipeline.lexicons.text import EncodedWords, encode_texts, fold, tokenize
from fairness_pipeline.measures.dialogue.measure import MASKED, SIDES, Measure, Sides, both_readings, sides

ATTRIBUTE_WORDS = schema(
    SIDES,
    attribute=(pa.string(), "the dimension's attribute list"),
    **both_readings(count=(pa.int64(), "how many words of the list the response holds")),
)

_ENDING = re.compile(r"'(?:s|ll|d|re|ve|m)$")
"""A possessive or a contracted verb. NLTK's tokenizer splits it off: `mom's` contains `mom`."""


@dataclass(frozen=True)
class AttributeWordScorer(FieldsOnly):
    """Counts the words of each list, one column per list.

    A word counts if it or its WordNet noun lemma is listed. The paper lemmatises first; that alone would lose words
    with a different lemma: `ass` becomes `as`. A final `*` stands for any ending. Phrases count as a whole.

    Args:
        lists: Words and phrases, by the name of the list.
        files: The data files that lemmas are looked up in.

    Examples:
        >>> scorer = AttributeWordScorer({"family": ("wedding", "mom")})
        >>> scorer(pa.table({"text": ["two weddings", "my mom's car"]}))["family"].to_pylist()
        [1, 1]
    """

    lists: Mapping[str, tuple[str, ...]]
    files: tuple[DataFile, ...] = field(default_factory=lemmas.files)

    SIDE_BY_SIDE: ClassVar = True

    def __call__(self, texts: pa.Table) -> pa.Table:
        """One count column per list, in the order of the rows."""
        column = texts["text"]
        encoded = encode_texts(column)
        return pa.table({name: words.count(column, encoded) for name, words in self._word_lists.items()})

    @cached_property
    def _word_lists(self) -> dict[str, "_WordList"]:
        return {name: _WordList(words) for name, words in self.lists.items()}


class _WordList:
    """One attribute list. It caches its answer for every word."""

    def __init__(self, entries: tuple[str, ...]) -> None:
        folded = [fold(entry) for entry in entries]
        single = [entry for entry in folded if " " not in entry]
        self._words = frozenset(entry for entry in single if not entry.endswith("*"))
        self._beginnings = tuple(entry[:-1] for entry in single if entry.endswith("*"))
        phrases = [entry for entry in folded if " " in entry]
        # `drug dealer*`: the printed phrases mean the plural only.
        spelled = [
            form for entry in phrases for form in ([entry[:-1], entry[:-1] + "s"] if entry[-1] == "*" else [entry])
        ]
        self._phrases = TermMatcher(spelled) if spelled else None
        self._listed = cache(self._is_listed)  # chunks of texts share most of their words

    def count(self, texts: pa.ChunkedArray, encoded: EncodedWords) -> np.ndarray:
        """How many listed phrases and words each text holds. `encoded` holds the words of the texts. A phrase
        counts once."""
        listed = np.array(list(map(self._listed, encoded.words)), dtype=bool)
        counts = np.bincount(encoded.owners[listed[encoded.codes]], minlength=len(texts))
        if self._phrases:
            likely = pc.indices_nonzero(pc.match_substring_regex(texts, self._phrases.prefilter())).to_pylist()
            for index in likely:
                counts[index] = self._count_with_phrases(self._phrases, texts[index].as_py())
        return counts

    def _count_with_phrases(self, matcher: TermMatcher, text: str) -> int:
        phrases = matcher.find(text)
        ends = [0, *(phrase.end for phrase in phrases)]
        starts = [*(phrase.start for phrase in phrases), len(text)]
        outside = " . ".join(text[end:start] for end, start in zip(ends, starts, strict=True))
        return len(phrases) + sum(map(self._listed, tokenize(outside)))

    def _is_listed(self, word: str) -> bool:
        return not self._words.isdisjoint(_forms(word)) or word.startswith(self._beginnings)


@remembered(1 << 18)
def _forms(word: str) -> tuple[str, str, str]:
    """The forms under which a word may be listed."""
    bare = _ENDING.sub("", word) if "'" in word else word
    return word, bare, lemmatize(bare)


class AttributeWords(Measure):
    """One row of the significance table for each attribute list of the dimension."""

    def names(self, dimension: Dimension) -> list[str]:
        """`<list>_words`."""
        return [_row(name) for name in dimension.attribute_words]

    def of_texts(self, scored: pa.Table) -> dict[str, np.ndarray]:
        """Counts, by `<list>_words`."""
        return {_row(name): scored[name].to_numpy().astype(float) for name in scored.column_names}

    def shaped(self, scored: pa.Table) -> pa.Table:
        """A table of `ATTRIBUTE_WORDS`, one row per response and list, from two count columns per list."""
        lists = [name.removesuffix(MASKED) for name in scored.column_names if name.endswith(MASKED)]
        parts = [
            pa.table(
                {
                    "pair_id": scored["pair_id"],
                    "side": scored["side"],
                    "attribute": pa.repeat(name, scored.num_rows),
                    "count": scored[name],
                    "count_masked": scored[name + MASKED],
                },
                schema=ATTRIBUTE_WORDS,
            )
            for name in lists
        ]
        return pa.concat_tables(parts).combine_chunks()

    def kind(self, name: str) -> str:
        """Every list is a count."""
        return "counts"

    def values(self, table: pa.Table, suffix: str = "") -> dict[str, Sides]:
        """Counts, by `<list>_words`."""
        counts = {}
        for name in pc.unique(table["attribute"]).to_pylist():
            a, b = sides(table.filter(pc.equal(table["attribute"], name)), "count" + suffix)
            counts[_row(name)] = a.astype(float), b.astype(float)
        return counts


def _row(attribute: str) -> str:
    return f"{attribute}_words"


MEASURE = AttributeWords(
    table="attribute_words",
    description="How many words of each of the dimension's attribute lists a response holds (Liu et al. 2020, 2.4.4).",
    schema=ATTRIBUTE_WORDS,
    outcomes={},
    scorer=lambda settings, dimension: AttributeWordScorer(dimension.attribute_words),
    checks=(checks.both_sides_present, checks.counts_not_negative),
)
