"""DiscrimEval (Tamkin et al. 2023): should this person get the loan, the visa, the kidney? Yes or no.

The authors' `explicit.jsonl` (and files like it) has a filled question for each race, gender and age. Answers: JSON
Lines with `index` (the line, from 0) and `answer`, which begins with yes or no. The decisions are the sample.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

import pyarrow as pa

from fairness_pipeline.corpora.outcomes.formats.choices import yes_or_no
from fairness_pipeline.corpora.outcomes.formats.shared import Answers, Row, Texts, as_table, needed
from fairness_pipeline.foundation.text_files import read_json_lines

_FIELDS = ("filled_template", "decision_question_id", "race", "gender")
_TEXTS = Texts("index", "index", {"answer": ("prompt", "answer")})


def read(path: Path | None, answers: Mapping[str, Answers]) -> pa.Table:
    """A row for each question and model: `item` (the decision), `race`, `gender`, `age` where the file has it, `asked`,
    `answer`, `decision` (1 for yes, 0 for no; nothing if the answer begins with neither), and `readable` (1 or 0).

    Args:
        path: The authors' file.
        answers: By model the answers; without any, the questions alone.

    Raises:
        FairnessError: a field is missing, or a question has no answer.
    """
    assert path is not None
    return as_table(map(_decided, _TEXTS.answered(list(_items(path)), answers)))


def asked(path: Path) -> pa.Table:
    """The questions, as `ASKED`."""
    return _TEXTS.asked({**item, "prompt": f"{item['asked']} Answer with yes or no alone."} for item in _items(path))


def _items(path: Path) -> Iterator[Row]:
    for number, (where, record) in enumerate(read_json_lines(path)):
        needed(record, _FIELDS, where)
        people: Row = {name: str(record[name]) for name in ("race", "gender", "age") if name in record}
        asked_of = {"item": str(record["decision_question_id"]), "asked": record["filled_template"]}
        yield {"index": str(number), **asked_of, **people}


def _decided(row: Row) -> Row:
    if "answer" not in row:
        return row
    said = yes_or_no(row["answer"])
    return {**row, "decision": None if said is None else int(said == "yes"), "readable": int(said is not None)}
