"""The gate: it needs new answers and measures with enough power, and compares with a baseline."""

import json
import os
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from fairness_pipeline.lineage.lineage import Lineage
from fairness_pipeline.lineage.plan import Plan, Selection
from fairness_pipeline.lineage.query_epochs import begin_query_epochs, end_query_epochs
from fairness_pipeline.lineage.state import State
from fairness_pipeline.project.project import Project
from fairness_pipeline.reporting.audited import audited_by
from fairness_pipeline.reporting.results import could_be_biased
from fairness_pipeline.workspace.lake import Lake
from fairness_pipeline.workspace.query_epochs import open_query_epochs, write_query_epoch
from fairness_pipeline_tests.cli.test_first_impression import FEMALE
from fairness_pipeline_tests.commands import change, command
from fairness_pipeline_tests.conftest import write_small_audit
from fairness_pipeline_tests.local_server import chat, serve

GENDER = {"dimension": "gender", "model": "our-bot"}


def says(context: str, share: int) -> str:
    """Insults `share` percent of the women; everybody else gets one of seven neutral answers."""
    lot = sum(map(ord, context)) % 100
    harmed = lot < share and FEMALE & set(re.findall(r"[a-z']+", context.lower()))
    return "shut up, you idiot" if harmed else f"I see, {lot % 7}"


class Bot:
    """An endpoint whose bias can be changed while it runs, and which counts its requests."""

    def __init__(self) -> None:
        self.share, self.requests = 100, 0

    def __call__(self, request: BaseHTTPRequestHandler) -> None:
        self.requests += request.command == "POST"
        chat(lambda context: says(context, self.share))(request)


@pytest.fixture
def audited(data: Path) -> Iterator[tuple[Bot, Callable[..., object]]]:
    """A bot behind an address, and a function that audits it with further options."""
    write_small_audit(data, ["gender"], pairs=60)
    server = Bot()
    with serve(server) as address:
        yield (
            server,
            lambda *options: command("audit", f"{address}/v1", "--name", "our-bot", "--workers", "1", *options),
        )


def audited_hashes() -> dict[str, str]:
    """The hashes of what was audited; each must change with its own subject only."""
    project = Project("audit")
    (study,) = [study for study in project.studies if study.name == "dialogue_fairness"]
    return dict(audited_by(Lineage(project), Lake(project.workspace), study, GENDER).sha256)


def test_answers_of_yesterday_pass_no_gate(
    audited: tuple[Bot, Callable[..., object]], tmp_path: Path, data: Path
) -> None:
    """A bias that is fixed and put back: the gate asks each time, and reports how the gap changed."""
    server, audit = audited
    baseline = tmp_path / "main.json"
    first = audit("--fail-on", "biased", "--write-baseline", str(baseline))
    assert first.returncode == 3, first.stderr
    hashes = audited_hashes()
    lake = Lake(Project("audit").workspace)
    contexts = lake.card("context_pairs", {"corpus": "everyday", "dimension": "gender"}).content
    assert (set(hashes), hashes["contexts"]) == ({"model", "answers", "contexts", "margins"}, contexts)
    requests = server.requests
    server.share = 0
    fixed = audit("--fail-on", "biased", "--baseline", str(baseline))
    assert (fixed.returncode, server.requests) == (0, 2 * requests), fixed.stderr
    assert audited_hashes() == {
        **hashes,
        "answers": lake.card("responses", GENDER).content,
    }  # asked later, it is the same model
    assert audited_hashes() != hashes
    assert re.search(r"Offence rate: biased -> never seen; the gap shrank by \d+ points \(\d+ to \d+\)", fixed.stdout)
    assert re.search(r"\d+ of \d+ verdicts of the gate could not have been biased", fixed.stdout)
    assert audit("--fail-on", "biased", "--strict", "--reuse").returncode == 1
    server.share = 100
    assert audit("--fail-on", "worse", "--baseline", "previous").returncode == 3
    assert server.requests == 3 * requests
    again = audit("--fail-on", "worse", "--baseline", "previous", "--reuse")
    assert again.returncode == 3, again.stdout  # the run just refused is not the previous one
    listed = command("results", "--profile", "audit", "--against", "previous", "--format", "json").stdout
    (grown,) = [row for row in json.loads(listed) if row["measure"] == "offense_rate"]
    assert grown["change"].startswith("the gap grew by ") and grown["change_low"] > 0 and grown["change_p_holm"] < 0.05
    known = audit("--fail-on", "worse", "--baseline", str(baseline), "--reuse")  # as biased as the baseline
    assert known.returncode == 0, known.stderr
    kept = audit("--fail-on", "biased", "--reuse")
    assert (kept.returncode, server.requests) == (3, 3 * requests)
    hashes, margins = audited_hashes(), {"rates": {"cohens_h": 0.2}}
    change(
        data / "profiles" / "audit.yaml",
        lambda profile: profile["dialogue_fairness"].update(significance={"margins": margins}),
    )
    assert {name for name, value in audited_hashes().items() if value != hashes[name]} == {"margins"}
    assert "reused; --ask-again asks anew" in kept.stdout


def test_a_baseline_is_read_before_anything_is_asked(
    audited: tuple[Bot, Callable[..., object]], tmp_path: Path
) -> None:
    server, audit = audited
    (tmp_path / "wrong.json").write_text('{"made": 3}', encoding="utf-8")
    for name, message in (
        ("none.json", "none.json: cannot be read: No such file or directory; check the path"),
        ("wrong.json", "wrong.json: expected a file that --write-baseline wrote; fairness_pipeline: Field required"),
        ("previous", "--baseline previous: no run is kept yet; run once without, or name a file"),
        ("2026", "--baseline 2026: no run is kept yet; run once without, or name a file"),
    ):
        path = str(tmp_path / name) if name.endswith(".json") else name
        done = audit("--baseline", path)
        assert (done.returncode, message in done.stderr) == (1, True), done.stderr
    assert server.requests == 0


OPTIONS = (
    ("--strict", "--strict says which verdicts --fail-on must see; add --fail-on biased"),
    ("--reuse", "--reuse says which answers --fail-on judges; add --fail-on biased"),
    ("--fail-on biased --reuse --ask-again", "--reuse and --ask-again say opposite things; leave one out"),
    ("--fail-on worse", "--fail-on worse needs a baseline: add --baseline FILE, or --baseline previous"),
    ("--baseline-key k.pem", "--baseline-key says who must have signed the baseline; add --baseline FILE"),
    ("--write-baseline none/x.json", "--write-baseline: there is no folder"),
)


@pytest.mark.parametrize(("options", "message"), OPTIONS, ids=lambda value: str(value)[:30])
def test_options_that_belong_together(data: Path, options: str, message: str) -> None:
    done = command("audit", "http://localhost:1/v1", *options.split())
    assert (done.returncode, message in done.stderr) == (1, True), done.stderr


@pytest.fixture
def endpoints(data: Path) -> Project:
    """The profile `audit` in two dimensions, with an endpoint that was never asked."""
    write_small_audit(data, ["gender", "race"], pairs=60)
    models = Project("audit").workspace / "models"
    models.mkdir(parents=True)
    (models / "our-bot.yaml").write_text(
        "{architecture: endpoint, studies: [dialogue_fairness], corpus: everyday, endpoint: {base_url: "
        "'http://localhost:1/v1', model: bot}}", encoding="utf-8",
    )  # fmt: skip
    return Project("audit")


def plan(dimension: str | None = None) -> Plan:
    return Plan(Lineage(Project("audit")), Selection("dialogue_fairness", dimension, "our-bot"))


def test_only_a_stopped_run_goes_on_with_its_own_answers(endpoints: Project) -> None:
    subject, workspace = ("dialogue_fairness", "our-bot"), endpoints.workspace

    def begin(dimension: str | None = None) -> str:
        begin_query_epochs(plan(dimension), None, keep=True)
        return open_query_epochs(workspace)[subject]

    write_query_epoch(workspace, *subject, "2026-11-01T00:00:00+00:00")  # closed: all was answered then
    first = begin("gender")
    assert first > "2026-11-02"
    assert begin() == first  # a stopped run
    assert begin_query_epochs(plan(), None, keep=False) == {"our-bot": datetime.fromisoformat(first)}
    assert begin_query_epochs(plan(), None, keep=False, resume=False) == {}  # --fail-on biased --ask-again
    failed = [step for step in plan("gender").steps if step.name == "responses"]
    end_query_epochs(plan("gender"), failed)
    assert subject in open_query_epochs(workspace)  # some answers are missing
    end_query_epochs(plan("gender"), [step for step in plan("gender").steps if step.name == "sentiment"])
    assert subject not in open_query_epochs(workspace)
    # No run of this epoch selected race; gender is asked again all the same.
    assert begin() >= first and subject in open_query_epochs(workspace)
    old = datetime.now(UTC) - timedelta(hours=1, minutes=1)
    write_query_epoch(workspace, *subject, old.isoformat(timespec="seconds"), is_open=True)
    assert begin() > old.isoformat()  # a run that was stopped long ago


@pytest.mark.verify
def test_answers_that_are_too_old_are_asked_anew(audited: tuple[Bot, Callable[..., object]], data: Path) -> None:
    server, audit = audited
    assert audit().returncode == 0
    requests, project = server.requests, Project("audit")
    old = (datetime.now(UTC) - timedelta(days=2, hours=1)).timestamp()
    lake = Lake(project.workspace)
    for table in ("responses", "no_effect_responses"):
        for path in lake.partitions(table):
            os.utime(path, (old, old))
    again = ("run", "--profile", "audit", "--study", "dialogue_fairness", "--workers", "1")
    assert command(*again, "--dry-run").stdout.startswith("0 of ")
    change(data / "profiles" / "audit.yaml", lambda profile: profile.update(max_answer_age="2d"))
    assert State(Lineage(Project("audit")), lake).changes("responses", GENDER) == [
        "its answers are 2 days old, more than max_answer_age allows"
    ]
    assert command(*again).returncode == 0
    assert server.requests == 2 * requests
    assert not State(Lineage(Project("audit")), lake).stale("dialogue_significance", GENDER)
    change(data / "profiles" / "audit.yaml", lambda profile: profile.update(max_answer_age="1m"))
    for table in ("responses", "no_effect_responses"):
        for path in lake.partitions(table):
            os.utime(path, (old, old))
    refused = command(*again, "--fail-on", "biased", "--reuse")
    assert refused.returncode == 1 and server.requests == 2 * requests
    assert "--reuse: those of our-bot are 2 days old, older than max_answer_age in audit.yaml allows" in refused.stderr
    change(data / "profiles" / "audit.yaml", lambda profile: profile.update(max_answer_age="two days"))
    wrong = command(*again)
    assert "max_answer_age: expected a time such as 30m, 12h or 7d" in wrong.stderr


ROW = {
    "verdict": "inconclusive", "note": "", "value_a": 10.0, "value_b": 12.0, "unit": "percent", "n": 400, "ci_low": -5.0,
    "ci_high": 1.0, "p_paired": 0.2, "minimum_detectable": 5.0,
}  # fmt: skip


@pytest.mark.parametrize(
    ("changed", "could"),
    [
        ({}, True),
        ({"n": 7, "verdict": "biased"}, False),  # too few pairs, whatever the verdict
        ({"minimum_detectable": 131.0}, False),  # no two rates differ by so much
        ({"minimum_detectable": 131.0, "unit": "score"}, True),
        ({"value_a": 0.0, "value_b": 0.0}, False),
        ({"note": "5 exchanged words are too few to tell; 8 at least"}, False),
        ({"ci_low": None, "p_paired": 1.0}, False),
        ({"ci_low": None, "p_paired": 0.4}, True),  # whether answers can be told apart
        ({"verdict": "fair"}, True),
    ],
)
def test_a_verdict_that_could_have_been_biased(changed: dict[str, object], could: bool) -> None:
    assert could_be_biased({**ROW, **changed}) is could
