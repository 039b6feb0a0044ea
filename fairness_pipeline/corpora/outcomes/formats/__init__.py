"""Reads benchmarks by their authors' files, and the logs of other evaluation tools, as tables of trials."""

from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

import pyarrow as pa

from fairness_pipeline.corpora.outcomes.formats import (
    bbq,
    crows_pairs,
    discrim_eval,
    inspect_log,
    lm_eval,
    promptfoo,
    stereoset,
    winobias,
    winogender,
)
from fairness_pipeline.corpora.outcomes.formats.shared import ASKED, MODEL, Answers, Benchmark, with_models
from fairness_pipeline.corpora.outcomes.specification import Format
from fairness_pipeline.corpora.outcomes.table_files import read_table
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.plain_text import some

BENCHMARKS: Mapping[Format, Benchmark] = {
    "bbq": bbq.BENCHMARK,
    "crows_pairs": crows_pairs.BENCHMARK,
    "discrim_eval": discrim_eval.BENCHMARK,
    "stereoset": stereoset.BENCHMARK,
    "winobias": winobias.BENCHMARK,
    "winogender": winogender.BENCHMARK,
}
_LOGS: Mapping[Format, ModuleType] = {"inspect": inspect_log, "lm_eval": lm_eval, "promptfoo": promptfoo}
_RECOGNISED: Mapping[Format, ModuleType] = {**_LOGS, "bbq": bbq}
"""The formats that are recognised by the contents of a file."""


def read_format(form: Format, path: Path | None, answers: Mapping[str, Answers]) -> pa.Table:
    """Reads the columns of a table of trials as text, in any format; `answers` adds the column `model`.

    Args:
        form: The format.
        path: The file; None if there are only files by model.
        answers: By model, its answers to a benchmark, or the file of its own table or log.

    Raises:
        FairnessError: a file is missing, or is not of this format; names the line.
    """
    if form in BENCHMARKS:
        if path is None:
            raise FairnessError(f"{form}: 'file' is missing: the benchmark as its authors publish it")
        return BENCHMARKS[form].read(path, answers)
    read = _LOGS[form].read if form in _LOGS else read_table
    tables = {model: read(file) for model, file in answers.items() if isinstance(file, Path)}
    return with_models(tables) if path is None else read(path)


def find_log_roles(form: Format, table: pa.Table) -> dict[str, list[str]]:
    """The columns of a tool's log by role, and its outcomes under `outcome`; constant columns have no role."""
    if form not in _LOGS:
        return {}
    log = _LOGS[form]
    varying = [name for name in table.column_names if len(table[name].chunk(0).dictionary) > 1]
    roles = {role: [column] for role, column in log.ROLES.items() if column in varying}
    outcomes = log.outcomes(table.column_names)
    return {**roles, "outcome": [name for name in outcomes if name in varying] or outcomes}


def describe_source(form: Format, table: pa.Table) -> str:
    """The tool that wrote a file, and its tasks, for readers; empty for a table."""
    if form == "table":
        return ""
    tasks = table["task"].chunk(0).dictionary.to_pylist() if "task" in table.column_names else []
    return f"{_RECOGNISED[form].NAME}{', task ' if tasks else ''}{some(tasks, 8)}"


def recognised(path: Path) -> Format:
    """The format of a user's file, recognised by its contents; `table` if none is recognised."""
    return next((form for form, module in _RECOGNISED.items() if module.recognises(path)), "table")


__all__ = ["ASKED", "BENCHMARKS", "MODEL", "Answers", "describe_source", "find_log_roles", "read_format", "recognised"]
