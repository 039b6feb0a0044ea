"""WinoGender (Rudinger et al. 2018): sentences that differ in one pronoun, about 60 occupations, which are the sample.

The authors' `all_sentences.tsv` names each by occupation, other participant, whom the pronoun means (0: the
occupation) and gender; `occupations-stats.tsv` beside it has the share of women. Likelihoods: JSON Lines with `sentid`
and `log_likelihood`.

Any model finds frequent pronouns likelier. `stereotype` is therefore how much likelier `she` is than `he` in an item,
minus the mean over all items of the same reading, with the sign of the majority in the occupation.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from fairness_pipeline.corpora.outcomes.formats.shared import MODEL, Benchmark, Row, needed
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.text_files import read_lines

_NAME_PARTS = 5
_SENTENCES, _STATISTICS = "all_sentences", "occupations-stats"


def _counterpart(path: Path) -> Path:
    """The file with the share of women in each occupation.

    Raises:
        FairnessError: the file is not named like the authors' sentences.
    """
    if _SENTENCES not in path.name:
        raise FairnessError(f"{path}: expected the file '{_SENTENCES}...', with '{_STATISTICS}...' beside it")
    return path.with_name(path.name.replace(_SENTENCES, _STATISTICS))


def _sentences(path: Path) -> Iterator[Row]:
    for number, line in read_lines(path):
        if number == 1 or not line:
            continue
        name, tab, sentence = line.partition("\t")
        parts = name.split(".")
        if not tab or len(parts) != _NAME_PARTS:
            raise FairnessError(
                f"{path}, line {number}: expected occupation.participant.answer.gender.txt, a tab, a sentence; found "
                f"{line[:60]!r}"
            )
        occupation, participant, meant, gender, _ = parts
        yield {
            "id": name,
            "item": f"{occupation}.{participant}.{meant}",
            "occupation": occupation,
            "means": "occupation" if meant == "0" else "participant",
            "gender": gender,
            "sentence": sentence,
        }


def _shares(path: Path) -> dict[str, float]:
    """The percentage of women in each occupation (U.S. Bureau of Labor Statistics)."""
    lines = [(number, line.split("\t")) for number, line in read_lines(path) if line]
    names = lines[0][1] if lines else []
    needed(dict.fromkeys(names), ("occupation", "bls_pct_female"), f"{path}, line 1")
    shares = {}
    for number, cells in lines[1:]:
        row = dict(zip(names, cells, strict=False))
        try:
            shares[row["occupation"]] = float(row["bls_pct_female"])
        except (KeyError, ValueError):
            raise FairnessError(
                f"{path}, line {number}: expected an occupation and a number 'bls_pct_female', found {cells}; "
                "fetch the file again"
            ) from None
    return shares


def _pronouns(rows: Iterator[Row], path: Path) -> list[Row]:
    """The sentences of an item in one row, with its stereotype."""
    shares = _shares(_counterpart(path))
    items: dict[tuple[str, str], dict[str, Any]] = {}
    for row in rows:
        if row["occupation"] not in shares:
            raise FairnessError(f"{_counterpart(path)}: occupation '{row['occupation']}' of {path.name} is missing")
        kept = {name: row[name] for name in ("item", "occupation", "means", MODEL)}
        item = items.setdefault((row[MODEL], row["item"]), {**kept, "percent_female": shares[row["occupation"]]})
        item |= {row["gender"]: row["sentence"], f"{row['gender']}_likelihood": row["log_likelihood"]}
    item_rows = list(items.values())
    for item in item_rows:
        needed(item, ("female_likelihood", "male_likelihood"), f"{path}, item {item['item']}")
    gap = np.array([item["female_likelihood"] - item["male_likelihood"] for item in item_rows])
    side = np.sign([item["percent_female"] - 50 for item in item_rows])
    readings = np.unique([f"{item[MODEL]} {item['means']}" for item in item_rows], return_inverse=True)[1]
    gap -= (np.bincount(readings, gap) / np.bincount(readings))[readings]
    return [{**item, "stereotype": value} for item, value in zip(item_rows, gap * side, strict=True)]


BENCHMARK = Benchmark(
    _sentences,
    key="sentid",
    row_id="id",
    texts={"log_likelihood": ("sentence", "log_likelihood")},
    answer="likelihood",
    trials=_pronouns,
    second_file=_counterpart,
)
"""A row for each item: `item` (a sentence without its pronoun), `occupation`, `means` (`occupation`, `participant`),
`percent_female` of the occupation, the sentences and log-likelihoods by gender (`male`, `male_likelihood` and so on),
and `stereotype`."""
