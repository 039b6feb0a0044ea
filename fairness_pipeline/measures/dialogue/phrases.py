"""Phrases that an answer may hold: files of `data/lexicon` with regular expressions, each held to labelled answers."""

import re
from pathlib import Path

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

    @pydantic.field_validator("patterns")
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
        joined = "|".join(f"(?:{pattern})" for pattern in self.patterns.splitlines())
        for name, own in self.groups.items():
            joined = joined.replace(name, own)
        return joined


def _phrases(path: Path) -> tuple[re.Pattern[str], str]:
    """The phrases, and an RE2 expression without their exceptions, which every answer that holds one matches."""
    expression = load(Phrases, path).expression
    likely = re.sub(r"\(\?!(?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)", "", expression)
    return re.compile(expression), re.sub(r"(?<=\])\{0,\d+\}", "*", likely)


_QUOTED = re.compile(r"```.*?```|\"[^\"]*\"", re.DOTALL)
"""What is quoted is not what the model says of itself."""


def holds_phrase(texts: pa.Array | pa.ChunkedArray, name: str) -> pa.Array:
    """Whether each text holds one of the phrases of a data file, outside what it quotes.

    Args:
        texts: The texts.
        name: The file, in a data folder.
    """
    phrases, likely = read_once(name, _phrases)
    plain = pc.replace_substring_regex(pc.utf8_lower(texts), "[“”]", '"')
    plain = pc.replace_substring_regex(pc.replace_substring(plain, "’", "'"), r"\s+", " ")
    found = [
        may and phrases.search(_QUOTED.sub(" ", text) or text) is not None
        for may, text in zip(pc.match_substring_regex(plain, likely).to_pylist(), plain.to_pylist(), strict=True)
    ]
    return pa.array(found, pa.bool_())
