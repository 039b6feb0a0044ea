"""`audit`: makes a first audit without any YAML file, of a model, an endpoint or a file."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from fairness_pipeline.cli.arguments import add_group_options, add_table_options, count, number_of_pairs
from fairness_pipeline.cli.commands import Command
from fairness_pipeline.cli.run import (
    bring_up_to_date,
    make,
    print_format,
    print_requests,
    seal_older_imports,
    with_new_epochs,
)
from fairness_pipeline.cli.run_options import add_run_options, asks_anew, environment_of_options
from fairness_pipeline.foundation.errors import FairnessError, unknown

if TYPE_CHECKING:
    from fairness_pipeline.cli.given import Given
    from fairness_pipeline.project.project import Project
    from fairness_pipeline.project.study import AnyStudy

PROFILE = "audit"


def add(command: Command) -> None:
    """Adds the command."""
    audit = command(
        "audit",
        _audit,
        "Audit a model, an endpoint or a file; no profile is needed.",
        example="http://localhost:8000/v1",
        default_profile=PROFILE,
    )
    audit.add_argument(
        "text", metavar="MODEL", help="a folder, a Hugging Face id, an endpoint's address, a file of answers, a table"
    )
    audit.add_argument("--name", help="what it is called in tables and reports (default: derived from its location)")
    audit.add_argument("--study", help="the study to use, if several can audit it")
    audit.add_argument(
        "--benchmark",
        metavar="NAME[=FILE]",
        help="the benchmark to ask a model, or that a file answers: bbq, crows_pairs, discrim_eval, stereoset, "
        "winobias, winogender; FILE is the authors' file (default: the file that data/tables names)",
    )
    add_group_options(audit)
    audit.add_argument("--dimension", help="only this dimension")
    audit.add_argument("--revision", help="for a Hugging Face id: the commit, so that it is pinned")
    audit.add_argument("--prompt", help="text around each context; {context} is where it goes")
    audit.add_argument("--system", help="a system prompt")
    audit.add_argument("--served", metavar="MODEL", help="at an address: which of its models (default: its only one)")
    audit.add_argument("--key", metavar="VARIABLE", help="at an address: the environment variable that holds the key")
    audit.add_argument(
        "--concurrency",
        metavar="N",
        type=count,
        help="at an address: requests at once (default: as many as make the server answer faster)",
    )
    audit.add_argument(
        "--label",
        metavar="NAME=LABEL",
        action="append",
        default=[],
        help="for a classifier, or a file of labels: which label stands for which affect, or is the positive class "
        "(positive=LABEL; for a scale, its lowest positive number; or `classes`, if numbers name classes)",
    )
    audit.add_argument("--raters", metavar="FILE", help="of a file of labels: another file with the raters' traits")
    audit.add_argument(
        "--pairs",
        metavar="N",
        type=number_of_pairs,
        help="pairs per dimension, or `all`; kept for later audits; earlier ones with another number are out of date",
    )
    audit.add_argument(
        "--keep-empty", action="store_true", help="of a file of answers: take empty ones as answers without words"
    )
    add_table_options(audit)
    add_run_options(audit)


def _audit(arguments: argparse.Namespace) -> int:
    with environment_of_options(arguments):
        return _give_and_run(arguments)


def _give_and_run(arguments: argparse.Namespace) -> int:
    from fairness_pipeline.cli.given import look_at, name_of
    from fairness_pipeline.foundation.paths import check_key
    from fairness_pipeline.lineage.lineage import Lineage
    from fairness_pipeline.lineage.plan import Plan, Selection
    from fairness_pipeline.project.project import Project

    project = Project(arguments.profile)
    if arguments.dimension and arguments.dimension not in project.dimensions:
        raise FairnessError(unknown("dimension", arguments.dimension, project.dimensions, f"profile '{project.name}'"))
    for option in ("messages", "spans"):
        if getattr(arguments, option) and not arguments.groups:
            raise FairnessError(f"--{option}: name the groups that are asked about: --groups religion")
    if arguments.groups and arguments.benchmark:
        raise FairnessError("--groups, --benchmark: give one of them")
    questions = bool(arguments.benchmark or arguments.groups)
    given = look_at(arguments.text, arguments.revision, of_benchmark=questions)
    _check_options(given, arguments)
    study_name = _study_of_columns(project, given, arguments.column) if arguments.column or questions else None
    requested = arguments.study or study_name
    study = study_of(
        project, given, requested, certain=questions or (study_name is not None and requested == study_name)
    )
    source = (arguments.benchmark or "").partition("=")[0].lower() or "-".join(
        Path(group).stem for group in (arguments.groups or "").replace(" ", "").split(",")
    )
    name = arguments.name or (f"{source}-" if source else "") + name_of(given.name)
    check_key(name, "--name")
    module = study.load("audit")
    assert module is not None
    if arguments.pairs is not None:
        if given.kind == "file":
            raise FairnessError(
                "--pairs: a file answers the pairs that it was exported with; fairness-pipeline export pairs "
                f"--profile {project.name} --pairs N exports others, to be answered anew"
            )
        part = project.parts[study.name]
        if not hasattr(part, "ask_pairs"):
            raise FairnessError(f"--pairs is for dialogue models; {given.name} is {given.description}")
        part.ask_pairs(arguments.pairs)
        project = Project(arguments.profile)
    seal_older_imports(project)
    for asset in getattr(module, "ASKED_WITH", ()):
        make(project, study.name, asset, arguments.dimension)
    print(module.give(project.parts[study.name], given, name, arguments), flush=True)
    project = Project(arguments.profile)  # it now includes what was given
    chosen = Selection(study.name, arguments.dimension, name)
    plan = Plan(Lineage(project), chosen)
    if with_new_epochs(plan, [name], arguments, anew=asks_anew(arguments)):
        plan = Plan(plan.lineage, chosen)
    for line in study.power_forecast(project.parts[study.name], plan.lake, arguments.dimension):
        print(line, flush=True)
    print_format(plan)
    print_requests(plan)
    status = bring_up_to_date(project, chosen, plan, arguments)
    if status != 1:
        if closing_lines := getattr(module, "describe_results", None):
            print("", *closing_lines(project.parts[study.name], plan.lake, name), sep="\n")
        print("\nNext: open the report.")
        if any(key[study.subject] == name for key in project.parts[study.name].expected()):
            print(
                f"Every {study.observed}: fairness-pipeline view --profile {project.name}\n"
                f"All numbers: fairness-pipeline results --profile {project.name} --model {name}"
            )
        if given.kind != "file" and not questions:
            extra = f" --study {study.name}" if arguments.study else ""
            print(f"Your own corpus, sizes, margins: fairness-pipeline init NAME --model {arguments.text}{extra}")
    return status


def _study_of_columns(project: "Project", given: "Given", columns: list[str]) -> str | None:
    """Returns the first study that knows the roles which the user gives to a table's columns."""
    roles = {text.partition("=")[0] for text in columns}
    modules = {study.name: study.load("audit") for study in project.studies}
    predicates = {name: getattr(module, "takes_columns", None) for name, module in modules.items()}
    return next((name for name, predicate in predicates.items() if predicate and predicate(roles, given)), None)


_KINDS_OF_OPTION = {
    "revision": ("id",),
    "prompt": ("folder", "id", "address"),
    "system": ("folder", "id", "address"),
    "served": ("address",),
    "concurrency": ("address",),
    "key": ("address",),
    "label": ("folder", "id", "file"),
    "column": ("file",),
    "raters": ("file",),
    "outcome": ("file",),
    "baseline_condition": ("file",),
    "control_condition": ("file",),
}
"""The kinds of input that each option applies to."""


def _check_options(given: "Given", arguments: argparse.Namespace) -> None:
    """Refuses an option that does not apply to the input."""
    for option, kinds in _KINDS_OF_OPTION.items():
        if getattr(arguments, option) and given.kind not in kinds:
            raise FairnessError(
                f"--{option.replace('_', '-')} applies only to: {', '.join(kinds)}; {given.name} is {given.description}"
            )


def study_of(project: "Project", given: "Given", asked: str | None, *, certain: bool = False) -> "AnyStudy":
    """Returns the study that can audit the input: the requested one, or else the first. With `certain` (the user
    named columns, groups or a benchmark), the study itself reports what does not fit.

    Raises:
        FairnessError: no study can audit it, or the requested one cannot.
    """
    modules = [(study, study.load("audit")) for study in project.studies]
    known = [study.name for study, module in modules if module]
    if asked is not None and asked not in known:
        raise FairnessError(f"--study: {unknown('study', asked, known)}")
    for study, module in sorted(modules, key=lambda entry: not getattr(entry[1], "FIRST", False)):
        if module and asked in (None, study.name) and (certain or module.takes(given)):
            if asked is None:
                print(f"{given.description}: {study.title.lower()}", file=sys.stderr)
            return study
    hint = next((getattr(module, "HINT", "") for study, module in modules if study.name == asked), "")
    refusal = f"{asked} does not audit" if asked else "no study audits"
    header = given.columns[0] if len(given.columns) == 1 else ""
    separator = next((sign for sign in ";|" if sign in header), "")
    one_column = f"Its columns are separated by '{separator}'" if separator else "The file has only one column"
    raise FairnessError(
        f"{given.name}: {given.description}, which {refusal}; expected a language model, an encoder-decoder, a "
        "sequence classifier, an address, or a file with a column 'response', 'score' or 'text_id', with raters and "
        "their labels, or with groups and outcomes"
        + (f". If it is {hint}" if hint and given.kind == "file" else "")
        + (f". {one_column}: separate columns by commas (.csv) or tabs" if header else "")
    )
