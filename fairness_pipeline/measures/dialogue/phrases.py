"""Finds phrases in answers, by the regular expressions of files in `data/lexicon`; labelled answers test each file."""

import re
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pydantic

from fairness_pipeline.foundation.guard import read_once
from fairness_pipeline.foundation.yaml_files import Specification, load
from fairness_pipeline.measures.dialogue.text import WHITE_SPACE


class Phrases(Specification):
    """A file of phrases."""

    groups: dict[str, str]
    """Alternatives, by the name in capitals that represents them in the patterns."""
    patterns: str
    """Regular expressions over a folded answer, one per line. One of them must match."""
    negations: str = ""
    """Regular expressions, one per line. A phrase is negated if it follows one within a few words of a clause."""

    @pydantic.field_validator("patterns", "negations")
    @classmethod
    def _compile(cls, patterns: str) -> str:
        for pattern in patterns.splitlines():
            try:
                re.compile(pattern)
            except re.error as error:
                raise ValueError(f"'{pattern}': no regular expression: {error}") from None
        return patterns

    @property
    def expression(self) -> str:
        """One expression for all patterns."""
        joined = _either(self.patterns)
        for name, alternatives in self.groups.items():
            joined = joined.replace(name, alternatives)
        return joined


def _either(patterns: str) -> str:
    return "|".join(f"(?:{pattern})" for pattern in patterns.splitlines())


class _Compiled(NamedTuple):
    """The phrases; an RE2 expression without their exceptions, which matches wherever a phrase begins; and the
    negations, if there are any."""

    phrases: re.Pattern[str]
    likely: str
    negated: re.Pattern[str] | None

    def held_by(self, text: str, start: int) -> bool:
        """Whether a folded text holds, from `start` on, a phrase that is not negated."""
        return any(
            self.negated is None or self.negated.search(text, max(0, match.start() - _BEFORE), match.start()) is None
            for match in self.phrases.finditer(text, start)
        )


def _phrases(path: Path) -> _Compiled:
    specification = load(Phrases, path)
    expression = specification.expression
    likely = re.sub(r"\(\?<?!(?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)", "", expression)
    likely = re.sub(r"(?<=\])\{0,\d+\}", "*", likely)
    behind = rf"\b(?:{_either(specification.negations)})(?:[^\w.,:;!?]+[\w']+){{0,{_CLOSE}}}[^\w.,:;!?]*\Z"
    return _Compiled(re.compile(expression), likely, re.compile(behind) if specification.negations else None)


_BEFORE, _CLOSE = 60, 3
"""The number of characters before a phrase, and of words among them, in which a negation is searched for."""
_QUOTED = r'(?s)```.*?```|"[^"]*"'
"""Quoted text is not the model's own statement."""


def holds_phrase(texts: pa.Array | pa.ChunkedArray, name: str) -> pa.Array:
    """Whether each text holds one of the phrases of a data file, outside its quotations."""
    compiled = read_once(name, _phrases)
    plain = pc.replace_substring_regex(pc.utf8_lower(texts), "[“”]", '"')
    plain = pc.replace_substring_regex(pc.replace_substring(plain, "’", "'"), f"{WHITE_SPACE}+", " ")
    plain = pc.replace_substring_regex(plain, _QUOTED, " ")
    # RE2's words are of ASCII letters. With a byte for each character, its places are those of the characters, too.
    in_ascii = pc.replace_substring_regex(plain, r"[^\x00-\x7f\pL\pN]", "~")
    in_ascii = pc.replace_substring_regex(in_ascii, r"[^\x00-\x7f]", "x")
    begins = np.asarray(pc.find_substring_regex(in_ascii, compiled.likely).fill_null(-1))
    held = begins >= 0
    likely = np.flatnonzero(held)
    for index, begin, text in zip(likely, begins[likely].tolist(), plain.take(likely).to_pylist(), strict=True):
        held[index] = compiled.held_by(text, begin)
    return pa.array(held)
