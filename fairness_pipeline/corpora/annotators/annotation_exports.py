"""Reads exports of annotation tools as rows with `item_id`, `annotator_id`, `label` and the text that was shown."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.records import read_records
from fairness_pipeline.foundation.text_files import read_json_lines

_ANSWERS = ("choices", "rating", "number")
"""The forms that one answer in Label Studio can have."""
Row = tuple[str, dict[str, Any]]


def read_label_studio(path: Path, question: str | None, text_field: str, left_out: Counter[str]) -> Iterator[Row]:
    """Label Studio's JSON export: a list of tasks. Each task has annotations with one choice, rating or number.

    Args:
        path: The file.
        question: The question to read (`from_name`), if there are several.
        text_field: The field of `data` that was shown to the annotators.
        left_out: Counts the annotations that were skipped or that answer another question.

    Raises:
        FairnessError: the file is no such export, asks several questions, or has several choices; names the task.
    """
    for where, task in read_records(path):
        annotations, data = task.get("annotations"), task.get("data")
        if not isinstance(annotations, list) or not isinstance(data, dict) or "id" not in task:
            raise FairnessError(
                f"{where}: expected a task of Label Studio's JSON export ('id', 'data', 'annotations'), found "
                f"{list(task)[:8]}; its JSON-MIN and CSV exports are tables: form: table"
            )
        if not annotations:
            left_out["tasks that nobody annotated"] += 1
        for annotation in annotations:
            if annotation.get("was_cancelled"):
                left_out["skipped by the annotator"] += 1
                continue
            results = annotation.get("result", [])
            answers = [
                (result.get("from_name"), value if isinstance(value, list) else [value])
                for result in results
                for kind, value in result.get("value", {}).items()
                if kind in _ANSWERS
            ]
            if results and not answers:
                kinds = ", ".join(sorted({str(result.get("type")) for result in results}))
                raise FairnessError(f"{where}: expected an answer of {', '.join(_ANSWERS)}, found {kinds}")
            questions = {name for name, _ in answers}
            if question is None and len(questions) > 1:
                raise FairnessError(
                    f"{where}: asks {', '.join(sorted(map(str, questions)))}; say which: question: NAME"
                )
            choices = [choice for name, values in answers if question in (None, name) for choice in values]
            if len(choices) > 1:
                raise FairnessError(f"{where}: expected one choice, found {', '.join(map(str, choices))}")
            if not choices:
                left_out["without an answer"] += 1
                continue
            yield (
                where,
                {
                    **data,
                    "item_id": task["id"],
                    **_annotator(annotation.get("completed_by")),
                    "label": choices[0],
                    "text": data.get(text_field, ""),
                },
            )


def read_prodigy(path: Path, text_field: str, left_out: Counter[str]) -> Iterator[Row]:
    """Prodigy's JSON lines. A label is the chosen option, or `accept` or `reject` if there are no options.

    The text is under `text_field`; `left_out` counts the ignored examples.

    Raises:
        FairnessError: a line is no such example, or has several chosen options; names the line.
    """
    for where, example in read_json_lines(path):
        annotator = example.get("_annotator_id", example.get("_session_id"))
        if "answer" not in example or "_input_hash" not in example or annotator is None:
            raise FairnessError(
                f"{where}: expected an example of Prodigy's ('answer', '_input_hash', '_annotator_id' or "
                f"'_session_id'), found {list(example)[:8]}"
            )
        if example["answer"] == "ignore":
            left_out["ignored by the annotator"] += 1
            continue
        chosen = example.get("accept")
        if isinstance(chosen, list) and example["answer"] == "accept":
            if len(chosen) != 1:
                raise FairnessError(f"{where}: expected one chosen option, found {chosen}")
            label = chosen[0]
        else:
            label = example["answer"]
        yield (
            where,
            {
                **example,
                "item_id": example["_input_hash"],
                "annotator_id": annotator,
                "label": label,
                "text": example.get(text_field, ""),
            },
        )


def _annotator(completed_by: Any) -> dict[str, Any]:
    """The annotator's id, and the e-mail address if the export has both; a file of traits may have either."""
    if not isinstance(completed_by, dict):
        return {"annotator_id": completed_by}
    address = completed_by.get("email")
    annotator = {"annotator_id": completed_by.get("id", address)}
    return annotator | ({"annotator_email": address} if address and "id" in completed_by else {})
