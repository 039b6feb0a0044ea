"""Results of promptfoo: the JSON file that `promptfoo eval -o results.json` writes.

`vars` and the tests' `metadata` are the user's own columns; `testIdx` is a row number. A repetition of the same
variables is a repeated draw. An error of the provider or of a grader is a missing outcome, and not a failed test.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from fairness_pipeline.corpora.outcomes.formats.shared import MODEL, Row, json_text, log_table, needed, scores
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.text_files import read_json

NAME = "results of promptfoo"
ROLES = {"draw": "draw", "condition": "prompt", "asked": "asked", "answer": "answer"}
"""Columns that the reader makes, by role."""
_FIELDS = ("vars", "provider")
_ERROR = 2
"""`failureReason` of an error."""
_INTERNAL = "_promptfoo"


def outcomes(columns: list[str]) -> list[str]:
    """The columns that are outcomes: whether the test passed, the scores, and each assertion."""
    return columns[columns.index("score") :]


def recognises(path: Path) -> bool:
    """Whether a file holds such results."""
    return path.name.removesuffix(".gz").endswith(".json") and bool(_results(read_json(path)))


def read(path: Path) -> pa.Table:
    """A row for each answer: variables and metadata, `model`, `prompt`, `draw`, `asked`, `answer`, `score`, `passed`,
    the named scores, and whether each assertion passed.

    Raises:
        FairnessError: it has no results, or a field is missing.
    """
    results = _results(read_json(path))
    if not results:
        raise FairnessError(f"{path}: expected 'results' with a list of answers, as promptfoo writes them; found none")
    return log_table(_rows(results, path), path)


def _results(content: Any) -> list[Row]:
    results = content.get("results") if isinstance(content, dict) else None
    results = results.get("results") if isinstance(results, dict) else results
    rows = results if isinstance(results, list) else []
    return [row for row in rows if isinstance(row, dict) and set(_FIELDS) <= set(row)]


def _rows(results: list[Row], path: Path) -> Iterator[tuple[Row, Row]]:
    seen: Counter[str] = Counter()
    for index, result in enumerate(results):
        needed(result, ("promptIdx",), f"{path}, result {index}")
        provider = result["provider"]
        model = provider.get("label") or provider.get("id") if isinstance(provider, dict) else provider
        metadata = (result.get("testCase") or {}).get("metadata") or {}
        variables = {
            **{name: value for name, value in metadata.items() if not name.startswith(_INTERNAL)},
            **{name: value for name, value in result["vars"].items() if not name.startswith(_INTERNAL)},
        }
        trial = json_text([variables, model, result["promptIdx"]]) or ""
        seen[trial] += 1
        response = result.get("response") or {}
        data = {
            **variables,
            MODEL: model,
            "prompt": str(result["promptIdx"]),
            "draw": str(seen[trial]),
            "asked": json_text((result.get("prompt") or {}).get("raw")),
            "answer": json_text(response.get("output")),
        }
        yield data, _outcomes(result)


def _outcomes(result: Row) -> Row:
    grading = result.get("gradingResult") or {}
    failed = result.get("failureReason") == _ERROR or result.get("graderError")
    outcomes: dict[str, Any] = {"score": result.get("score"), "passed": result.get("success")}
    outcomes |= dict(scores(result.get("namedScores") or {}, "named"))
    for index, part in enumerate(grading.get("componentResults") or []):
        kind = (part.get("assertion") or {}).get("type", "assertion")
        outcomes[f"{kind}_{index}"] = part.get("pass")
    plain = {name: int(value) if isinstance(value, bool) else value for name, value in outcomes.items()}
    return dict.fromkeys(plain) if failed else plain
