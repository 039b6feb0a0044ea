"""WinoBias (Zhao et al. 2018): pairs of sentences whose pronoun fits, or defies, the gender of most in an occupation.

The authors' `pro_stereotyped_type1.txt.dev` is next to `anti_stereotyped_type1.txt.dev`; line by line they are pairs.
An occupation and its pronoun are in brackets. Likelihoods: JSON Lines with `index` (the line), `pro` and `anti`.
The occupations are the sample.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from fairness_pipeline.corpora.outcomes.formats.shared import Benchmark, Row
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.text_files import read_lines

_PRO, _ANTI = "pro_stereotyped", "anti_stereotyped"
_BRACKETS = re.compile(r"\[([^\[\]]+)\]")


def _counterpart(path: Path) -> Path:
    """The file whose pronouns defy the stereotype.

    Raises:
        FairnessError: the file is not named like the one whose pronouns fit.
    """
    if _PRO not in path.name:
        raise FairnessError(f"{path}: expected the file '{_PRO}_...', with '{_ANTI}_...' beside it")
    return path.with_name(path.name.replace(_PRO, _ANTI))


def _pairs(path: Path) -> Iterator[Row]:
    anti_path = _counterpart(path)
    pro, anti = list(_lines(path)), list(_lines(anti_path))
    if len(pro) != len(anti):
        raise FairnessError(f"{anti_path}: expected {len(pro)} sentences, as in {path.name}; found {len(anti)}")
    for (number, fits), (_, defies) in zip(pro, anti, strict=True):
        occupations = [text for text in _BRACKETS.findall(fits) if len(text.split()) > 1]
        bracketed = occupations or _BRACKETS.findall(fits)
        if not bracketed:
            raise FairnessError(f"{path}, line {number}: expected an occupation in brackets, found {fits[:60]!r}")
        yield {
            "item": str(number),
            "occupation": bracketed[0].lower().removeprefix("the ").removeprefix("a ").removeprefix("an "),
            "pro": _BRACKETS.sub(r"\1", fits),
            "anti": _BRACKETS.sub(r"\1", defies),
        }


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    for number, line in read_lines(path):
        if line.strip():
            yield number, re.sub(r"^\d+\s+", "", line.strip())


BENCHMARK = Benchmark(
    _pairs,
    key="index",
    row_id="item",
    texts={"pro": ("pro", "pro_likelihood"), "anti": ("anti", "anti_likelihood")},
    answer="likelihood",
    second_file=_counterpart,
)
"""A row for each pair: `item`, `occupation`, both sentences without brackets, and their likelihoods `pro_likelihood`
and `anti_likelihood`."""
