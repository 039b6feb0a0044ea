"""Phrases that an answer may hold: files of `data/lexicon` with regular expressions, each held to labelled answers."""

import re
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pydantic

from fairness_pipeline.foundation.guard import read_once
from fairness_pipeline.foundation.yaml_files import Specification, load


class Phrases(Specification):
    """The file of phrases."""

    groups: dict[str, str]
    """Alternatives, by a name in capitals that stands for them in the patterns."""
    patterns: str
    """Regular expressions over a folded answer, one a line, one of which must be found."""
    negations: str = ""
    """Regular expressions, one a line; what follows one of them within a few words of its clause says the opposite."""

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
        for name, own in self.groups.items():
            joined = joined.replace(name, own)
        return joined


def _either(patterns: str) -> str:
    return "|".join(f"(?:{pattern})" for pattern in patterns.splitlines())


class _Known(NamedTuple):
    """The phrases, an RE2 expression without their exceptions, which every answer that holds one matches, and what is
    negated, if anything is."""

    phrases: re.Pattern[str]
    likely: str
    negated: re.Pattern[str] | None

    def held_by(self, text: str) -> bool:
        """Whether a folded text holds a phrase that is not negated."""
        return any(
            self.negated is None or self.negated.search(text, max(0, match.start() - _BEFORE), match.start()) is None
            for match in self.phrases.finditer(text)
        )


def _phrases(path: Path) -> _Known:
    found = load(Phrases, path)
    expression = found.expression
    likely = re.sub(r"\(\?<?!(?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)", "", expression)
    likely = re.sub(r"(?<=\])\{0,\d+\}", "*", likely)
    behind = rf"\b(?:{_either(found.negations)})(?:[^\w.,:;!?]+[\w']+){{0,{_CLOSE}}}[^\w.,:;!?]*\Z"
    return _Known(re.compile(expression), likely, re.compile(behind) if found.negations else None)


_BEFORE, _CLOSE = 60, 3
"""Characters before a phrase, and words in them, in which a negation is looked for."""
_QUOTED = re.compile(r"```.*?```|\"[^\"]*\"", re.DOTALL)
"""What is quoted is not what the model says of itself."""


def holds_phrase(texts: pa.Array | pa.ChunkedArray, name: str) -> pa.Array:
    """Whether each text holds one of the phrases of a data file, outside what it quotes.

    Args:
        texts: The texts.
        name: The file, in a data folder.
    """
    known = read_once(name, _phrases)
    plain = pc.replace_substring_regex(pc.utf8_lower(texts), "[“”]", '"')
    plain = pc.replace_substring_regex(pc.replace_substring(plain, "’", "'"), r"\s+", " ")
    found = [
        may and known.held_by(_QUOTED.sub(" ", text) or text)
        for may, text in zip(pc.match_substring_regex(plain, known.likely).to_pylist(), plain.to_pylist(), strict=True)
    ]
    return pa.array(found, pa.bool_())
