"""`init`: writes a profile and the file of its subject, with comments, as a starting point."""

import argparse
import os
from pathlib import Path
from typing import Any

import yaml

from fairness_pipeline.cli.audit import PROFILE, study_of
from fairness_pipeline.cli.commands import Command
from fairness_pipeline.foundation import paths
from fairness_pipeline.foundation.errors import FairnessError


def add(command: Command) -> None:
    """Adds the command."""
    init = command(
        "init",
        _init,
        "Write a commented profile, and a file for what it audits.",
        example="my-audit --model ./my-model",
        default_profile=PROFILE,
    )
    init.add_argument("name", help="the profile's name")
    init.add_argument(
        "--model", dest="text", metavar="MODEL", help="what to audit, as for 'audit' (default: a small model, trained)"
    )
    init.add_argument("--study", help="the study to use, if several can audit it")
    init.add_argument("--force", action="store_true", help="replace files that are there")
    init.set_defaults(
        prompt=None, system=None, served=None, key=None, concurrency=None, revision=None, label=[], keep_empty=False
    )


def _init(arguments: argparse.Namespace) -> int:
    from fairness_pipeline.cli.given import look_at, name_of
    from fairness_pipeline.project.project import Project
    from fairness_pipeline.project.study import studies

    paths.check_key(arguments.name, "NAME")
    project = Project(arguments.profile)
    if arguments.text is None:
        starters = {candidate.name: candidate for candidate in studies() if hasattr(candidate.load("audit"), "STARTER")}
        if arguments.study not in (None, *starters):
            raise FairnessError(
                f"--study: '{arguments.study}' needs a model to start from (--model); without one: "
                f"{', '.join(starters)}"
            )
        study = starters[arguments.study or next(iter(starters))]
        starter = _module(study)
        key, document, comment = f"{arguments.name}-{starter.NOUN}", starter.STARTER, starter.STARTER_COMMENT
    else:
        given = look_at(arguments.text)
        if given.kind == "file":
            raise FairnessError(
                f"--model: {arguments.text} is a file; use `fairness-pipeline audit`, which needs no profile"
            )
        study = study_of(project, given, arguments.study)
        key, comment = name_of(given.name), f"{given.description}: {given.name}"
        document = _module(study).specification(project.parts[study.name], given, arguments)
    module = _module(study)
    folder = _folder()
    files = {
        folder / module.KIND / f"{key}.yaml": _commented(comment, document, module.MODEL_COMMENTS),
        folder / "profiles" / f"{arguments.name}.yaml": module.PROFILE.format(
            name=arguments.name, key=key, corpus=document.get("corpus", "")
        ) + (getattr(module, "SPLITS", "") if document.get("training") else ""),
    }  # fmt: skip
    for path in files:
        if path.exists() and not arguments.force:
            raise FairnessError(f"{path} already exists; choose another name, or add --force")
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        print(f"written: {path}")
    Project(arguments.name)  # checks what was just written
    print(f"now: fairness-pipeline run --profile {arguments.name}")
    return 0


def _module(study: Any) -> Any:
    return study.load("audit")


def _folder() -> Path:
    """Returns the folder for a user's own files.

    Raises:
        FairnessError: the package is installed and no folder is named.
    """
    folder = paths.data_folders()[0]
    if not os.environ.get("FAIRNESS_DATA") and folder.parent.name == paths.PACKAGE:
        raise FairnessError(
            "FAIRNESS_DATA: set it to your own folder for profiles and models (mkdir audits; export "
            "FAIRNESS_DATA=$PWD/audits)"
        )
    return folder


def _commented(comment: str, document: dict[str, Any], explanations: dict[str, str]) -> str:
    """Returns YAML with a comment above it, and an explanation after each key that has one."""
    text = yaml.safe_dump(document, sort_keys=False, allow_unicode=True)
    lines = [f"# {comment}", "# Every key with its meaning: docs/reference.md."]
    for line in text.splitlines():
        explanation = explanations.get(line.strip().split(":")[0])
        lines.append(f"{line}   # {explanation}" if explanation else line)
    return "\n".join(lines) + "\n"
