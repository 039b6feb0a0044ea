"""Diagnoses a table: the roles of its columns, as the user says or as guessed, and what the table can show."""

import argparse
import os
import shlex
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa

from fairness_pipeline.cli.given import roles_of
from fairness_pipeline.corpora.outcomes.formats import MODEL, describe_source, find_log_roles, read_format, recognised
from fairness_pipeline.corpora.outcomes.specification import SIGNED, Format, OutcomeTable, key_of
from fairness_pipeline.corpora.outcomes.structure import NONE, ROLES, Guess, as_document, guess
from fairness_pipeline.corpora.outcomes.trials import read_trials
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.paths import data_file
from fairness_pipeline.foundation.plain_text import number_of, some
from fairness_pipeline.foundation.yaml_files import read_yaml, validate
from fairness_pipeline.measures.outcomes.cells import OutcomeCells, cell_table
from fairness_pipeline.measures.outcomes.group_rows import GroupRows, Judging

_REPEATABLE = ("group", "ignore")
_KINDS = {"minus": "number", "over": "preference"}


@dataclass(frozen=True)
class Diagnosis:
    """A table, and what its columns seem to be.

    Attributes:
        path: The file.
        table: Its columns.
        guess: What they seem to be.
        document: The same, in the form of a file of `data/tables`.
    """

    path: Path
    table: pa.Table
    guess: Guess
    document: dict[str, Any]

    @property
    def specification(self) -> OutcomeTable:
        """What its columns are; raises FairnessError if they do not fit together."""
        document = {"file": {"path": str(self.path)}, **self.document}
        return validate(OutcomeTable, document, Path(f"columns of {self.path.name}"))

    @property
    def command(self) -> str:
        """The command with the guesses spelled out; the user has to replace each `?`, which marks an unsure guess."""
        words, unsure = ["fairness-pipeline", "audit", str(self.path)], self.guess.unsure
        for role in ROLES:
            columns = self._columns(role)
            if role == "label":
                columns = list(
                    dict.fromkeys(
                        outcome["label"] for outcome in self.document["outcomes"].values() if "label" in outcome
                    )
                )
            for name in ["?"] if role in unsure else columns:
                words += ["--column", f"{role}={name}"]
        for outcome in self.document["outcomes"].values():
            words += ["--outcome", f"{outcome['column']}=?" if "outcome" in unsure else _outcome_option(outcome)]
        if "outcome" in unsure and not self.document["outcomes"]:
            words += ["--outcome", "?"]
        for option, key in (("baseline-condition", "baseline"), ("control-condition", "control")):
            if self.document.get(key):
                words += [f"--{option}", self.document["conditions"][self.document[key]]]
        return shlex.join(words)

    def _columns(self, role: str) -> list[str]:
        """The columns with a role in the document; also those that the user ignores, or `NONE` for no column."""
        column = self.document.get(role)
        if column:
            return list(column) if isinstance(column, list) else [column]
        given = self.guess.roles.get(role)
        return [NONE] if given == () else list(given or ()) if role == "ignore" else []

    def lines(self) -> Iterator[str]:
        """Lines for a terminal: the role of each column, and what is wrong with the table."""
        tool = describe_source(self.document.get("format", "table"), self.table)
        size = f"{number_of(self.table.num_rows, 'row')}, {number_of(self.table.num_columns, 'column')}"
        yield f"{self.path}: {tool}{'; ' if tool else ''}{size}"
        for role in ROLES:
            for name in self._columns(role):
                if name == NONE:
                    yield f"  {role:<10} none"
                    continue
                values = self.table[name].chunk(0).dictionary.to_pylist()
                first = some([repr(value[:30]) for value in values], 4)
                examples = "" if role in ("asked", "answer") else f" ({len(values):,}: {first})"
                yield f"  {role:<10} {name}{examples}"
        if not self.document.get("cluster") and self.document.get("item"):
            yield "  cluster    each item is one"
        for name, outcome in self.document["outcomes"].items():
            label = f", true answer {outcome['label']}" if outcome.get("label") else ""
            yield f"  outcome    {name}: {_outcome_option(outcome)}{label}"
        yield from (f"  {note}" for note in self.guess.notes)

    def shows(self) -> Iterator[str]:
        """What the table can show, for each outcome and group column.

        Raises:
            FairnessError: a cell is not as expected.
        """
        specification = self.specification
        trials = read_trials(self.table, specification, self.path)
        if not specification.judged:
            yield "  rates of all rows by group; without items there are no verdicts"
        condition = specification.condition_keys[0]
        cells = cell_table(trials, condition)
        judging = Judging(outcomes=specification.outcomes, columns=specification.group, alpha=0.05, seed=0)
        for name, outcome in specification.outcomes.items():
            outcome_cells = OutcomeCells.of(cells, name, specification.group)
            if outcome.kind == "text":
                yield f"  {name}: words, refusals, offence and sentiment, once the answers are scored"
            if outcome.kind in SIGNED:
                clusters = len(outcome_cells.cluster.names) if outcome_cells.cluster else len(outcome_cells.value)
                yield f"  {name}: its mean against no side, over {number_of(clusters, 'cluster')}"
            if outcome.kind in (*SIGNED, "text") or not len(outcome_cells.value) or not specification.judged:
                continue
            for column in specification.group:
                yield f"  {GroupRows(name, outcome, outcome_cells, (column,), judging, None).power()}"
        for name in specification.outcomes:
            values = trials.values.get(name)
            missing = 0 if values is None else int((values != values).sum())
            if missing:
                yield f"  {name}: no value in {number_of(missing, 'row')} of {len(trials):,}"


def diagnose(path: Path, arguments: argparse.Namespace) -> Diagnosis:
    """Reads a table and guesses the roles of its columns where the user's options (`add_table_options`) name none.

    Raises:
        FairnessError: the file cannot be read, or has no such column.
    """
    form = recognised(path)
    table = read_format(form, path, {})
    roles = _roles(arguments.column, table)
    outcomes = dict(_outcome(text, table) for text in arguments.outcome)
    if outcomes and "group" not in roles and all(outcome["kind"] in SIGNED for outcome in outcomes.values()):
        first_guess = guess(table, roles)
        roles["group"] = [NONE] if "group" in first_guess.unsure else list(first_guess.roles["group"])
    outcome_columns = [outcome[key] for outcome in outcomes.values() for key in ("column", *_KINDS) if key in outcome]
    format_roles = find_log_roles(form, table)
    shipped = _of_benchmark(form, table) if form != "table" and not (format_roles or roles or outcomes) else None
    known_roles = {**format_roles, **roles, **({"outcome": outcome_columns} if outcomes else {})}
    guessed = Guess({}, {}, {}, []) if shipped else guess(table, known_roles)
    document = shipped or as_document(guessed, table)
    if form != "table":
        document["format"] = form
    if outcomes:
        guessed = replace(
            guessed, unsure={role: reason for role, reason in guessed.unsure.items() if role != "outcome"}
        )
        document["outcomes"] = outcomes
    label = next(iter(roles.get("label", ())), None)
    for outcome in document["outcomes"].values():
        if label and outcome["kind"] == "yes_no":
            outcome["label"] = label
        if label == NONE:
            outcome.pop("label", None)
    for option, key in (("baseline_condition", "baseline"), ("control_condition", "control")):
        value = getattr(arguments, option)
        if value is not None:
            document[key] = _condition(value, document, f"--{option.replace('_', '-')}")
    return Diagnosis(path, table, guessed, document)


def _of_benchmark(form: Format, table: pa.Table) -> dict[str, Any]:
    """The columns of a benchmark, from its file of `data/tables`."""
    path = data_file(f"tables/{form}.yaml")
    shipped = {name: value for name, value in read_yaml(path).items() if name not in ("file", "answers")}
    models = table[MODEL].chunk(0).dictionary.to_pylist() if MODEL in table.column_names else []
    shipped["outcomes"] = {name: {"column": name, **outcome} for name, outcome in shipped["outcomes"].items()}
    return {**shipped, "condition": MODEL, "conditions": {key_of(name): name for name in models}}


def settled(diagnosis: Diagnosis, arguments: argparse.Namespace) -> Diagnosis:
    """The diagnosis after the user has answered questions about unsure columns; refused in CI and without a terminal.

    The answers are added to the `arguments`.

    Raises:
        FairnessError: nobody can be asked; names the unsure columns, and a command to complete.
    """
    unsure = diagnosis.guess.unsure
    if not unsure:
        return diagnosis
    if os.environ.get("CI") or not sys.stdin.isatty():
        reasons = "; ".join(f"{role}: {reason}" for role, reason in unsure.items())
        raise FairnessError(
            f"{diagnosis.path}: not sure what its columns are: {reasons}\nReplace each ? in: {diagnosis.command}\n"
            "If its rows are labels by several people, name who gave them instead: --column rater=NAME"
        )
    for role, reason in unsure.items():
        print(f"Not sure about the {role}: {reason}")
        if role == "outcome":
            guessed = [_outcome_option(outcome) for outcome in diagnosis.document["outcomes"].values()]
            answer = _ask(f"Outcomes, as COLUMN=KIND, separated by commas [{', '.join(guessed)}]: ")
            arguments.outcome = [part.strip() for part in (answer.split(",") if answer else guessed)]
        else:
            answer = _ask(f"As ROLE=COLUMN, separated by commas, or enter for none [{', '.join(ROLES[:6])}]: ")
            arguments.column += [part.strip() for part in answer.split(",") if part.strip()]
    return diagnose(diagnosis.path, arguments)


def _ask(question: str) -> str:
    try:
        return input(question).strip()
    except EOFError:
        raise FairnessError(
            "the table's columns are not clear, and nobody answered; give --column and --outcome"
        ) from None


def _roles(options: list[str], table: pa.Table) -> dict[str, list[str]]:
    roles = roles_of(options, ROLES, _REPEATABLE)
    for column in chain.from_iterable(roles.values()):
        if column != NONE or NONE in table.column_names:
            _check_column(column, table, "--column")
    return roles


def _outcome(text: str, table: pa.Table) -> tuple[str, dict[str, Any]]:
    """An outcome's name and what it is, from `COLUMN=KIND`."""
    columns, equals, kind = text.rpartition("=")
    kind, colon, values = kind.partition(":")
    if not equals:
        columns, kind = text, ""
    document: dict[str, Any] = {"kind": kind, "column": columns}
    if columns not in table.column_names:
        for keyword, default in _KINDS.items():
            first, separator, second = columns.partition(f" {keyword} ")
            if separator:
                document = {"kind": kind or default, "column": first.strip(), keyword: second.strip()}
                _check_column(document[keyword], table, "--outcome")
    _check_column(document["column"], table, "--outcome")
    if colon:
        document["positive"] = values.split("|")
    if not document["kind"]:
        guessed = guess(table, {"outcome": [columns]})
        if reason := guessed.unsure.get("outcome"):
            raise FairnessError(f"--outcome: {reason} Say it: --outcome '{columns}=yes_no:VALUE'")
        document["kind"] = guessed.outcomes[key_of(columns)].kind
    return key_of(columns).replace("-", "_"), document


def _outcome_option(outcome: Mapping[str, Any]) -> str:
    """An outcome in the syntax of `--outcome`."""
    second = next((f" {keyword} {outcome[keyword]}" for keyword in _KINDS if outcome.get(keyword)), "")
    values = ":" + "|".join(outcome["positive"]) if outcome.get("positive") else ""
    return f"{outcome['column']}{second}={outcome['kind']}{values}"


def _check_column(column: str, table: pa.Table, option: str) -> None:
    if column not in table.column_names:
        raise FairnessError(f"{option}: there is no column '{column}'; columns: {some(table.column_names, 12)}")


def _condition(value: str, document: Mapping[str, Any], option: str) -> str:
    """The key of the condition with this value or key."""
    known = document.get("conditions", {})
    match = next((key for key, name in known.items() if value in (key, name)), None)
    if match is None:
        raise FairnessError(f"{option}: expected one of {', '.join(known.values()) or 'no condition'}, found '{value}'")
    return match
