"""`evidence`: writes an evidence pack, the results of an audit for others."""

import argparse
from pathlib import Path

from fairness_pipeline.cli.arguments import add_selection, selection
from fairness_pipeline.cli.commands import Command
from fairness_pipeline.foundation.errors import FairnessError


def add(command: Command) -> None:
    """Adds the command."""
    evidence = command(
        "evidence",
        _evidence,
        "Write what an audit hands to others: verdicts, cards, hashes.",
        example="--model our-bot",
    )
    add_selection(evidence)
    evidence.add_argument(
        "--sign", metavar="KEYFILE", help="sign the list of its files with this private key (Ed25519)"
    )
    evidence.add_argument("--output", metavar="FOLDER", help="where to (default: 'evidence' in the workspace)")


def _evidence(arguments: argparse.Namespace) -> int:
    from fairness_pipeline.cli.check import check_as_written
    from fairness_pipeline.cli.run_options import check_home
    from fairness_pipeline.foundation.plain_text import number_of
    from fairness_pipeline.lineage.lineage import Lineage
    from fairness_pipeline.lineage.plan import Selection
    from fairness_pipeline.project.project import Project
    from fairness_pipeline.reporting.evidence.facts import facts
    from fairness_pipeline.reporting.evidence.manifest import strange_files
    from fairness_pipeline.reporting.evidence.pack import write_archive, write_pack
    from fairness_pipeline.reporting.summary import differences, parsed_summary
    from fairness_pipeline.workspace.imports import wrong_imports
    from fairness_pipeline.workspace.lake import Lake
    from fairness_pipeline.workspace.signatures import private_key, sign, signature_of, summary_of

    project = Project(arguments.profile)
    lineage, lake = Lineage(project), Lake(project.workspace)
    key = private_key(Path(arguments.sign)) if arguments.sign else None
    if key:
        check_home(project.name)
        check_as_written(
            project.name, lake, [(name, partition) for name in lineage.assets for partition in lineage.keys(name)]
        )
        if wrong := next(wrong_imports(project.workspace), None):
            raise FairnessError(wrong)
    chosen = selection(arguments).resolved(project)
    contents = facts(lineage, lake, None if chosen == Selection() else chosen)
    if not any(subject.verdicts for subject in contents.subjects):
        raise FairnessError(f"nothing of that was measured yet; run: fairness-pipeline run --profile {project.name}")
    folder = Path(arguments.output) if arguments.output else project.workspace / "evidence"
    path = summary_of(project.workspace)
    summary = parsed_summary(path.read_bytes(), path) if path.exists() and signature_of(path).exists() else None
    changed = len(differences(summary, lake)) if summary else 0
    signed, gate = (path.parent, summary.gate) if summary else (None, None)
    files = write_pack(contents, folder, signed, gate, changed, signs=bool(key))
    for path in files[:2]:
        print(path)
    cards, sheets = (sum(path.parent.name == name for path in files) for name in ("model-cards", "data-sheets"))
    print(
        f"{number_of(cards, 'model card')}, {number_of(sheets, 'data sheet')}, {files[2].name} for machines: {folder}"
    )
    if contents.left_out:
        print(f"{number_of(contents.left_out, 'other audit')} of the profile left out, and the pack says so")
    stale = sum(verdict.stale for subject in contents.subjects for verdict in subject.verdicts)
    if stale:
        print(f"{number_of(stale, 'verdict')} out of date, and marked: 'fairness-pipeline run' makes them anew")
    if changed:
        print(f"{number_of(changed, 'partition')} changed since the run was signed, and the pack says so")
    if not summary:
        print("Not signed: fairness-pipeline run --sign KEYFILE signs a run, and the next pack holds the signature")
    for name in strange_files(folder, files):
        print(f"{name}: is in {folder} but not part of the pack; 'check --signed' will report it: remove it")
    if key:
        manifest = files[-1]
        files.append(sign(manifest, key))
        print(f"Signed: {manifest} and {files[-1].name}; whoever has the public key checks all files with:")
        print(f"fairness-pipeline check --signed {manifest} --key PUBLICKEY")
    print(f"All of it in one file: {write_archive(folder, files)}")
    return 0
