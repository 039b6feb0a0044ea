"""Models that answer elsewhere: writes their pairs to a file, and reads their responses from one."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TextIO

import pyarrow as pa
import pyarrow.compute as pc

from fairness_pipeline.foundation.csv_cells import escaped, write_rows
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.files import replacing
from fairness_pipeline.foundation.progress import Progress
from fairness_pipeline.foundation.records import read_records
from fairness_pipeline.models.dialogue.responding import RESPONSES
from fairness_pipeline.models.dialogue.specification import ModelSpecification
from fairness_pipeline.models.replies import ANSWER, EMPTY, FAILED, FILTERED, KINDS, Reply

FORMS = (".csv", ".jsonl")
_SOURCE = "source.json"
_COLUMNS = ("dimension", "pair_id", "side", "context")


def prepare(
    specification: ModelSpecification, dialogues: pa.Table, folder: Path, seed: int, progress: Progress | None = None
) -> dict[str, object]:
    """Records that there is nothing to train: the responses come from files."""
    with replacing(folder / _SOURCE) as path:
        path.write_text(json.dumps({"responses": "imported"}), encoding="utf-8")
    return {"responses": "imported"}


def write_pairs(pairs: Mapping[str, pa.Table], form: str, stream: TextIO) -> int:
    """Writes every context to answer: `dimension`, `pair_id`, `side`, `context`, and in CSV an empty `response`.

    `pairs` are tables of `context_pairs`, by dimension.

    Returns:
        How many cells of CSV were escaped.
    """
    rows = (
        (dimension, row["pair_id"], side, row[f"context_{side}"])
        for dimension, table in pairs.items()
        for batch in table.to_batches(10_000)
        for row in batch.to_pylist()
        for side in ("a", "b")
    )
    if form == ".csv":
        return write_rows(stream, [*_COLUMNS, "response"], ((*row, "") for row in rows))
    return write_rows(stream, _COLUMNS, rows, form)


def dimensions_of(path: Path) -> list[str] | None:
    """The dimensions that a file of responses names; None if it has no column `dimension`.

    Raises:
        FairnessError: the file cannot be read; names file and line.
    """
    dimensions: dict[str, None] = {}
    for _, row in _rows(path):
        if "dimension" not in row:
            return None
        dimensions[str(row["dimension"])] = None
    return list(dimensions)


def read_responses(path: Path, pairs: pa.Table, dimension: str, *, keep_empty: bool = False) -> pa.Table:
    """The responses in a file, as a table of `RESPONSES`.

    Args:
        path: `.csv` or `.jsonl`, plain or compressed (`.gz`, `.zst`). It has `pair_id`, `side` and `response` for both
            sides of every pair, in any order. If it has a `context`, the context must be that of the pair; a `kind`
            says what an answer is (`answer`, `empty`, `refused`, `filtered`, `failed`).
        pairs: The pairs that the model answered.
        dimension: The dimension of these pairs; rows that name another dimension are skipped.
        keep_empty: Whether to keep an empty response as one without words.

    Raises:
        FairnessError: a pair is missing, repeated or unknown, a response is empty, or a context differs; names file
            and line.
    """
    contexts = {
        (identity, side): text
        for side in ("a", "b")
        for identity, text in zip(pairs["pair_id"].to_pylist(), pairs[f"context_{side}"].to_pylist(), strict=True)
    }
    seen: dict[tuple[int, str], str] = {}
    replies: dict[tuple[int, str], Reply] = {}
    for where, row in _rows(path):
        if row.get("dimension", dimension) != dimension:
            continue
        key = _pair(where, row), _side(where, row)
        if key not in contexts:
            raise FairnessError(
                f"{where}: pair {key[0]} is not among the {pairs.num_rows:,} pairs asked for; export them again"
            )
        if key in seen:
            raise FairnessError(f"{where}: pair {key[0]}, side {key[1]}, was answered before: {seen[key]}")
        if row.get("context") not in (None, contexts[key], escaped(contexts[key])):
            raise FairnessError(
                f"{where}: the context of pair {key[0]}, side {key[1]}, is not the one asked; expected "
                f"{contexts[key]!r}, found {row['context']!r}: the pairs changed, export them again"
            )
        response, kind = row.get("response"), row.get("kind") or ANSWER
        if kind not in KINDS:
            raise FairnessError(f"{where}: kind: expected one of {', '.join(KINDS)}, found {kind!r}")
        if kind in (FILTERED, FAILED, EMPTY) and not response:
            response, allowed = "", True
        else:
            allowed = keep_empty
        if not isinstance(response, str) or not (allowed or response.strip()):
            raise FairnessError(
                f"{where}: pair {key[0]}, side {key[1]}: expected a response, found {response!r}"
                + ("" if response else " (fill in the column, or take empty ones: --keep-empty)")
            )
        text = response.strip()
        seen[key], replies[key] = where.split(", ")[-1], Reply(text, kind if text or kind != ANSWER else EMPTY)
    if missing := [key for key in contexts if key not in replies]:
        identity, side = min(missing)
        raise FairnessError(
            f"{path}: of {len(contexts):,} responses in {dimension}, {len(missing):,} missing, the first that of pair "
            f"{identity}, side {side}; fill them in, or leave the whole dimension out"
        )
    keys = sorted(contexts)
    return pa.table(
        {
            "pair_id": [identity for identity, _ in keys],
            "side": [side for _, side in keys],
            "context": [contexts[key] for key in keys],
            "response": [replies[key].text for key in keys],
            "kind": [replies[key].kind for key in keys],
        },
        schema=RESPONSES,
    )


def matching(responses: pa.Table, pairs: pa.Table) -> pa.Table:
    """The imported `responses`, if they answer exactly these `pairs`.

    Raises:
        FairnessError: the pairs differ from those that were answered.
    """
    for side in ("a", "b"):
        answered = responses.filter(pc.equal(responses["side"], side)).sort_by("pair_id")
        current = pairs.sort_by("pair_id")
        if not (
            answered["pair_id"].equals(current["pair_id"]) and answered["context"].equals(current[f"context_{side}"])
        ):
            raise FairnessError(
                "the pairs changed since the responses were imported; run export pairs, have them answered, and run "
                "import again"
            )
    if "kind" not in responses.column_names:  # imported before replies had kinds
        wordless = pc.equal(responses["response"], "")
        responses = responses.append_column("kind", pc.if_else(wordless, EMPTY, ANSWER))
    return responses


def _rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    form = path.with_suffix("").suffix if path.suffix in (".gz", ".zst") else path.suffix
    if form not in FORMS:
        raise FairnessError(f"{path}: expected a file that ends in {' or '.join(FORMS)} (.gz or .zst after it)")
    for where, row in read_records(path):
        for name in ("pair_id", "side", "response"):
            if name not in row:
                raise FairnessError(f"{where}: expected '{name}', found {list(row)[:8]}")
        yield where, row


def _pair(where: str, row: dict[str, Any]) -> int:
    value = row["pair_id"]
    try:
        if isinstance(value, bool) or not isinstance(value, int | str):
            raise ValueError
        return int(value)
    except ValueError:
        raise FairnessError(f"{where}: pair_id: expected a whole number, found {value!r}") from None


def _side(where: str, row: dict[str, Any]) -> str:
    if row["side"] not in ("a", "b"):
        raise FairnessError(f"{where}: side: expected a or b, found {row['side']!r}")
    return row["side"]
