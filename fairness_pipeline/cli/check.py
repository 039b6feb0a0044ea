"""`check`: reads the whole workspace again, and names every file that is not as it was written."""

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from fairness_pipeline.cli.commands import Command
from fairness_pipeline.foundation.checksums import wrong_record
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.plain_text import number_of, visible
from fairness_pipeline.workspace.imports import wrong_imports
from fairness_pipeline.workspace.lake import UNSEALED, Key, Lake

_LONGEST_ERROR = 300

if TYPE_CHECKING:
    from fairness_pipeline.cli.rule import Requirement
    from fairness_pipeline.lineage.lineage import Lineage


def add(command: Command) -> None:
    """Adds the command."""
    check = command("check", _check, "Read the whole workspace again; name files that were edited or damaged.")
    check.add_argument(
        "--sentences",
        metavar="FILE",
        help="instead: check that the released Equity Evaluation Corpus (a CSV) has the sentences made here",
    )
    check.add_argument(
        "--signed",
        metavar="FILE",
        help="instead: whether this is sound: a summary of run --sign, or the manifest.json of an evidence pack",
    )
    check.add_argument("--key", metavar="FILE", help="the signer's public key (PEM or OpenSSH); with --signed")
    check.add_argument(
        "--require",
        metavar="RULE",
        type=_requirement,
        help="with --signed: exit with status 3 unless a gate with this rule, such as 'fail-on=biased', was passed",
    )


def _requirement(text: str) -> "Requirement":
    from fairness_pipeline.cli.rule import requirement

    return requirement(text)


def _check(arguments: argparse.Namespace) -> int:
    if bool(arguments.signed) != bool(arguments.key):
        raise FairnessError("--signed and --key belong together: a summary, and the public key of who signed it")
    if arguments.require and not arguments.signed:
        raise FairnessError("--require says which gate a signed summary must have passed; add --signed and --key")
    if arguments.sentences:
        from fairness_pipeline.corpora.sentiment.equity_sentences import check_released

        count = check_released(Path(arguments.sentences))
        print(f"{arguments.sentences}: all {count:,} sentences are generated here too")
        return 0
    if arguments.signed:
        return _check_signed(Path(arguments.signed), Path(arguments.key), arguments.require)
    from rich.console import Console
    from rich.progress import Progress

    from fairness_pipeline.lineage.lineage import Lineage
    from fairness_pipeline.project.project import Project

    project = Project(arguments.profile)
    lineage, lake = Lineage(project), Lake(project.workspace)
    partitions = [(name, key) for name in lineage.assets for key in lineage.keys(name) if lake.has(name, key)]
    start = time.monotonic()
    with Progress(console=Console(stderr=True), transient=True) as display:
        wrong = problems(lake, display.track(partitions, description="partitions"))
    wrong += [*wrong_checksums(lineage), *wrong_imports(project.workspace)]
    for line in wrong:
        print(visible(line))
    size = sum(path.stat().st_size for path in _files(project.workspace))
    print(
        f"{number_of(len(partitions), 'partition')} read in {time.monotonic() - start:.1f} s "
        f"({size / 1e6:,.0f} MB in the workspace), {len(wrong)} not as written"
    )
    if lake.format.partitions == UNSEALED and (unsealed := sum(lake.unsealed(name, key) for name, key in partitions)):
        print(f"{number_of(unsealed, 'partition')} made by an earlier version, without a seal: read as written")
    if strange := _strange_files(lake, partitions):
        print(
            f"{number_of(len(strange), 'file')} in tables/ {'was' if len(strange) == 1 else 'were'} not read, because "
            f"the profile does not make {'it' if len(strange) == 1 else 'them'}, such as {strange[0]}"
        )
    if wrong:
        print(
            "The data named above cannot be trusted. Delete them (or restore a copy), then: fairness-pipeline run "
            f"--profile {project.name}"
        )
    return 1 if wrong else 0


def _check_signed(file: Path, key: Path, required: "Requirement | None") -> int:
    """Checks the signature, then the gate, then that the profile's workspace, if it is here, holds what was signed."""
    from fairness_pipeline.cli.rule import REFUSED
    from fairness_pipeline.foundation.paths import workspace_folder
    from fairness_pipeline.reporting.evidence.manifest import NAME as MANIFEST
    from fairness_pipeline.reporting.summary import differences, parsed_summary
    from fairness_pipeline.workspace.signatures import check_signature

    content = check_signature(file, key)
    if file.name == MANIFEST:
        return _check_pack(file, key, content, required)
    summary = parsed_summary(content, file)
    counts = Counter(str(row.get("verdict")) for row in summary.verdicts)
    verdicts = ", ".join(f"{count} {verdict}" for verdict, count in counts.most_common())
    print(f"{file}: signed with the key of {key}")
    print(visible(f"made {summary.made.isoformat()} with profile '{summary.profile}' ({verdicts})"))
    for audited in summary.audited:
        print(visible(f"SHA-256 of {audited.line}"))
    for imported in summary.imports:
        print(visible(f"SHA-256 of {imported.file}, imported as {imported.place}: {imported.original}"))
    print(visible(summary.gate.description))
    lacks = list(required.lacks(summary.gate)) if required else []
    for lack in lacks:
        print(visible(f"--require: the signed gate falls short: {lack}"))
    passed = not lacks and not summary.gate.status
    workspace = workspace_folder(summary.profile)
    if not workspace.is_dir():
        print(f"{workspace}: nothing is made here to compare with")
        return 0 if passed else REFUSED
    changed = differences(summary, Lake(workspace))
    for line in changed:
        print(visible(line))
    print(
        f"{workspace}: {number_of(len(summary.partitions), 'partition')} signed, {len(changed)} not as they were then"
    )
    return 1 if changed else 0 if passed else REFUSED


def _check_pack(file: Path, key: Path, content: bytes, required: "Requirement | None") -> int:
    """Checks that an evidence pack holds the files that its signed manifest lists, and no others."""
    from fairness_pipeline.reporting.evidence.manifest import Manifest, wrong_files

    if required:
        raise FairnessError("--require is about a run: check signed/summary.json of the pack with it")
    try:
        manifest = Manifest.model_validate_json(content)
    except ValueError as error:
        problem = visible(" ".join(str(error).split())[:_LONGEST_ERROR])
        raise FairnessError(
            f"{file}: signed with the key of {key}, but no list of files: {problem}; name the manifest.json of a pack"
        ) from None
    wrong = [*wrong_files(manifest, file.parent)]
    for line in wrong:
        print(visible(line))
    print(f"{file}: signed with the key of {key}; {number_of(len(manifest.files), 'file')} listed, {len(wrong)} wrong")
    if (run := file.parent / "signed" / "summary.json").exists():
        print(f"Did its run pass a gate? fairness-pipeline check --signed {run} --key {key} --require fail-on=biased")
    return 1 if wrong else 0


def check_as_written(profile: str, lake: Lake, partitions: Iterable[tuple[str, Key]]) -> None:
    """Reads partitions again before their verdicts are given or signed.

    Raises:
        FairnessError: some are not as they were written; they are named on standard error.
    """
    wrong = problems(lake, partitions)
    for line in wrong:
        print(visible(line), file=sys.stderr)
    if wrong:
        raise FairnessError(
            f"{number_of(len(wrong), 'partition')} not as written (above), so that no verdict is given; delete what is "
            "named, or restore it from a copy, and run again. All of the workspace: fairness-pipeline check --profile "
            f"{profile}"
        )


def problems(lake: Lake, partitions: Iterable[tuple[str, Key]]) -> list[str]:
    """Returns a line for each made partition that `Lake.verify` finds wrong."""
    lines = []
    for name, key in partitions:
        if lake.has(name, key) and (problem := lake.verify(name, key)):
            lines.append(f"{' '.join([name, *key.values()])}: {problem}")
    return lines


def wrong_checksums(lineage: "Lineage") -> list[str]:
    """Returns a line for each stored checksum that is not its file's: it makes old answers look up to date."""
    files = sorted(lineage.files())
    return [f"{record}: not the SHA-256 of {path}" for path in files if (record := wrong_record(path))]


def _strange_files(lake: Lake, partitions: Iterable[tuple[str, Key]]) -> list[Path]:
    """Returns the files in `tables/` that are no partition of the profile: nothing verifies them, but
    `sql --all` shows them."""
    known = {lake.table_path(name, key) for name, key in partitions}
    return sorted(path for path in (lake.root / "tables").rglob("*.parquet") if path not in known)


def _files(workspace: Path) -> list[Path]:
    folders = [workspace / part for part in ("tables", "checkpoints", "reports")]
    return [path for folder in folders for path in folder.rglob("*") if path.is_file()]
