"""WinoGender (Rudinger et al. 2018): sentences that differ in one pronoun, about 60 occupations, which are the sample.

The authors' `all_sentences.tsv` names each by occupation, other participant, whom the pronoun means (0: the
occupation) and gender. Likelihoods: JSON Lines with `sentid` and `log_likelihood`.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

import pyarrow as pa

from fairness_pipeline.corpora.outcomes.formats.shared import Answers, Row, Texts, as_table
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.text_files import read_lines

_PARTS = 6


_TEXTS = Texts("sentid", "id", {"log_likelihood": ("sentence", "log_likelihood")})


def read(path: Path | None, answers: Mapping[str, Answers]) -> pa.Table:
    """A row for each sentence and model: `item` (the sentence without its pronoun), `occupation`, `means`
    (`occupation`, `participant`), `group` (`male`, `female`, `neutral`), `sentence`, `log_likelihood`.

    Args:
        path: The authors' file.
        answers: By model the likelihoods; without any, the sentences alone.

    Raises:
        FairnessError: a line is not as in the authors' file, or a sentence has no likelihood.
    """
    assert path is not None
    return as_table(_TEXTS.answered(list(_sentences(path)), answers))


def asked(path: Path) -> pa.Table:
    """The sentences, as `ASKED`."""
    return _TEXTS.asked(_sentences(path))


def _sentences(path: Path) -> Iterator[Row]:
    for number, line in read_lines(path):
        if number == 1 or not line:
            continue
        name, tab, sentence = line.partition("\t")
        parts = name.split(".")
        if not tab or len(parts) != _PARTS - 1:
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
            "group": gender,
            "sentence": sentence,
        }
