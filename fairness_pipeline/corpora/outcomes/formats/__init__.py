"""Reads benchmarks by their authors' files, and the logs of other evaluation tools, as tables of trials."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal, NamedTuple

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
from fairness_pipeline.corpora.outcomes.formats.shared import ASKED, MODEL, Answers, with_models
from fairness_pipeline.corpora.outcomes.specification import Format
from fairness_pipeline.corpora.outcomes.table_files import read_table
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.plain_text import some

Reader = Callable[[Path | None, Mapping[str, Answers]], pa.Table]
"""From the format's own file and the answers by model, the columns as text."""


class Benchmark(NamedTuple):
    """How a benchmark's file is read, what it asks (a table of `ASKED`), and what a model's answer is: text that it
    writes, the log-likelihood of a text, or that for each token; and which second file lies beside the first."""

    read: Reader
    asked: Callable[[Path], pa.Table]
    answer: Literal["text", "likelihood", "likelihood_per_token"]
    beside: Callable[[Path], Path | None] = lambda path: None


BENCHMARKS: Mapping[Format, Benchmark] = {
    "bbq": Benchmark(bbq.read, bbq.asked, "text", bbq.metadata),
    "crows_pairs": Benchmark(crows_pairs.read, crows_pairs.asked, "likelihood"),
    "discrim_eval": Benchmark(discrim_eval.read, discrim_eval.asked, "text"),
    "stereoset": Benchmark(stereoset.read, stereoset.asked, "likelihood_per_token"),
    "winobias": Benchmark(winobias.read, winobias.asked, "likelihood", winobias.counterpart),
    "winogender": Benchmark(winogender.read, winogender.asked, "likelihood", winogender.counterpart),
}
_LOGS: Mapping[Format, Callable[[Path], pa.Table]] = {
    "inspect": inspect_log.read,
    "lm_eval": lm_eval.read,
    "promptfoo": promptfoo.read,
}
_NAMES: Mapping[Format, str] = {
    "bbq": "BBQ with answers",
    "inspect": "a log of Inspect",
    "lm_eval": "a log of lm-evaluation-harness",
    "promptfoo": "results of promptfoo",
}
_RECOGNISED: Mapping[Format, Callable[[Path], bool]] = {
    "inspect": inspect_log.recognises,
    "lm_eval": lm_eval.recognises,
    "promptfoo": promptfoo.recognises,
    "bbq": bbq.recognises,
}


def read_format(form: Format, path: Path | None, answers: Mapping[str, Answers]) -> pa.Table:
    """The columns of a table of trials as text, whatever its files are; `answers` adds the column `model`.

    Args:
        form: The format.
        path: Its file; None if there are only files by model.
        answers: By model its answers to a benchmark, or the file of its own table or log.

    Raises:
        FairnessError: a file is missing, or is not of this format; names the line.
    """
    if form in BENCHMARKS:
        if path is None:
            raise FairnessError(f"{form}: 'file' is missing: the benchmark as its authors publish it")
        return BENCHMARKS[form].read(path, answers)
    read = _LOGS.get(form, read_table)
    tables = {model: read(own) for model, own in answers.items() if isinstance(own, Path)}
    return with_models(tables) if path is None else read(path)


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
    outcomes = log.outcomes(table.column_names)
    return {**roles, "outcome": [name for name in outcomes if name in several] or outcomes}


def said_of(form: Format, table: pa.Table) -> str:
    """Which tool wrote a file, and for which tasks, for readers; empty for a table.

    Args:
        form: The format.
        table: As `read_format` reads it.
    """
    if form == "table":
        return ""
    tasks = table["task"].chunk(0).dictionary.to_pylist() if "task" in table.column_names else []
    return f"{_NAMES[form]}{', task ' if tasks else ''}{some(tasks, 8)}"


def recognised(path: Path) -> Format:
    """The format of a file that a user gives, by what stands in it; `table` if it is none of those that are known."""
    return next((form for form, recognises in _RECOGNISED.items() if recognises(path)), "table")


__all__ = ["ASKED", "BENCHMARKS", "MODEL", "Answers", "read_format", "recognised", "said_of", "told_by"]
