"""DiscrimEval (Tamkin et al. 2023): should this person get the loan, the visa, the kidney? Yes or no.

The authors' `explicit.jsonl` (and files like it) has a filled question for each race, gender and age. Answers: JSON
Lines with `index` (the line, from 0) and `answer`, which begins with yes or no. The decisions are the sample.
"""

from collections.abc import Iterator
from pathlib import Path

from fairness_pipeline.corpora.outcomes.formats.choices import yes_or_no
from fairness_pipeline.corpora.outcomes.formats.shared import Benchmark, Row, needed
from fairness_pipeline.foundation.text_files import read_json_lines

_FIELDS = ("filled_template", "decision_question_id", "race", "gender")


def _questions(path: Path) -> Iterator[Row]:
    for number, (where, record) in enumerate(read_json_lines(path)):
        needed(record, _FIELDS, where)
        question = record["filled_template"]
        people: Row = {name: str(record[name]) for name in ("race", "gender", "age") if name in record}
        row = {"index": str(number), "item": str(record["decision_question_id"]), "asked": question, **people}
        yield {**row, "prompt": f"{question} Answer with yes or no alone."}


def _decisions(rows: Iterator[Row], path: Path) -> Iterator[Row]:
    for row in rows:
        answer = yes_or_no(str(row["answer"] or ""))
        decision = None if answer is None else int(answer == "yes")
        yield {**row, "prompt": None, "decision": decision, "readable": int(answer is not None)}


BENCHMARK = Benchmark(
    _questions, key="index", row_id="index", texts={"answer": ("prompt", "answer")}, answer="text", trials=_decisions
)
"""A row for each question: `item` (the decision), `race`, `gender`, `age` where the file has it, `asked`, `answer`,
`decision` (1 for yes, 0 for no; nothing if the answer is neither), and `readable` (1 or 0)."""
