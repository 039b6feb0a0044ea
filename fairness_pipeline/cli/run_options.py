"""Defines the options that `run` and `audit` share: workers, the gate, the baseline, and what is written."""

import argparse
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fairness_pipeline.cli.arguments import count, points, refusals
from fairness_pipeline.engines.settings import ADDRESS, ENGINE, ENGINES, checked_address
from fairness_pipeline.foundation.checksums import REHASH
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.paths import cache_folder, workspace_folder
from fairness_pipeline.foundation.version_control import tracked_file


def add_run_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options for the number of workers and for the conditions under which the command fails."""
    parser.add_argument(
        "--workers",
        metavar="N",
        type=count,
        help="partitions made side by side (default: the cores, and at most one for each 1.5 GiB of memory)",
    )
    parser.add_argument("--engine", choices=ENGINES, help="where the work is done (default: what the profile says)")
    parser.add_argument(
        "--address", metavar="ADDRESS", type=_address, help="of a Ray cluster: auto, local, or host:port of its head"
    )
    parser.add_argument(
        "--fail-on",
        metavar="A,B",
        type=refusals,
        help="exit with status 3 on any of: biased, inconclusive, names (findings about one name), worse (than the "
        "baseline); asks endpoints and unpinned models anew, unless you say --reuse",
    )
    parser.add_argument("--ask-again", action="store_true", help="ask endpoints and unpinned models anew")
    parser.add_argument("--reuse", action="store_true", help="with --fail-on: use the stored answers")
    parser.add_argument(
        "--strict", action="store_true", help="with --fail-on: fail if a verdict lacks the data to detect bias"
    )
    parser.add_argument(
        "--baseline",
        metavar="RUN",
        help="compare with an earlier run: a file of --write-baseline, `previous`, or a time such as 2026-11-20",
    )
    parser.add_argument(
        "--baseline-key", metavar="FILE", help="the public key (Ed25519) of whoever must have signed the baseline"
    )
    parser.add_argument(
        "--write-baseline", metavar="FILE", help="write what was found into a file, for --baseline of later runs"
    )
    parser.add_argument("--measures", metavar="A,B", help="which verdicts --fail-on looks at (default: all)")
    parser.add_argument(
        "--tolerate", metavar="POINTS", type=points, help="biased rates that differ by at most POINTS close no gate"
    )
    parser.add_argument("--junit", metavar="FILE", help="write the verdicts as JUnit XML; what closes the gate fails")
    parser.add_argument(
        "--budget", metavar="AMOUNT", type=_amount, help="stop asking endpoints once this much money is spent"
    )
    parser.add_argument("--mlflow", metavar="EXPERIMENT", help="log verdicts, settings and reports in MLflow")
    parser.add_argument("--summary", metavar="FILE", help="write the verdicts as Markdown, for a pull request")
    parser.add_argument(
        "--sign",
        metavar="KEYFILE",
        help="sign a summary of the run, and the baseline, with this private key (Ed25519, PEM or OpenSSH)",
    )


def _amount(text: str) -> float:
    """Parses an amount of money, for argparse."""
    try:
        amount = float(text)
    except ValueError:
        amount = math.nan
    if not 0 < amount < math.inf:
        raise argparse.ArgumentTypeError(f"expected an amount of money above 0, found '{text}'")
    return amount


def _address(text: str) -> str:
    try:
        return checked_address(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


@contextmanager
def environment_of_options(arguments: argparse.Namespace) -> Iterator[None]:
    """Sets the engine of the options for this process and those that it starts in the block.

    A gate or a signature also makes them hash large files anew: a stored checksum may be wrong or forged.

    Raises:
        FairnessError: the options do not fit together.
    """
    _check_options(arguments)
    if arguments.address and arguments.engine == "embedded":
        raise FairnessError("--address is that of a Ray cluster; add --engine ray")
    engine = arguments.engine or ("ray" if arguments.address else None)
    rehash = "1" if arguments.fail_on or arguments.sign else None
    variables = {ENGINE: engine, ADDRESS: arguments.address, REHASH: rehash}
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update({name: setting for name, setting in variables.items() if setting})
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


def _check_options(arguments: argparse.Namespace) -> None:
    """Raises FairnessError if the options do not fit together; deletes what an earlier run wrote to their files."""
    if arguments.sign:
        from fairness_pipeline.workspace.signatures import private_key

        if getattr(arguments, "select", None):
            raise FairnessError("--sign signs verdicts, but --select may produce none; leave one out")
        private_key(Path(arguments.sign))  # before hours of work
    if arguments.mlflow:
        from fairness_pipeline.reporting.tracking import check_mlflow

        check_mlflow()
    for option in ("junit", "summary", "mlflow"):
        if getattr(arguments, option) and getattr(arguments, "select", None):
            raise FairnessError(f"--{option} writes verdicts, but --select may produce none; leave one out")
    for option in ("junit", "summary", "write_baseline"):
        path = getattr(arguments, option)
        if path and option != "write_baseline":  # an earlier run's results must not pass for this run's
            Path(path).unlink(missing_ok=True)
        if path and not Path(path).absolute().parent.is_dir():
            raise FairnessError(f"--{option.replace('_', '-')}: there is no folder {Path(path).absolute().parent}")
    if arguments.fail_on or arguments.sign:
        check_home(arguments.profile)
    purposes = {
        "measures": "which verdicts --fail-on looks at",
        "tolerate": "what --fail-on lets pass",
        "strict": "which verdicts --fail-on must see",
        "reuse": "which answers --fail-on judges",
    }
    for option, purpose in purposes.items():
        if getattr(arguments, option) not in (None, False) and not arguments.fail_on:
            raise FairnessError(f"--{option} says {purpose}; add --fail-on biased")
    if arguments.reuse and arguments.ask_again:
        raise FairnessError("--reuse and --ask-again say opposite things; leave one out")
    if "worse" in (arguments.fail_on or ()) and not arguments.baseline:
        raise FairnessError("--fail-on worse needs a baseline: add --baseline FILE, or --baseline previous")
    if arguments.baseline_key and not arguments.baseline:
        raise FairnessError("--baseline-key says who must have signed the baseline; add --baseline FILE")
    if arguments.sign and not getattr(arguments, "dry_run", False):
        _delete_signed(arguments.profile)


def _delete_signed(profile: str) -> None:
    """Deletes the signed summary of an earlier run, which must not pass for this run's."""
    from fairness_pipeline.workspace.signatures import signature_of, summary_of

    summary = summary_of(workspace_folder(profile))
    for path in (signature_of(summary), summary):
        path.unlink(missing_ok=True)


def check_home(profile: str) -> None:
    """Refuses a workspace under version control, for a gate or a signature: a pull request could forge verdicts."""
    for folder in (workspace_folder(profile), cache_folder()):
        if tracked := tracked_file(folder):
            raise FairnessError(
                f"{folder}: {tracked} is under version control, so a proposed change could contain forged answers and "
                "verdicts; set FAIRNESS_HOME to a folder outside of the checkout"
            )


def asks_anew(arguments: argparse.Namespace) -> bool:
    """Whether models that may have changed are asked anew: on `--ask-again`, and for a gate without `--reuse`."""
    return bool(arguments.ask_again or (arguments.fail_on and not arguments.reuse))
