"""Takes what `fairness-pipeline audit` is given for this study: a table of items, groups and outcomes."""

import argparse
import sys
from pathlib import Path
from typing import Any

from fairness_pipeline.cli.given import (
    Given,
    answering_architecture,
    answering_model,
    name_of,
    put,
    scoring_architecture,
    scoring_model,
)
from fairness_pipeline.cli.imports import check_name, import_file
from fairness_pipeline.corpora.downloads import file_as_declared
from fairness_pipeline.corpora.outcomes.formats import BENCHMARKS, read_format
from fairness_pipeline.corpora.outcomes.formats.messages import check_answers
from fairness_pipeline.corpora.outcomes.specification import Format, OutcomeTable, key_of
from fairness_pipeline.corpora.outcomes.table_files import PACKED
from fairness_pipeline.corpora.outcomes.trials import read_trials
from fairness_pipeline.corpora.specification import CorpusFile
from fairness_pipeline.foundation.errors import FairnessError, unknown
from fairness_pipeline.foundation.paths import data_file
from fairness_pipeline.foundation.yaml_files import read_yaml
from fairness_pipeline.measures.outcomes.rates import lowest_ratio, rates_by_group
from fairness_pipeline.studies.outcomes.asked_groups import describe_questions, message_document, questions_of
from fairness_pipeline.studies.outcomes.columns import diagnose, settled
from fairness_pipeline.studies.outcomes.profile import OutcomesPart

_MOST_TOKENS = 400
"""The most tokens of an answer to a message: enough for a letter or a plan."""
_OF_PUBLISHED = ("answers", "condition", "conditions", "baseline", "control")
"""The keys of a benchmark's file for published answers."""


def takes_columns(roles: set[str], given: Given) -> bool:
    """Whether the user names columns of this study; it knows all roles of tables."""
    return True


def takes(given: Given) -> bool:
    """Whether this study can audit the given file: any table with a few columns."""
    return given.kind == "file" and len(given.columns) > 1


def give(part: OutcomesPart, given: Given, name: str, arguments: argparse.Namespace) -> str:
    """Stores a given table in the workspace; returns a line that says how it was understood.

    Raises:
        FairnessError: the profile has a table of this name, the columns are unclear, or a cell is not as expected.
    """
    of_answers = arguments.groups and given.kind == "file"
    for option in ("dimension", "keep_empty"):
        if getattr(arguments, option) and not (of_answers and option == "keep_empty"):
            raise FairnessError(f"--{option.replace('_', '-')} does not apply to a table; leave it out")
    check_name(name, part.project.name, taken=name in part.settings.tables)
    if arguments.benchmark:
        return _give_benchmark(part, given, name, arguments)
    if arguments.groups:
        return _give_messages(part, given, name, arguments)
    path = Path(given.name)
    diagnosis = diagnose(path, arguments)
    for line in diagnosis.lines():
        print(line, file=sys.stderr)
    diagnosis = settled(diagnosis, arguments)
    specification = diagnosis.specification
    trials = read_trials(diagnosis.table, specification, path)
    for line in diagnosis.shows():
        print(line, file=sys.stderr)
    target = (
        part.folder_of(name) / f"{name}{''.join(path.suffixes[-2:] if path.suffix in PACKED else path.suffixes[-1:])}"
    )
    earlier = [part.given_file(name)] if name in part.given else []
    document = {"file": {"path": target.name}, **diagnosis.document}
    target.parent.mkdir(parents=True, exist_ok=True)
    put(part.about(name), document, OutcomeTable, name, part.project.name)
    import_file(path, target, part.project.workspace, f"the rows of '{name}'", earlier)
    if not specification.judged:
        rows = rates_by_group(trials, specification.condition_keys[0], specification.outcomes).to_pylist()
        for comparison in dict.fromkeys((row["outcome"], row["attribute"]) for row in rows):
            print(f"rates alone, as there are no items: {lowest_ratio(rows, *comparison) or 'nobody is selected'}")
    return f"'{name}': {diagnosis.table.num_rows:,} rows in {target}; what its columns are: {part.about(name)}"


def _give_benchmark(part: OutcomesPart, given: Given, name: str, arguments: argparse.Namespace) -> str:
    """Stores a benchmark in the workspace, with the model that is to answer it, or a file of answers."""
    benchmark, _, file = arguments.benchmark.partition("=")
    form = next((known for known in BENCHMARKS if known == benchmark.lower()), None)
    if form is None:
        raise FairnessError(f"--benchmark: {unknown('benchmark', benchmark, BENCHMARKS)}")
    if form == "bbq" and not file:
        raise FairnessError("--benchmark: name the authors' file of a category: --benchmark bbq=Age.jsonl")
    model = _model(form, given, arguments) if given.kind != "file" else None
    shipped = read_yaml(data_file(f"tables/{form}.yaml"))
    document = {key: value for key, value in shipped.items() if key not in _OF_PUBLISHED}
    if file:
        document["file"] = {"path": str(Path(file).expanduser().resolve())}
    try:
        questions = file_as_declared(CorpusFile.model_validate(document["file"]), part.folder_of(name))
    except FairnessError as error:
        raise FairnessError(f"{error}; or name the authors' file: --benchmark {benchmark}=FILE") from None
    usage = _add_answers(document, given, model)
    if questions.path.exists():  # the run downloads a URL
        # Errors in a file are reported before anything is stored or queried.
        answers = {name_of(given.name): Path(given.name)} if model is None else {}
        if answers:
            read_format(form, questions.path, answers)
        else:
            BENCHMARKS[form].asked(questions.path)
    return f"'{name}' ({usage} {benchmark}): {_store(part, name, document)}"


def _give_messages(part: OutcomesPart, given: Given, name: str, arguments: argparse.Namespace) -> str:
    """Stores messages and groups in the workspace, with the model that is asked, or a file of answers.

    Raises:
        FairnessError: there is no such file of groups or messages, or nothing can be asked.
    """
    document = message_document(arguments.groups, arguments.messages, arguments.spans)
    questions = questions_of(document, part.project.profile.seed)
    model = None
    if given.kind == "file":
        check_answers(Path(given.name), questions.table, keep_empty=arguments.keep_empty)
    elif answering_architecture(given) is None:
        raise FairnessError(f"--groups: needs a model that writes answers; {given.name} is {given.description}")
    else:
        model = answering_model(given, arguments, _MOST_TOKENS)
    usage = _add_answers(document, given, model)
    for line in describe_questions(questions):
        print(line, file=sys.stderr)
    return f"'{name}' ({usage} {questions.table.num_rows:,} questions): {_store(part, name, document)}"


def _add_answers(document: dict[str, Any], given: Given, model: dict[str, Any] | None) -> str:
    """Adds the model that is asked, or the file of answers, to a document; returns the usage in words."""
    if model is None:
        document["answers"] = {name_of(given.name): {"path": given.name}}
        return "answers to"
    model_name = model["endpoint"]["model"] if "endpoint" in model else name_of(given.name)
    document["models"] = {key_of(model_name): model}
    return f"{model['architecture']} asked"


def _store(part: OutcomesPart, name: str, document: dict[str, Any]) -> Path:
    """Stores the document of a table; returns its path."""
    path = part.about(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    keys = ("file", "groups", "spans", "models", "answers")
    if path.exists() and all(read_yaml(path).get(key) == document.get(key) for key in keys):
        path.unlink()  # the shipped keys may have changed since
    put(path, document, OutcomeTable, name, part.project.name)
    return path


def _model(form: Format, given: Given, arguments: argparse.Namespace) -> dict[str, Any]:
    writes = BENCHMARKS[form].answer == "text"
    if (answering_architecture if writes else scoring_architecture)(given) is None:
        ability = "writes answers" if writes else "says how likely texts are, by folder or id"
        raise FairnessError(f"--benchmark: {form} needs a model that {ability}; {given.name} is {given.description}")
    return answering_model(given, arguments) if writes else scoring_model(given)
