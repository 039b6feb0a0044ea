"""`forget`: removes from a workspace what a user added: answers, scores, a model audited without a file."""

import argparse
import shutil

from fairness_pipeline.cli.commands import Command
from fairness_pipeline.foundation.errors import FairnessError


def add(command: Command) -> None:
    """Adds the command."""
    forget = command("forget", _forget, "Take back an imported file, or a model given to 'audit'.", example="my-bot")
    forget.add_argument("name", help="the name under which it was imported or audited")
    forget.add_argument("--study", help="only this study")


def _forget(arguments: argparse.Namespace) -> int:
    from fairness_pipeline.project.project import Project
    from fairness_pipeline.workspace.imports import drop_import

    project = Project(arguments.profile)
    paths_by_study = {
        study.name: part.given
        for study in project.studies
        if (part := project.parts[study.name]) and arguments.study in (None, study.name)
    }
    paths = [paths[arguments.name] for paths in paths_by_study.values() if arguments.name in paths]
    if not paths:
        known = sorted({name for paths in paths_by_study.values() for name in paths})
        raise FairnessError(
            f"nothing named '{arguments.name}' was given to profile '{project.name}'; given so far: "
            f"{', '.join(known) or 'nothing'}. To remove a model of the profile, edit {project.path}"
        )
    for path in paths:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            drop_import(path)
        print(f"removed: {path}")
    print("its tables are kept but hidden; the next reports leave it out")
    return 0
