"""The content of tables counts, not only their inputs: verdicts follow the answers that they judge."""

import re
from pathlib import Path

import dagster as dg
import pytest
from safetensors.numpy import load_file, save_file

from fairness_pipeline.cli.gate import examine, gate
from fairness_pipeline.cli.rule import Rule
from fairness_pipeline.defs.assets import Log
from fairness_pipeline.defs.runs import Maker
from fairness_pipeline.foundation import paths
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.progress import Progress
from fairness_pipeline.lineage.lineage import Lineage
from fairness_pipeline.lineage.plan import Plan, Selection
from fairness_pipeline.lineage.units import Unit
from fairness_pipeline.measures.dialogue.registry import measures
from fairness_pipeline.project.project import Project
from fairness_pipeline.workspace.lake import Lake
from fairness_pipeline_tests.commands import change, command, content, planned, run
from fairness_pipeline_tests.local_server import chat, serve
from fairness_pipeline_tests.studies.test_any_model import RETRIEVAL, add_endpoint
from fairness_pipeline_tests.studies.test_sentiment_equity import audited, write_scores

__all__ = ["audited"]  # a fixture
BOT = {"dimension": "gender", "model": "bot"}
RUDE_TO = (
    "she", "her", "woman", "mother", "daughter", "wife", "aunt", "mom", "niece", "sister", "grandma", "granddaughter",
    "stepdaughter", "mother-in-law", "landlady", "waitress", "policewoman", "businesswoman", "grandmother", "fiancee",
    "stepmother", "mummy",
)  # fmt: skip
"""Most of the words for women; with few of them the verdict would depend on single words."""


POLITE = ("that is nice", "nice to hear that")


class Moody:
    """A bot that can be rude to women, and can be polite."""

    def __init__(self) -> None:
        self.rude = True

    def __call__(self, context: str) -> str:
        words = context.lower().replace(".", " ").split()
        return "shut up you stupid idiot" if self.rude and set(words) & set(RUDE_TO) else POLITE[len(words) % 2]


def offence(workspace: Path) -> tuple[float, str]:
    rows = Lake(workspace).read("dialogue_significance", BOT).to_pylist()
    return next((row["difference"], row["verdict"]) for row in rows if row["measure"] == "offense_rate")


def test_a_verdict_is_never_older_than_the_answers(tiny: Project, data: Path) -> None:
    server = Moody()
    with serve(chat(server)) as address:
        add_endpoint(data, address)
        run()
        difference, verdict = offence(tiny.workspace)
        assert difference < -20
        assert verdict == "biased"
        assert command("run", "--fail-on", "biased").returncode == 3

        # The answers alone are asked for again and differ: all that depends on them is stale, and is made.
        server.rude = False
        run("--select", "responses", "--force")
        assert [line.split()[0] for line in planned()] == [
            *(measure.table for measure in measures()), "distinguishable_answers", "named_groups", "dialogue_breakdown", "verdict_variations", "dialogue_significance",
            "dialogue_fairness_report",
        ]  # fmt: skip
        assert "responses gender bot changed" in run("--dry-run").stdout
        run()
        assert offence(tiny.workspace)[0] == 0.0
        assert offence(tiny.workspace)[1] != "biased"
        assert command("run", "--fail-on", "biased").returncode == 0


@pytest.mark.verify
def test_damaged_answers_are_asked_for_again(tiny: Project, data: Path) -> None:
    server = Moody()
    with serve(chat(server)) as address:
        add_endpoint(data, address)
        server.rude = False
        run()

        # A damaged table that the endpoint makes again is another table, too.
        server.rude = True
        table = Lake(tiny.workspace).table_path("responses", BOT)
        table.write_bytes(table.read_bytes()[:-40])
        run("--select", "responses")
        assert "dialogue_significance gender bot" in planned()
        run()
        assert offence(tiny.workspace)[1] == "biased"

        # The same answers make nothing else stale.
        before = Lake(tiny.workspace).table_path("dialogue_significance", BOT).stat().st_mtime_ns
        run("--select", "responses", "--force")
        assert planned() == []
        table.write_bytes(table.read_bytes()[:-40])
        assert "politeness gender bot: responses dimension=gender/model=bot is made again" in run("--dry-run").stdout
        result = run()
        assert "unchanged" in result.stdout
        assert Lake(tiny.workspace).table_path("dialogue_significance", BOT).stat().st_mtime_ns == before


def test_another_checkpoint_makes_other_answers(made: Project) -> None:
    """A checkpoint that was made again (on another machine, say) and differs."""
    assert planned() == []
    lake, key = Lake(made.workspace), {"model": "seq2seq"}
    card = lake.card("dialogue_models", key)
    (weights,) = lake.current_folder("dialogue_models", key).glob("*.safetensors")
    tensors = load_file(weights)
    save_file({name: tensor[::-1].copy() for name, tensor in tensors.items()}, weights)
    lake.write_card("dialogue_models", key, card)
    assert lake.card("dialogue_models", key).content != card.content
    assert planned()[:2] == ["responses gender seq2seq", "responses dialect seq2seq"]
    assert not [line for line in planned() if line.startswith(("dialogue_models", "context"))]

    # With the old weights nothing has to be made.
    save_file(tensors, weights)
    lake.write_card("dialogue_models", key, card)
    assert planned() == []

    # A truncated checkpoint is made again.
    weights.write_bytes(weights.read_bytes()[:1000])
    assert planned()[0] == "dialogue_models seq2seq"
    result = run()
    assert "unchanged" in result.stdout
    assert planned() == []


@pytest.mark.verify
def test_a_score_file_with_equal_scores_makes_nothing_else_stale(audited: Project, tmp_path: Path) -> None:
    exported = tmp_path / "sentences.csv"
    command("export", "sentences", "--output", str(exported))
    scores = write_scores(audited.workspace / "scores" / "mine.csv", exported, shift=0.1)
    run("--model", "mine")
    scores.write_text(scores.read_text().replace(",0.5", ",0.50"))
    assert set(planned("--model", "mine")) == {
        "equity_scores mine", "equity_report",
        *(f"{table} {d} mine" for table in ("equity_pairs", "equity_significance") for d in ("gender", "race")),
    }  # fmt: skip
    result = run("--model", "mine")
    assert "2 made" in result.stdout  # the scores, and the report, which names their inputs
    scores.write_text(scores.read_text().replace(",0.50", ",0.6"))
    assert "6 made" in run("--model", "mine").stdout


@pytest.mark.verify
def test_a_gate_does_not_open_on_stale_results(tiny: Project, data: Path) -> None:
    """A base on request is made without being selected where a debiased model is made from it."""
    profile = data / "profiles" / "tiny.yaml"

    def edit(document: dict) -> None:
        document["models"] = {"retrieval": RETRIEVAL, "retrieval-cda": {}}
        document["dialogue_fairness"].update(debias=["gender"], on_request=["retrieval"])
        document["dimensions"] = ["gender"]

    change(profile, edit)
    run()
    assert "dialogue_models retrieval" not in planned()
    change(profile, lambda document: document["models"]["retrieval"]["training"].update(learning_rate=0.02))
    assert "dialogue_models retrieval" in planned()
    result = command("run", "--fail-on", "biased")
    assert result.returncode in (0, 3), result.stderr
    looked_at = re.search(r"The gate looked at \d+ verdicts of 1 audit ", result.stdout + result.stderr)
    assert looked_at  # a base on request is made, but judged only when it is selected
    assert planned() == []

    # Partitions that could not be brought up to date keep the gate closed.
    change(profile, lambda document: document["dialogue_fairness"].update(measures={"offence_classifier": "/no/such"}))
    result = command("run", "--fail-on", "biased")
    assert result.returncode == 1
    failed = re.search(r"^failed: (.*) and 1 more: ", result.stderr)
    assert failed and len(named := failed[1].split(", ")) == 3
    assert set(named) < {
        "politeness gender retrieval", "politeness gender retrieval-cda", "instrument_check tiny gender",
        "parrot_check tiny gender",
    }  # fmt: skip  # in the order of work, which follows measured durations
    assert {f"{table} gender {model}" for table in ("politeness", "dialogue_significance")
            for model in ("retrieval", "retrieval-cda")} <= set(planned())  # fmt: skip
    plan = Plan(Lineage(Project("tiny")), Selection())
    with pytest.raises(FairnessError, match="out of date: gender × retrieval-cda; the gate stays closed"):
        gate(plan, Rule(), examine(plan, Rule(), plan.state))


@pytest.mark.verify
def test_asking_again_asks_all_dimensions_whatever_else_is_stale(tiny: Project, data: Path) -> None:
    server = Moody()
    with serve(chat(server)) as address:
        add_endpoint(data, address)
        change(data / "profiles" / "tiny.yaml", lambda profile: profile.update(dimensions=["gender", "dialect"]))
        run()
        assert "responses gender bot" not in planned()
        change(data / "profiles" / "tiny.yaml", lambda d: d["dialogue_fairness"].update(pairs={"maximum": 50}))
        lines = planned("--ask-again")
        assert {"responses gender bot", "responses dialect bot"} <= set(lines)
        server.rude = False
        run("--ask-again")
        assert offence(tiny.workspace)[0] == 0.0
        assert planned() == []


@pytest.mark.verify
def test_a_report_follows_all_that_it_shows(audited: Project, data: Path) -> None:
    """It shows labels, the order of the profile, the papers' tables, the files that a corpus is made from."""
    run()
    assert planned() == []
    profile = data / "profiles" / "tiny.yaml"
    change(profile, lambda document: document.update(dimensions=document["dimensions"][::-1]))
    assert planned() == ["dialogue_fairness_report", "equity_report"]
    run()
    text = (paths.yaml_files("dimensions")["gender"]).read_text(encoding="utf-8")
    (data / "dimensions" / "gender.yaml").write_text(text.replace("label: Gender", "label: Zebra"), encoding="utf-8")
    run()
    for name in ("dialogue_fairness_report", "equity_report"):
        assert "Zebra" in Lake(audited.workspace).document_path(name).read_text(encoding="utf-8")
    (data / "published").mkdir()
    table = paths.data_file("published/dialogue_fairness.csv").read_text(encoding="utf-8")
    (data / "published" / "dialogue_fairness.csv").write_text(table + "\n", encoding="utf-8")
    assert planned() == ["dialogue_fairness_report"]
    grammar = paths.data_file("grammars/twitter_sample.yaml").read_text(encoding="utf-8")
    (data / "grammars" / "twitter_sample.yaml").write_text(grammar + "# a remark\n", encoding="utf-8")
    result = run()
    assert "unchanged" in result.stdout
    card = Lake(audited.workspace).card("twitter_dialogues", {"corpus": "tiny"})
    page = Lake(audited.workspace).document_path("dialogue_fairness_report").read_text(encoding="utf-8")
    assert all(sha in page for sha in card.inputs["settings"]["files"].values())
    assert planned() == []


def test_a_checkpoint_that_is_made_again_stays_until_the_new_one_is_complete(made: Project) -> None:
    """Another run may be reading the old one."""
    lake, key = Lake(made.workspace), {"model": "seq2seq"}
    before = content(made.workspace)
    present: list[bool] = []

    class Watching(Log):
        def progress(self, asset: str, partition: dict[str, str]) -> Progress:
            return lambda done, total, note: present.append(
                lake.card("dialogue_models", key) is not None and lake.current_folder("dialogue_models", key).is_dir()
            )

    with dg.DagsterInstance.ephemeral() as instance:
        (result,) = Maker(Project("tiny"), instance, Watching()).make(Unit(0, ["dialogue_models"], key, True))
    assert result.state == "made"
    assert len(present) > 2
    assert all(present)
    assert content(made.workspace) == before
