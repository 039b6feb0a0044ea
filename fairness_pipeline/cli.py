"""The command `fairness-pipeline`."""

import argparse
import csv
import json
import os
import shutil
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairness_pipeline.errors import FairnessError

if TYPE_CHECKING:
    import pyarrow as pa

    from fairness_pipeline.defs.walk import Step, Walk
    from fairness_pipeline.lake import Lake
    from fairness_pipeline.project import Project

_BIASED = 2
REPORTS = ("dialogue_fairness_report", "equity_report")
_LITTLE = 1 << 20  # bytes


def main() -> None:
    """Runs the command line; exits with 0 when all is done, 1 when something failed, 2 when `--fail-on` bites."""
    arguments = _parser().parse_args()
    os.environ["FAIRNESS_PROFILE"] = arguments.profile
    try:
        status = arguments.command(arguments)
    except FairnessError as error:
        print(f"fairness-pipeline: {error}", file=sys.stderr)
        status = 1
    except BrokenPipeError:
        sys.stderr.close()
        status = 1
    except KeyboardInterrupt:
        print("\nfairness-pipeline: stopped; run the same command again to go on from here", file=sys.stderr)
        status = 130
    sys.exit(status)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="fairness-pipeline", description="Audit dialogue and language models for social bias."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, run: Callable[[argparse.Namespace], int], text: str) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=text, description=text)
        default = os.environ.get("FAIRNESS_PROFILE") or "sample"
        added.add_argument("--profile", default=default, help="which profile (default: %(default)s)")
        added.set_defaults(command=run)
        return added

    run = command("run", _run, "Make what is missing or stale, then print the verdicts.")
    run.add_argument("--study", help="only this study")
    run.add_argument("--dimension", help="only this dimension")
    run.add_argument("--model", help="only this model or sentiment system")
    run.add_argument(
        "--all-dimensions",
        action="store_true",
        help="debias in all dimensions, not only those of the profile's 'debias'",
    )
    run.add_argument("--select", metavar="ASSET", help="only this asset and what it is made from")
    run.add_argument("--force", action="store_true", help="make also what is up to date")
    run.add_argument("--dry-run", action="store_true", help="say what would run and why, and stop")
    run.add_argument("--ask-again", action="store_true", help="ask endpoints and unpinned models anew")
    run.add_argument("--fail-on", choices=["biased"], help="exit with status 2 if any verdict is this")

    results = command("results", _results, "Print the significance tables.")
    results.add_argument("--study", help="dialogue_fairness (the default) or sentiment_equity")
    for axis in ("dimension", "model"):
        results.add_argument(f"--{axis}", help=f"only this {axis}")
    results.add_argument(
        "--against", metavar="TIME", help="beside what was found then: a time such as 2026-11-20, or 'previous'"
    )
    sql = command("sql", _sql, "Query the tables with SQL (DuckDB); each table is a view.")
    sql.add_argument("query", help="for example: select * from dialogue_significance where dimension = 'gender'")
    for printing in (results, sql):
        printing.add_argument("--format", choices=["table", "csv", "json"], default="table")

    pairs = command("export-pairs", _export_pairs, "Write the contexts that a model elsewhere is to answer.")
    pairs.add_argument("--dimension", required=True)
    pairs.add_argument("--corpus", help="which corpus (may be left out where the profile has one)")
    pairs.add_argument("--output", metavar="FILE", required=True, help=".csv or .jsonl")
    imported = command("import-responses", _import_responses, "Take a model's answers to exported pairs from a file.")
    imported.add_argument("file", help=".csv or .jsonl with pair_id, side and response")
    imported.add_argument("--model", required=True, help="a name for what answered")
    imported.add_argument("--dimension", required=True)
    imported.add_argument("--keep-empty", action="store_true", help="take empty responses as responses without words")
    imported.add_argument("--corpus", help="which corpus (may be left out where the profile has one)")

    sentences = command(
        "export-sentences", _export_sentences, "Write the sentences that a system elsewhere is to score."
    )
    sentences.add_argument("--output", metavar="FILE", required=True, help=".csv or .tsv")
    scores = command("import-scores", _import_scores, "Take a sentiment system's scores from a file.")
    scores.add_argument("file", help=".csv or .tsv with sentence_id or sentence, score, and affect if not valence")
    scores.add_argument("--system", required=True, help="a name for what scored")
    released = command("check-sentences", _check_sentences, "Hold the released Equity Evaluation Corpus against ours.")
    released.add_argument("file", help="the authors' CSV file")

    command("report", _report, "Print the paths of the HTML reports.")
    ui = command("ui", _ui, "Open Dagster on the profile's workspace.")
    ui.add_argument("--port", default="3000")
    ui.add_argument("--host", default="127.0.0.1")
    return parser


def _run(arguments: argparse.Namespace) -> int:
    from sqlalchemy.exc import OperationalError

    from fairness_pipeline.console import RunDisplay, print_equity_verdicts, print_verdicts
    from fairness_pipeline.definitions import defs
    from fairness_pipeline.defs.instance import open_instance
    from fairness_pipeline.defs.resources import current_project, listen
    from fairness_pipeline.defs.walk import Selection, Walk
    from fairness_pipeline.lake import Lake
    from fairness_pipeline.reporting.equity_results import equity_audits
    from fairness_pipeline.reporting.results import dialogue_audits

    if arguments.select and arguments.fail_on:
        raise FairnessError("--fail-on looks at verdicts, --select may make none; leave one out")
    if arguments.ask_again and (arguments.select or arguments.dimension):
        raise FairnessError("--ask-again asks whole models; leave out --select and --dimension")
    project = current_project()
    selection = Selection(
        arguments.study, arguments.dimension, arguments.model, arguments.select, arguments.all_dimensions
    )
    walk = Walk(project, defs, selection, force=arguments.force)
    if arguments.ask_again or (arguments.force and not arguments.select and not arguments.dimension):
        _begin_rounds(walk, arguments.model, keep=not arguments.dry_run)
        walk = Walk(project, defs, selection, force=arguments.force)
    if arguments.dry_run:
        for step in walk.stale:
            print(f"{step.label}: {step.reason}")
        print(f"{len(walk.stale)} of {len(walk.steps)} partitions would run; {_requests(walk)}")
        return 0

    started = time.monotonic()
    display = RunDisplay(project.name, len(walk.stale), len(walk.steps))
    listen(display)
    try:
        with display, open_instance(project) as instance:
            outcomes = [display.ended(outcome) for outcome in walk.run(instance, display.starting)]
    except (OperationalError, OSError) as error:  # Dagster's own record of runs; a table's trouble is an outcome
        reason = error.orig if isinstance(error, OperationalError) else error.strerror
        full = shutil.disk_usage(project.workspace).free < _LITTLE
        raise FairnessError(
            f"{project.workspace}: Dagster's record of runs cannot be written "
            + ("(the disk is full): make room, or set" if full else f"({reason}); check the folder, or set")
            + " FAIRNESS_HOME to another disk, and run again: it goes on from here"
        ) from None
    bad = [outcome for outcome in outcomes if outcome.state in ("failed", "skipped")]
    made = sum(outcome.state == "made" for outcome in outcomes)
    lake = Lake(project.workspace)
    lost = [outcome.step for outcome in bad]
    current = {(step.name, *step.key.values()) for step in walk.steps if step not in lost}
    audits = [
        audit
        for audit in dialogue_audits(project, lake)
        if ("dialogue_significance", audit.dimension, audit.model) in current
    ]
    if audits:
        print_verdicts(project, audits)
    equity = [
        audit
        for audit in equity_audits(project, lake)
        if ("equity_significance", audit.dimension, audit.system) in current
    ]
    if equity:
        print_equity_verdicts(project, equity)
    fresh = len(walk.steps) - made - len(bad)
    print(f"\n{made} made, {fresh} up to date, {len(bad)} not made, {time.monotonic() - started:.0f} s")
    for name in dict.fromkeys(step.name for step in walk.steps if step.name in REPORTS):
        if lake.document_path(name).exists():
            print(f"Report: {lake.document_path(name)}")
    for outcome in bad:
        print(f"{outcome.state}: {outcome.step.label}: {outcome.detail}", file=sys.stderr)
    if bad:
        return 1
    return _gate(project, lake, arguments) if arguments.fail_on else 0


def _begin_rounds(walk: "Walk", only: str | None, *, keep: bool) -> None:
    """Begins a new round of asking for all of a walk (or the `only` one of it) that may have changed.

    One whose round is not through goes on in it: so does a run that was stopped and is called again.
    """
    from fairness_pipeline.rounds import write_round

    project, asked = walk.project, {"responses": "model", "equity_scores": "system"}

    def names(steps: list["Step"]) -> list[str]:
        return list(dict.fromkeys(step.key[asked[step.name]] for step in steps if step.name in asked))

    changing = {key for kind in (project.models, project.systems) for key, own in kind.items() if own.may_change}
    waiting = names(walk.out_of_date)
    now = datetime.now(UTC).isoformat(timespec="seconds")
    for key in names(walk.steps):
        if key in changing and key not in waiting and only in (None, key):
            project.rounds[key] = now
            if keep:
                write_round(project.workspace, key, now)


def _gate(project: "Project", lake: "Lake", arguments: argparse.Namespace) -> int:
    """The exit status of `--fail-on`, over all that was asked for.

    Raises:
        FairnessError: some of it was not measured.
    """
    from fairness_pipeline.project import MODELS_STUDY, SYSTEMS_STUDY
    from fairness_pipeline.reporting.equity_results import equity_audits
    from fairness_pipeline.reporting.results import dialogue_audits

    models = [
        audit
        for audit in dialogue_audits(project, lake)
        if arguments.study in (None, MODELS_STUDY)
        and arguments.dimension in (None, audit.dimension)
        and arguments.model in (None, audit.model)
        and (
            arguments.dimension
            or arguments.all_dimensions
            or project.made_by_default({"dimension": audit.dimension, "model": audit.model})
        )
    ]
    systems = [
        audit
        for audit in equity_audits(project, lake)
        if arguments.study in (None, SYSTEMS_STUDY)
        and arguments.dimension in (None, audit.dimension)
        and arguments.model in (None, audit.system)
    ]
    missing = [f"{audit.dimension} x {audit.model}" for audit in models if not audit.measured]
    missing += [f"{audit.dimension} x {audit.system}" for audit in systems if not audit.measured]
    if missing or not models + systems:
        raise FairnessError(
            f"--fail-on: not measured: {', '.join(missing) or 'anything'}; a gate that saw nothing must not open"
        )
    rows = [(f"{audit.dimension} {audit.model} {row['measure']}", row) for audit in models for row in audit.rows]
    rows += [(f"{audit.dimension} {audit.system} {row['affect']}", row) for audit in systems for row in audit.headline]
    found = [name for name, row in rows if row["verdict"] == arguments.fail_on]
    if found:
        print(f"--fail-on {arguments.fail_on}: {', '.join(found)}", file=sys.stderr)
    return _BIASED if found else 0


def _requests(walk: "Walk") -> str:
    """How many requests the steps to come would make of endpoints, where that is known."""
    known, unknown = walk.endpoint_requests()
    if not known and not unknown:
        return "no request to an endpoint"
    later = f", and those of {unknown} partitions whose pairs are not made yet" if unknown else ""
    return f"{known:,} requests to endpoints{later} (fewer where a stopped run has left answers)"


def _results(arguments: argparse.Namespace) -> int:
    from fairness_pipeline.lake import Lake
    from fairness_pipeline.project import SYSTEMS_STUDY, Project
    from fairness_pipeline.reporting.equity_results import equity_audits, equity_rows
    from fairness_pipeline.reporting.history import DIALOGUE, EQUITY, against, find_entry
    from fairness_pipeline.reporting.results import dialogue_audits, result_rows

    project = Project(arguments.profile)
    project.check_selection(arguments.study, arguments.dimension, arguments.model)
    lake = Lake(project.workspace)
    shown: tuple[str, ...]
    if arguments.study == SYSTEMS_STUDY or arguments.model in project.systems or not project.models:
        kept, every = EQUITY, equity_rows(equity_audits(project, lake))
        shown = ("dimension", "system", "affect", "templates", "subset", "n", "value_a", "value_b", "difference",
                 "ci_low", "ci_high", "p_holm", "verdict", "p")  # fmt: skip
    else:
        kept, every = DIALOGUE, result_rows(dialogue_audits(project, lake))
        shown = ("dimension", "model", "measure", "unit", "n", "value_a", "value_b", "difference", "ci_low", "ci_high",
                 "p", "p_holm", "verdict", "paper_verdict")  # fmt: skip
    rows = [
        row
        for row in every
        if arguments.dimension in (None, row["dimension"]) and arguments.model in (None, row[kept.place[1]])
    ]
    if arguments.against:
        rows = against(project.workspace, kept, find_entry(project.workspace, kept, arguments.against, every), rows)
    elif arguments.format == "table":
        rows = [{name: row.get(name) for name in shown} for row in rows]
    _print_rows(list(dict.fromkeys(name for row in rows for name in row)), rows, arguments.format)
    return 0


def _sql(arguments: argparse.Namespace) -> int:
    import duckdb

    from fairness_pipeline.project import Project
    from fairness_pipeline.sql import connect

    try:
        with connect(Project(arguments.profile).workspace) as connection:
            result = connection.execute(arguments.query)
            names = _distinct([column[0] for column in result.description or []])
            _print_rows(names, [dict(zip(names, row, strict=True)) for row in result.fetchall()], arguments.format)
    except duckdb.Error as error:
        raise FairnessError(f"the query failed: {error}") from None
    return 0


def _export_pairs(arguments: argparse.Namespace) -> int:
    from fairness_pipeline.files import replacing
    from fairness_pipeline.models.imported import FORMS, write_pairs

    path = Path(arguments.output)
    if path.suffix not in FORMS:
        raise FairnessError(f"--output: expected a file that ends in {' or '.join(FORMS)}, found {path.name}")
    _, corpus, pairs = _pairs(arguments)
    with replacing(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as stream:
        write_pairs(pairs, path.suffix, stream)
    print(f"{path}: {pairs.num_rows:,} pairs, {2 * pairs.num_rows:,} contexts; fill in 'response', then:")
    where = f"--profile {arguments.profile} --corpus {corpus} --dimension {arguments.dimension}"
    print(f"fairness-pipeline import-responses FILE --model NAME {where}")
    return 0


def _import_responses(arguments: argparse.Namespace) -> int:
    import pyarrow.parquet as pq
    import yaml

    from fairness_pipeline.files import replacing
    from fairness_pipeline.models.imported import read_responses
    from fairness_pipeline.paths import check_key

    project, corpus, pairs = _pairs(arguments)
    check_key(arguments.model, "--model")
    known = project.models.get(arguments.model)
    if known and (known.architecture != "imported" or known.corpus != corpus):
        raise FairnessError(
            f"--model: profile '{project.name}' has a model '{arguments.model}' already ({known.architecture}, corpus "
            f"{known.corpus}); choose another name"
        )
    responses = read_responses(Path(arguments.file), pairs, keep_empty=arguments.keep_empty)
    path = project.imported_responses(arguments.model, arguments.dimension)
    with replacing(path) as temporary:
        pq.write_table(responses, temporary)
    if not known:
        specification = {"architecture": "imported", "studies": ["dialogue_fairness"], "corpus": corpus}
        with replacing(path.with_name("model.yaml")) as temporary:
            temporary.write_text(yaml.safe_dump(specification, sort_keys=False), encoding="utf-8")
    print(f"{responses.num_rows:,} responses of '{arguments.model}' in dimension '{arguments.dimension}'; now:")
    print(f"fairness-pipeline run --profile {project.name} --model {arguments.model}")
    return 0


def _export_sentences(arguments: argparse.Namespace) -> int:
    from fairness_pipeline.corpora.equity_sentences import equity_sentences
    from fairness_pipeline.files import replacing
    from fairness_pipeline.models.systems.score_files import write_sentences
    from fairness_pipeline.models.systems.specification import SCORE_FORMS
    from fairness_pipeline.project import Project

    path = Path(arguments.output)
    if path.suffix not in SCORE_FORMS:
        raise FairnessError(f"--output: expected a file that ends in {' or '.join(SCORE_FORMS)}, found {path.name}")
    Project(arguments.profile)  # the command to come next names it
    sentences = equity_sentences()
    with replacing(path) as temporary:
        write_sentences(sentences, temporary, path.suffix)
    print(
        f"{path}: {sentences.num_rows:,} sentences, the last half reworded (all or none of it); fill in 'score', then:"
    )
    print(f"fairness-pipeline import-scores FILE --system NAME --profile {arguments.profile}")
    return 0


def _import_scores(arguments: argparse.Namespace) -> int:
    from fairness_pipeline.corpora.equity_sentences import equity_sentences
    from fairness_pipeline.files import replacing
    from fairness_pipeline.models.systems.score_files import read_scores, unread_columns
    from fairness_pipeline.paths import check_key
    from fairness_pipeline.project import Project

    project, path = Project(arguments.profile), Path(arguments.file)
    check_key(arguments.system, "--system")
    taken = arguments.system in project.systems and arguments.system not in project.score_files
    if taken or arguments.system in project.models:
        kind = "system" if taken else "model"
        raise FairnessError(
            f"--system: profile '{project.name}' has a {kind} '{arguments.system}' already; choose another name"
        )
    scores = read_scores(path, equity_sentences())
    known = project.score_files.get(arguments.system)
    target = (known or project.workspace / "scores" / arguments.system).with_name(arguments.system + path.suffix)
    with replacing(target) as temporary:
        shutil.copyfile(path, temporary)
    if known and known != target:
        known.unlink()
    affects, unread = ", ".join(scores["affect"].unique().to_pylist()), ", ".join(unread_columns(path))
    print(f"{scores.num_rows:,} scores of '{arguments.system}' ({affects}) in {target}; now:")
    if unread:
        print(f"(columns that were not read: {unread})", file=sys.stderr)
    print(f"fairness-pipeline run --profile {project.name} --model {arguments.system}")
    return 0


def _check_sentences(arguments: argparse.Namespace) -> int:
    from fairness_pipeline.corpora.equity_sentences import check_released

    print(f"{arguments.file}: all {check_released(Path(arguments.file)):,} sentences are generated here too")
    return 0


def _pairs(arguments: argparse.Namespace) -> tuple["Project", str, "pa.Table"]:
    """The project, the corpus asked for, and its pairs."""
    from fairness_pipeline.lake import Lake
    from fairness_pipeline.project import Project

    project = Project(arguments.profile)
    corpora = list(project.corpora)
    corpus = arguments.corpus or (corpora[0] if len(corpora) == 1 else None)
    for kind, value, choices in (("dimension", arguments.dimension, project.dimensions), ("corpus", corpus, corpora)):
        if value not in choices:
            wrong = f"unknown {kind} '{value}'" if value else f"--{kind} is needed"
            raise FairnessError(f"{wrong} in profile '{project.name}'; known: {', '.join(choices)}")
    assert corpus is not None
    return (
        project,
        corpus,
        Lake(project.workspace).read("context_pairs", {"corpus": corpus, "dimension": arguments.dimension}),
    )


def _report(arguments: argparse.Namespace) -> int:
    from fairness_pipeline.lake import Lake
    from fairness_pipeline.project import Project

    lake = Lake(Project(arguments.profile).workspace)
    made = [path for path in map(lake.document_path, REPORTS) if path.exists()]
    if not made:
        raise FairnessError(f"no report yet; run: fairness-pipeline run --profile {arguments.profile}")
    print("\n".join(map(str, made)))
    return 0


def _ui(arguments: argparse.Namespace) -> int:
    from fairness_pipeline.defs.instance import home
    from fairness_pipeline.project import Project

    os.environ["DAGSTER_HOME"] = str(home(Project(arguments.profile)))
    print(
        f"Dagster on profile '{arguments.profile}': http://{arguments.host}:{arguments.port} (Ctrl-C ends it)",
        flush=True,
    )
    where = ["--host", arguments.host, "--port", arguments.port]
    os.execv(
        sys.executable,
        [sys.executable, "-W", "ignore", "-m", "dagster", "dev", "-m", "fairness_pipeline.definitions", *where],
    )


def _distinct(names: list[str]) -> list[str]:
    """Column names, numbered from their second use on, so that a join keeps all its columns."""
    uses: dict[str, int] = {}
    distinct = []
    for name in names:
        uses[name] = uses.get(name, 0) + 1
        distinct.append(name if uses[name] == 1 else f"{name}_{uses[name]}")
    return distinct


def _print_rows(names: list[str], rows: list[dict[str, Any]], form: str) -> None:
    if form == "json":
        print(json.dumps(rows, indent=1, default=str))
    elif form == "csv":
        writer = csv.DictWriter(sys.stdout, names, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    else:
        from fairness_pipeline.console import print_table

        print_table(names, rows)


if __name__ == "__main__":
    main()
