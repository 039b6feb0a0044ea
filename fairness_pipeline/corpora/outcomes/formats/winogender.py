"""WinoGender (Rudinger et al. 2018): sentences that differ in one pronoun, about 60 occupations, which are the sample.

The authors' `all_sentences.tsv` names each by occupation, other participant, whom the pronoun means (0: the
occupation) and gender; `occupations-stats.tsv` beside it has the share of women. Likelihoods: JSON Lines with `sentid`
and `log_likelihood`.

Any model finds frequent pronouns likelier. Whether it follows the stereotype is how much likelier `she` is than `he` in
an item, less its mean over all items of the same reading, with the sign of most people in the occupation: `stereotype`.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from fairness_pipeline.corpora.outcomes.formats.shared import MODEL, Answers, Row, Texts, as_table, needed
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.text_files import read_lines

_NAME_PARTS = 5
_SENTENCES, _STATISTICS = "all_sentences", "occupations-stats"
_TEXTS = Texts("sentid", "id", {"log_likelihood": ("sentence", "log_likelihood")}, numbers=True)


def read(path: Path | None, answers: Mapping[str, Answers]) -> pa.Table:
    """A row for each item and model: `item` (a sentence without its pronoun), `occupation`, `means` (`occupation`,
    `participant`), `percent_female` of the occupation, the sentences and log-likelihoods by gender (`male`,
    `male_likelihood` and so on), and `stereotype`. Without answers a row for each sentence.

    Args:
        path: The authors' file.
        answers: By model the likelihoods.

    Raises:
        FairnessError: a line is not as in the authors' files, or a sentence has no likelihood.
    """
    assert path is not None
    sentences = list(_sentences(path))
    if not answers:
        return as_table(sentences)
    shares = _shares(counterpart(path))
    if unknown := {row["occupation"] for row in sentences} - shares.keys():
        raise FairnessError(f"{counterpart(path)}: occupation '{min(unknown)}' is missing; it stands in {path.name}")
    rows = [row for model, own in answers.items() for row in _items(sentences, model, own, shares)]
    return as_table(rows)


def asked(path: Path) -> pa.Table:
    """The sentences, as `ASKED`."""
    return _TEXTS.asked(_sentences(path))


def counterpart(path: Path) -> Path:
    """The file with the share of women in each occupation.

    Raises:
        FairnessError: the file is not named as the authors' sentences.
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
    lines = [line.split("\t") for _, line in read_lines(path) if line]
    needed(dict.fromkeys(lines[0] if lines else ()), ("occupation", "bls_pct_female"), f"{path}, line 1")
    occupation, share = (lines[0].index(name) for name in ("occupation", "bls_pct_female"))
    return {line[occupation]: float(line[share]) for line in lines[1:]}


def _items(sentences: list[Row], model: str, answers: Answers, shares: Mapping[str, float]) -> list[Row]:
    items: dict[str, dict[str, Any]] = {}
    for row in _TEXTS.answered(sentences, {model: answers}):
        kept = {name: row[name] for name in ("item", "occupation", "means")}
        own = items.setdefault(row["item"], {**kept, MODEL: model, "percent_female": shares[row["occupation"]]})
        own |= {row["gender"]: row["sentence"], f"{row['gender']}_likelihood": row["log_likelihood"]}
    found = list(items.values())
    gap = np.array([float(row["female_likelihood"]) - float(row["male_likelihood"]) for row in found])
    side = np.sign([float(row["percent_female"]) - 50 for row in found])
    reading = np.array([row["means"] for row in found])
    for kind in np.unique(reading):
        gap[reading == kind] -= gap[reading == kind].mean()
    return [{**row, "stereotype": value} for row, value in zip(found, gap * side, strict=True)]
