"""Reads benchmarks by their authors' files, and the logs of other evaluation tools, as tables of trials."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pyarrow as pa

from fairness_pipeline.corpora.outcomes.formats import (
    bbq,
    crows_pairs,
    inspect_log,
    lm_eval,
    promptfoo,
    stereoset,
    winobias,
    winogender,
)
from fairness_pipeline.corpora.outcomes.formats.shared import MODEL, with_models
from fairness_pipeline.corpora.outcomes.specification import Format
from fairness_pipeline.corpora.outcomes.table_files import read_table
from fairness_pipeline.foundation.errors import FairnessError

Reader = Callable[[Path | None, Mapping[str, Path]], pa.Table]
"""From the format's own file and a file of answers by model, the columns as text."""


def _tables(path: Path | None, answers: Mapping[str, Path]) -> pa.Table:
    return read_table(path) if path else with_models({model: read_table(own) for model, own in answers.items()})


_BENCHMARKS: Mapping[Format, Reader] = {
    "table": _tables,
    "bbq": bbq.read,
    "crows_pairs": crows_pairs.read,
    "stereoset": stereoset.read,
    "winobias": winobias.read,
    "winogender": winogender.read,
}
_LOGS: Mapping[Format, Callable[[Path], pa.Table]] = {
    "inspect": inspect_log.read,
    "lm_eval": lm_eval.read,
    "promptfoo": promptfoo.read,
}
_RECOGNISED: Mapping[Format, Callable[[Path], bool]] = {
    "inspect": inspect_log.recognises,
    "lm_eval": lm_eval.recognises,
    "promptfoo": promptfoo.recognises,
    "bbq": bbq.recognises,
}


def read_format(form: Format, path: Path | None, answers: Mapping[str, Path]) -> pa.Table:
    """The columns of a table of trials as text, whatever its files are; `answers` adds the column `model`.

    Args:
        form: The format.
        path: Its file; None if there are only files by model.
        answers: By model a file with its answers, or its own table.

    Raises:
        FairnessError: a file is missing, or is not of this format; names the line.
    """
    if form in _LOGS:
        logs = {**({path.stem: path} if path else {}), **answers}
        tables = {name: _LOGS[form](own) for name, own in logs.items()}
        return with_models(tables) if answers else next(iter(tables.values()))
    if path is None and form != "table":
        raise FairnessError(f"{form}: 'file' is missing: the benchmark as its authors publish it")
    return _BENCHMARKS[form](path, answers)


def told_by(form: Format, table: pa.Table) -> dict[str, list[str]]:
    """What a tool's log says of its columns, by role, and `outcome`; columns of one value have none.

    Args:
        form: The format.
        table: As `read_format` reads it.
    """
    log = {"inspect": inspect_log, "lm_eval": lm_eval, "promptfoo": promptfoo}.get(form)
    if log is None:
        return {}
    several = [name for name in table.column_names if len(table[name].chunk(0).dictionary) > 1]
    roles = {role: [column] for role, column in log.ROLES.items() if column in several}
    return {**roles, "outcome": [name for name in log.outcomes(table.column_names) if name in several]}


def recognised(path: Path) -> Format:
    """The format of a file that a user gives, by what stands in it; `table` if it is none of those that are known."""
    return next((form for form, recognises in _RECOGNISED.items() if recognises(path)), "table")


__all__ = ["MODEL", "read_format", "recognised", "told_by"]
