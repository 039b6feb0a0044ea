"""Takes debiased models through the whole lineage, and tests what is refused when their files are read."""

import json
import os
import re
import signal
import time
from pathlib import Path

import dagster as dg
import pyarrow.compute as pc
import pytest
import yaml

from fairness_pipeline.debiasing.dialogue import probes
from fairness_pipeline.debiasing.dialogue.registry import METHODS
from fairness_pipeline.defs.definitions import definitions
from fairness_pipeline.defs.partitions import to_dagster
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.measures.dialogue.measure import deciding
from fairness_pipeline.measures.dialogue.registry import is_gap
from fairness_pipeline.project.project import Project
from fairness_pipeline.reporting.results import audits_of
from fairness_pipeline.studies.dialogue_fairness.debiasing_section import quality_of
from fairness_pipeline.studies.dialogue_fairness.study import STUDY
from fairness_pipeline.workspace.lake import Lake
from fairness_pipeline_tests.commands import change, command, content, planned, process, run
from fairness_pipeline_tests.conftest import write_yaml
from fairness_pipeline_tests.debiasing.dialogue.tasks import ADVERSARIAL, CONTINUED, DET
from fairness_pipeline_tests.models import tiny_models

RETRIEVAL = {
    "corpus": "tiny",
    "retrieval": {"layers": 1, "heads": 1, "embedding": 8, "feed_forward": 8, "vocabulary": 300},
    "training": {"epochs": 1, "learning_rate": 0.01},
}
DEBIASED = {
    "seq2seq-cda": {},
    "seq2seq-wer": {},
    "seq2seq-debiased_chat": {"settings": {"disentanglement": DET, "adversarial": {**ADVERSARIAL, "every": 2}}},
    "retrieval": RETRIEVAL,
    "retrieval-filtered": {},
}


@pytest.fixture(autouse=True)
def _short_probes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shortens probes: their results are tested beside the probes, and only passed on here."""
    monkeypatch.setattr(probes, "_PROBE_STEPS", 50)


@pytest.fixture
def debiased(tiny: Project, data: Path) -> Project:
    """The tiny profile with every method, debiased in gender by default."""

    def edit(profile: dict) -> None:
        profile["models"].update(DEBIASED)
        profile["models"]["seq2seq"]["seq2seq"]["vocabulary"] = 450  # enough for its words of either group
        profile["dialogue_fairness"]["debias"] = ["gender"]

    change(data / "profiles" / "tiny.yaml", edit)
    return Project("tiny")


@pytest.mark.verify
def test_from_base_to_report(debiased: Project) -> None:
    """One long test, as each part needs the lake of the one before."""
    lines = planned()
    assert "debiased_dialogue_models gender seq2seq-cda" in lines
    assert not [line for line in lines if line.startswith("debiased_dialogue_models dialect")]
    assert "debiased_dialogue_models dialect seq2seq-cda" in planned("--all")
    assert "debiased_dialogue_models dialect seq2seq-wer" in planned("--dimension", "dialect")
    plan = planned("--model", "seq2seq-cda")
    assert "dialogue_models seq2seq" in plan
    assert "responses gender seq2seq" in plan  # what it is compared with
    assert not [line for line in plan if "-wer" in line or "retrieval" in line or "dialect seq2seq" in line]

    gender = ("--dimension", "gender")
    done = run(*gender)
    assert " 0 not made" in done.stdout
    lake = Lake(debiased.workspace)
    effects = lake.read("debiasing_effects", {"dimension": "gender", "model": "seq2seq-wer"})
    judged = lake.read("dialogue_significance", {"dimension": "gender", "model": "seq2seq-wer"})["measure"].to_pylist()
    gaps = set(filter(is_gap, judged)).intersection(debiased.parts["dialogue_fairness"].measures())
    assert set(effects["measure"].to_pylist()) == gaps | {"distinct_1", "distinct_2"}
    for model in ("seq2seq", "seq2seq-cda", "seq2seq-debiased_chat", "retrieval-filtered"):
        quality = quality_of(debiased.parts["dialogue_fairness"], lake, {"dimension": "gender", "model": model})
        assert quality.keys() >= {"bleu_1", "bleu_2", "bleu_3", "distinct_1", "distinct_2"}
    figures = lake.card("disentanglement", {"dimension": "gender", "model": "seq2seq-debiased_chat"}).figures
    assert 0 <= figures["accuracy_semantic"] <= 1
    answers = lake.read("responses", {"dimension": "gender", "model": "retrieval-filtered"})["response"]
    assert not pc.any(pc.match_substring(answers, "idiot")).as_py()
    page = (debiased.workspace / "reports" / "dialogue_fairness_report.html").read_text(encoding="utf-8")
    for text in (
        "seq2seq, debiased",
        "Liu 2022, table 3.2",
        "Gap left against quality",
        "content words alone",
        "Most frequent answer",
        "--all",
        "7.401",
        "table 3.5",
    ):
        assert text in page, text
    rows = json.loads(command("sql", "select count(*) as n from debiasing_effects", "--format", "json").stdout)
    assert rows == [{"n": 4 * 11}]
    assert planned(*gender) == []

    # Settings of a method make its own model stale, and the base stays.
    change(
        Path(os.environ["FAIRNESS_DATA"]) / "profiles" / "tiny.yaml",
        lambda profile: profile["models"].update({"seq2seq-wer": {"settings": {"k": 0.25}}}),
    )
    stale = planned(*gender)
    assert stale[0] == "debiased_dialogue_models gender seq2seq-wer"
    assert not [line for line in stale if "cda" in line or line.startswith(("dialogue_models", "disentanglement"))]
    change(
        Path(os.environ["FAIRNESS_DATA"]) / "profiles" / "tiny.yaml",
        lambda profile: profile["models"].update({"seq2seq-wer": {}}),
    )
    assert planned(*gender) == []


@pytest.mark.verify
def test_a_recipe_is_compared_with_its_base_and_its_controls(tiny: Project, data: Path) -> None:
    """Two seeds of each: a method's effects are judged over the seeds, beside the controls of the same dimension."""
    chat = {"settings": {"disentanglement": DET, "adversarial": ADVERSARIAL}, "dimensions": ["gender"]}
    models = {
        "seq2seq-leace": {},
        "seq2seq-mle": {"settings": CONTINUED, "dimensions": ["gender"]},
        "seq2seq-placebo": chat,
        "seq2seq-debiased_chat": chat,
    }

    def edit(profile: dict) -> None:
        profile["models"]["seq2seq"]["seeds"] = 2
        profile["models"]["seq2seq"]["seq2seq"]["vocabulary"] = 450
        profile["models"].update(models)
        profile["dialogue_fairness"]["debias"] = ["gender"]

    change(data / "profiles" / "tiny.yaml", edit)
    project = Project("tiny")
    part = project.parts["dialogue_fairness"]
    gender = {"dimension": "gender", "model": "seq2seq-debiased_chat"}
    assert part.controls.of(gender) == {
        method: {"dimension": "gender", "model": f"seq2seq-{method}"} for method in ("mle", "placebo")
    }
    assert part.controls.complete(gender)
    dialect = {**gender, "dimension": "dialect"}
    assert (part.controls.of(dialect), part.controls.complete(dialect)) == ({}, False)  # they are not made for that
    leace = {**gender, "model": "seq2seq-leace"}
    assert (part.controls.of(leace), part.controls.complete(leace)) == ({}, True)
    assert [key["model"] for key in part.baselines_of(gender)] == [
        "seq2seq", "seq2seq.seed2", "seq2seq-mle", "seq2seq-mle.seed2", "seq2seq-placebo", "seq2seq-placebo.seed2"
    ]  # fmt: skip
    few, *others = (
        line for line in STUDY.power_forecast(part, Lake(project.workspace), None) if line.startswith("cures: ")
    )
    named = "seq2seq-leace, seq2seq-mle, seq2seq-placebo, seq2seq-debiased_chat"
    assert few.startswith(f"cures: {named}: a cure needs")
    assert not others
    plan = planned("--model", "seq2seq-debiased_chat")
    for control in ("mle", "placebo"):
        assert f"debiased_dialogue_models gender seq2seq-{control}.seed2" in plan  # it belongs to the comparison
    assert not [line for line in plan if "leace" in line]
    assert " 0 not made" in run("--model", "seq2seq-debiased_chat").stdout
    lake = Lake(project.workspace)
    rows = {row["measure"]: row for row in lake.read("recipe_effects", gender).to_pylist()}
    judged = lake.read("recipe_significance", gender).to_pylist()
    assert set(rows) <= {row["measure"] for row in judged} and "diversity" in rows
    assert {row["control"] for row in rows.values()} <= {"seq2seq-mle", "seq2seq-placebo"}
    assert {row["seeds"] for row in rows.values()} == {2}
    diversity = {
        model: [
            {row["measure"]: row for row in lake.read("dialogue_significance", gender | {"model": seed}).to_pylist()}
            for seed in (model, f"{model}.seed2")
        ]
        for model in ("seq2seq", "seq2seq-debiased_chat")
    }
    before = [deciding(seed_rows, "diversity")["difference"] for seed_rows in diversity["seq2seq"]]
    assert rows["diversity"]["difference_before"] == pytest.approx(sum(before) / 2)
    page = (project.workspace / "reports" / "dialogue_fairness_report.html").read_text(encoding="utf-8")
    for text in ("Over the seeds", "seq2seq-mle", "held-out pairs", "Such a test detects"):
        assert text in page, text
    for selected in (seeds[:count] for seeds in diversity.values() for count in (1, 2)):
        # The values of both groups, beside the difference: of the first seed, and over both.
        of_a, of_b = (sum(seed["diversity"][f"value_{side}"] for seed in selected) / len(selected) for side in "ab")
        assert f"{of_a:.3g} / {of_b:.3g}</div>" in page
    rates = r"[\d.]+% / [\d.]+% \(base [\d.]+% / [\d.]+%\)"
    assert re.search(rf"most frequent answer \d+%, offence rate {rates}, negative {rates}; it did not pass", page)
    assert page.count("seq2seq, debiased") == 1  # one section for the recipe, not one a seed
    assert page.count("trained on, as a control") == 4  # the two seeds of both

    change(data / "profiles" / "tiny.yaml", lambda profile: profile["models"].pop("seq2seq-mle"))
    power_forecast = STUDY.power_forecast(Project("tiny").parts["dialogue_fairness"], lake, "gender")
    message = (
        "cures: seq2seq-debiased_chat has no control 'mle' in gender, so it cannot be called a cure; list a model of"
    )
    assert message in power_forecast[-1]


@pytest.mark.verify
def test_killed_in_the_middle_of_debiasing(debiased: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run in another order, killed in the middle, makes the same lake, byte for byte."""
    run()
    made = content(debiased.workspace)
    monkeypatch.setenv("FAIRNESS_HOME", str(tmp_path / "elsewhere"))
    run("--model", "seq2seq-debiased_chat", "--select", "disentanglement")
    _kill_during("debiased_dialogue_models", tmp_path / "elsewhere" / "tiny")
    run()
    assert content(tmp_path / "elsewhere" / "tiny") == made


def _kill_during(stage: str, workspace: Path) -> None:
    killed = process("run")
    while killed.poll() is None:
        if any((workspace / "checkpoints" / stage).rglob("training.safetensors")):
            killed.send_signal(signal.SIGKILL)
            break
        time.sleep(0.005)
    killed.communicate()
    assert killed.returncode == -signal.SIGKILL


def test_a_base_without_checkpoint_is_named(debiased: Project) -> None:
    asset, key = dg.AssetKey("debiased_dialogue_models"), {"dimension": "gender", "model": "retrieval-filtered"}

    def failure() -> str:
        job = definitions(debiased, everything=True).get_repository_def().get_implicit_job_def_for_assets([asset])
        partition = to_dagster(key)
        result = job.execute_in_process(partition_key=partition, asset_selection=[asset], raise_on_error=False)
        (event,) = [event for event in result.all_events if event.is_step_failure]
        return event.step_failure_data.user_failure_data.description

    assert "twitter_dialogues corpus=tiny has not been made yet" in failure()
    run("--select", "twitter_dialogues")
    assert (
        "dialogue_models model=retrieval has not been made yet; run: fairness-pipeline run --profile tiny --select"
        in failure()
    )


def refused(data: Path, name: str, model: dict, profile: dict | None = None) -> str:
    write_yaml(data / "models" / f"{name}.yaml", model)
    change(data / "profiles" / "tiny.yaml", lambda document: document["models"].update({name: profile or {}}))
    with pytest.raises(FairnessError) as error:
        Project("tiny")
    return str(error.value)


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ({"base": "seq2seq", "debiasing": "magic"}, f"debiasing: expected one of {', '.join(METHODS)}, found 'magic'"),
        ({"base": "seq2seq"}, "debiasing: expected one of"),
        ({"debiasing": "cda"}, "key 'base' is missing: the model that 'mine' is made from"),
        ({"base": "gpt9", "debiasing": "cda"}, "base: unknown model 'gpt9'; known: "),
        ({"base": "seq2seq-wer", "debiasing": "cda"}, "base: 'seq2seq-wer' is no model of"),
        ({"base": "seq2seq", "debiasing": "filtered"}, "'filtered' is not defined for architecture 'seq2seq' (of 'seq2seq'); it is for: retrieval"),
        ({"base": "retrieval", "debiasing": "mle"}, "'mle' is not defined for architecture 'retrieval'"),
        ({"base": "seq2seq-cda", "debiasing": "wer"}, "base: 'seq2seq-cda' is debiased itself"),
        ({"base": "seq2seq", "debiasing": "cda", "dimensions": ["age"]}, "dimensions: 'age' is none of"),
        ({"base": "seq2seq", "debiasing": "wer", "settings": {"k": -1}}, "settings.k: expected more than 0"),
        ({"base": "seq2seq", "debiasing": "wer", "settings": {"kk": 1}}, "line 4: unknown key 'settings.kk'; did you mean 'k'; expected one of: clip, k"),
        ({"base": "seq2seq", "debiasing": "cda", "settings": {"k": 1}}, "unknown key 'settings.k'"),
        ({"base": "seq2seq", "debiasing": "debiased_chat", "settings": {"disentanglement": {"hidden": 10}}}, "expected 'unbiased' and 'semantic' to add up to 'hidden'"),
        ({"base": "seq2seq", "debiasing": "cda", "corpus": "elsewhere"}, "corpus: expected that of 'seq2seq', tiny, found 'elsewhere'"),
        ({"base": ["seq2seq"], "debiasing": "cda"}, "base: '['seq2seq']' is no model of"),
        ({"base": "seq2seq", "debiasing": ["cda"]}, "debiasing: expected one of"),
        ({"base": "mine", "debiasing": "cda"}, "base: 'mine' cannot be made from itself"),
        ({"base": "seq2seq", "debiasing": "debiased_chat", "seq2seq": {"hidden": 32}}, "goes on from the weights of 'seq2seq', so it must keep the sizes of 'seq2seq'"),
        ({"base": "seq2seq", "debiasing": "cda", "dimension": ["gender"]}, "mine.yaml, line 3: unknown key 'dimension'"),
    ],
)  # fmt: skip
def test_what_is_refused_when_the_file_is_read(tiny: Project, data: Path, model: dict, expected: str) -> None:
    change(data / "profiles" / "tiny.yaml", lambda d: d["models"].update({"seq2seq-cda": {}, "retrieval": RETRIEVAL}))
    message = refused(data, "mine", model)
    assert expected in message
    assert "mine.yaml" in message


def test_bases_in_a_circle_are_refused(tiny: Project, data: Path) -> None:
    write_yaml(data / "models" / "theirs.yaml", {"base": "mine", "debiasing": "cda"})
    change(data / "profiles" / "tiny.yaml", lambda document: document["models"].update(theirs={}))
    assert "base: theirs -> mine -> theirs goes in a circle" in refused(
        data, "mine", {"base": "theirs", "debiasing": "cda"}
    )


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"debiasing": "filtered"}, "'filtered' is not defined for architecture 'seq2seq'"),
        ({"base": "nonsense"}, "base: unknown model 'nonsense'; known: "),
        ({"debiasing": "nonsense"}, "found 'nonsense'"),
        ({"settings": {"k": 1}}, "unknown key 'models.seq2seq-cda.settings.k'"),
    ],
)
def test_what_a_profile_changes_is_checked_as_well(tiny: Project, data: Path, changes: dict, expected: str) -> None:
    change(
        data / "profiles" / "tiny.yaml", lambda d: d["models"].update({"seq2seq-cda": changes, "retrieval": RETRIEVAL})
    )
    with pytest.raises(FairnessError) as error:
        Project("tiny")
    assert str(error.value).startswith(str(data / "profiles" / "tiny.yaml"))
    assert expected in str(error.value)


def test_a_model_for_some_dimensions_is_expected_in_those_alone(tiny: Project, data: Path) -> None:
    """Elsewhere it neither counts as missing in the report nor keeps a gate closed."""
    change(
        data / "profiles" / "tiny.yaml",
        lambda document: document["models"].update({"seq2seq-cda": {"dimensions": ["gender"]}}),
    )
    project = Project("tiny")
    audits = audits_of(STUDY, project.parts[STUDY.name], Lake(project.workspace))
    assert [a.key["dimension"] for a in audits if a.key["model"] == "seq2seq-cda"] == ["gender"]
    assert not [line for line in planned() if "dialect seq2seq-cda" in line]


@pytest.mark.verify
def test_a_comparison_with_other_tables_is_left_out_of_the_report(debiased: Project, data: Path) -> None:
    run("--model", "seq2seq-cda", "--dimension", "gender")
    report = debiased.workspace / "reports" / "dialogue_fairness_report.html"
    assert "seq2seq, debiased" in report.read_text(encoding="utf-8")
    change(data / "profiles" / "tiny.yaml", lambda document: document["dialogue_fairness"]["pairs"].update(maximum=50))
    run("--model", "seq2seq", "--dimension", "gender")
    page = report.read_text(encoding="utf-8")
    assert "seq2seq, debiased" not in page
    assert "Left out:" in page


def test_a_method_on_an_untrained_causal_lm_must_say_how_it_trains(tiny: Project, data: Path, tmp_path: Path) -> None:
    folder = tiny_models.causal_lm(tmp_path / "lm")
    base = {
        "architecture": "causal_lm", "studies": ["dialogue_fairness"], "corpus": "tiny", "huggingface": {"name": folder},
        "decoding": {"keep_empty": True, "max_tokens": 4},
    }  # fmt: skip
    write_yaml(data / "models" / "lm.yaml", base)
    change(data / "profiles" / "tiny.yaml", lambda document: document["models"].update({"lm": {}}))
    message = refused(data, "lm-cda", {"base": "lm", "debiasing": "cda"})
    assert "key 'training' is missing: 'lm' has none" in message
    training = {
        "optimiser": "adam",
        "learning_rate": 0.01,
        "clipping": 1.0,
        "batch_tokens": 4000,
        "epochs": 1,
        "patience": 1,
    }
    write_yaml(data / "models" / "lm-cda.yaml", {"base": "lm", "debiasing": "cda", "training": training})
    model = Project("tiny").parts["dialogue_fairness"].models["lm-cda"]
    assert (model.architecture, model.huggingface.name, model.trained) == ("causal_lm", folder, True)
    done = run("--model", "lm-cda", "--dimension", "gender", "--select", "responses")
    assert " 0 not made" in done.stdout
    assert Lake(tiny.workspace).card("responses", {"dimension": "gender", "model": "lm-cda"})


def test_a_debiased_model_takes_what_its_file_does_not_say_from_its_base(debiased: Project) -> None:
    base, made = (
        debiased.parts["dialogue_fairness"].models["seq2seq"],
        debiased.parts["dialogue_fairness"].models["seq2seq-cda"],
    )
    assert made.seq2seq == base.seq2seq
    assert made.training == base.training
    assert (made.base, made.debiasing, base.base) == ("seq2seq", "cda", None)
    assert "settings" not in base.identity()
    assert debiased.parts["dialogue_fairness"].base_of({"dimension": "gender", "model": "seq2seq-cda"}) == {
        "dimension": "gender",
        "model": "seq2seq",
    }
    assert debiased.parts["dialogue_fairness"].base_of({"dimension": "gender", "model": "seq2seq"}) is None
    assert debiased.parts["dialogue_fairness"].base_of({"dimension": "gender"}) is None


def test_a_control_is_trained_by_the_same_steps(debiased: Project, data: Path) -> None:
    def controls(**models: dict) -> dict[str, list[str]]:
        """The controls of `seq2seq-debiased_chat` (tested every 2 iterations) by dimension, with these models."""

        def edit(document: dict) -> None:
            others = ("mle", "mle_long", "placebo")
            document["models"] = {key: model for key, model in document["models"].items() if not key.endswith(others)}
            document["models"].update({f"seq2seq-{name}": model for name, model in models.items()})

        change(data / "profiles" / "tiny.yaml", edit)
        part = Project("tiny").parts["dialogue_fairness"]
        chat = "seq2seq-debiased_chat"
        by_dimension = {d: part.controls.of({"dimension": d, "model": chat}) for d in part.dimensions}
        return {
            dimension: [control["model"] for control in of_dimension.values()]
            for dimension, of_dimension in by_dimension.items()
        }

    write_yaml(data / "models" / "seq2seq-mle_long.yaml", {"base": "seq2seq", "debiasing": "mle"})
    same_steps, more_steps = (
        {"settings": {**CONTINUED, "every": 2}},
        {"settings": {**CONTINUED, "every": 2, "most": 400}},
    )
    assert controls(mle=same_steps) == {"gender": ["seq2seq-mle"], "dialect": ["seq2seq-mle"]}
    assert controls(mle_long=more_steps, mle=same_steps) == {"gender": ["seq2seq-mle"], "dialect": ["seq2seq-mle"]}
    message = "'seq2seq-mle' is a control of 'seq2seq-debiased_chat' in {}, and must be trained by the same steps; "
    differ = "their settings differ in most (12, 400)"
    with pytest.raises(FairnessError, match=re.escape(message.format("gender") + differ)):
        controls(mle=more_steps)
    with pytest.raises(FairnessError, match=re.escape(message.format("dialect") + differ)):
        controls(mle={**more_steps, "dimensions": ["dialect"]}, mle_long={**same_steps, "dimensions": ["gender"]})
    profile = yaml.safe_load((data / "profiles" / "tiny.yaml").read_text(encoding="utf-8"))
    chat = profile["models"]["seq2seq-debiased_chat"]["settings"]
    assert controls(mle=same_steps, placebo={"settings": chat})["gender"] == ["seq2seq-mle", "seq2seq-placebo"]
    for changed, differ in (  # settings that `mle` does not have
        ({"adversarial": {**chat["adversarial"], "k2": 3}}, r"k2 \([\d.]+, 3.0\)"),
        ({"disentanglement": {**DET, "epochs": 9}}, r"disentanglement.epochs \(\d+, 9\)"),
    ):
        with pytest.raises(FairnessError, match=rf"'seq2seq-placebo' is a control .* differ in {differ}"):
            controls(mle=same_steps, placebo={"settings": {**chat, **changed}})


def test_the_control_of_augmentation_is_trained_as_it_is(tiny: Project, data: Path) -> None:
    def control(augmented: dict, duplicated: dict) -> dict[str, str] | None:
        models = {"seq2seq-cda": augmented, "seq2seq-duplication": duplicated}
        change(data / "profiles" / "tiny.yaml", lambda document: document["models"].update(models))
        part = Project("tiny").parts["dialogue_fairness"]
        return part.controls.of({"dimension": "gender", "model": "seq2seq-cda"}).get("duplication")

    assert control({}, {}) == {"dimension": "gender", "model": "seq2seq-duplication"}
    assert control({}, {"training": {"checkpoint_seconds": 1}})  # how often it is saved changes nothing
    with pytest.raises(
        FairnessError, match=r"must be trained by the same steps; their settings differ in training.epochs \(\d+, 9\)"
    ):
        control({}, {"training": {"epochs": 9}})
    with pytest.raises(FairnessError, match=r"differ in seq2seq.dropout \(0.1, 0.5\)"):
        control({}, {"seq2seq": {"dropout": 0.5}, "training": {"epochs": 2}})


def test_papers_settings_are_those_of_the_thesis() -> None:
    """`paper.yaml` trains at the papers' sizes (Liu 2022, sections 3.3.2.1 and 3.3.3.2)."""
    from fairness_pipeline.debiasing.dialogue.settings import DebiasedChat

    models = Project("paper").parts["dialogue_fairness"].models
    chat = DebiasedChat.model_validate(models["seq2seq-debiased_chat"].settings)
    assert chat == DebiasedChat()
    det, adversarial = chat.disentanglement, chat.adversarial
    assert (det.hidden, det.unbiased, det.semantic, det.k1, det.k2, det.k3, det.k4) == (1000, 200, 800, 10, 1, 1, 3)
    assert (det.embedding, det.epochs, det.batch, det.held_out) == (300, 20, 32, 5000)
    assert (adversarial.d_steps, adversarial.g_steps, adversarial.g_teach_steps) == (2, 2, 1)
    assert (adversarial.k0, adversarial.k1, adversarial.k2, adversarial.learning_rate) == (1, 1, 1, 0.001)
    assert (adversarial.temperature, adversarial.cooling, adversarial.coldest, adversarial.every) == (1, 1.1, 0.3, 200)
    assert models["seq2seq-wer"].settings == {"k": 0.5, "clip": "as_printed"}
    assert models["seq2seq-debiased_chat"].seq2seq.hidden == 1024
