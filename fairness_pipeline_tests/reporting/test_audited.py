"""The hashes of what was audited: each changes with its own thing, and with nothing else."""

from pathlib import Path

from fairness_pipeline.lineage.lineage import Lineage
from fairness_pipeline.project.project import Project
from fairness_pipeline.project.study import studies
from fairness_pipeline.reporting.audited import audited_by
from fairness_pipeline.workspace.lake import Lake
from fairness_pipeline_tests.cli.test_first_impression import bot, quick
from fairness_pipeline_tests.commands import change, command
from fairness_pipeline_tests.local_server import serve

__all__ = ["quick"]
KEY = {"dimension": "gender", "model": "ours"}


def hashes() -> dict[str, str]:
    project = Project("audit")
    study = next(study for study in studies() if study.name == "dialogue_fairness")
    return dict(audited_by(Lineage(project), Lake(project.workspace), study, KEY).sha256)


def test_each_hash_is_of_its_own_thing(quick: Project, data: Path) -> None:
    said = ["I see"]
    with serve(bot(lambda context: f"{said[0]}, {len(context) % 7}")) as address:

        def audited(*options: str) -> dict[str, str]:
            words = ("audit", f"{address}/v1", "--name", "ours", "--dimension", "gender", "--workers", "1", *options)
            done = command(*words)
            assert done.returncode == 0, done.stdout + done.stderr
            return hashes()

        before = audited()
        contexts = Lake(quick.workspace).content("context_pairs", {"corpus": "everyday", "dimension": "gender"})
        assert (set(before), before["contexts"]) == ({"model", "answers", "contexts", "margins"}, contexts)
        said[0] = "Well"
        changed = audited("--ask-again")
    assert {name for name in before if changed[name] != before[name]} == {
        "answers"
    }  # asked later, it is the same model
    change(data / "profiles" / "audit.yaml", lambda profile: profile["dialogue_fairness"].update(
        significance={"margins": {"rates": {"cohens_h": 0.2}}}
    ))  # fmt: skip
    assert {name for name, own in hashes().items() if own != changed[name]} == {"margins"}
