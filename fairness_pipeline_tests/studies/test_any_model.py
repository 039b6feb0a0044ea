"""Takes a user's own models through the whole lineage: by folder, by address, and from a file."""

import argparse
import csv
import json
import signal
import time
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from fairness_pipeline.cli.given import look_at
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.measures.dialogue.registry import measures
from fairness_pipeline.project.project import Project
from fairness_pipeline.studies.dialogue_fairness import audit
from fairness_pipeline.workspace.lake import Lake
from fairness_pipeline_tests.commands import change, command, planned, process, run
from fairness_pipeline_tests.conftest import write_yaml
from fairness_pipeline_tests.local_server import serve
from fairness_pipeline_tests.models.dialogue.test_endpoint import ChatServer
from fairness_pipeline_tests.models.tiny_models import causal_lm

TABLES = ("responses", *(measure.table for measure in measures()), "dialogue_significance")
PAIRS = {"corpus": "tiny", "dimension": "gender"}
RETRIEVAL = {
    "corpus": "tiny",
    "retrieval": {"layers": 1, "heads": 2, "embedding": 8, "feed_forward": 8, "vocabulary": 300, "candidates": 50},
    "training": {"optimiser": "adam", "learning_rate": 0.01, "clipping": 1.0, "batch_tokens": 512, "epochs": 2},
}
"""A model that trains in seconds, and whose answers differ: it picks them from the corpus."""


def add_model(data: Path, key: str, **specification: object) -> None:
    """Declares a model and puts it into the profile, in place of the others."""
    write_yaml(data / "models" / f"{key}.yaml", {"studies": ["dialogue_fairness"], "corpus": "tiny", **specification})
    change(data / "profiles" / "tiny.yaml", lambda profile: profile.update(models={key: {}}, dimensions=["gender"]))


def add_endpoint(data: Path, address: str, **options: object) -> None:
    source = {"base_url": f"{address}/v1", "model": "m", **options}
    add_model(data, "bot", architecture="endpoint", endpoint=source)


def table(tiny: Project, name: str, model: str) -> pa.Table:
    return Lake(tiny.workspace).read(name, {"dimension": "gender", "model": model}).replace_schema_metadata(None)


@pytest.mark.verify
def test_an_endpoint_and_a_file_give_the_tables_of_the_same_responses(
    tiny: Project, data: Path, tmp_path: Path
) -> None:
    server = ChatServer()
    with serve(server) as address:
        add_endpoint(data, address)
        assert "no request to an endpoint" not in run("--dry-run").stdout
        assert "those of 1 partition whose contexts are not made yet" in run("--dry-run").stdout
        run("--select", "context_pairs")
        lake = Lake(tiny.workspace)
        pairs = lake.read("context_pairs", PAIRS)
        contexts = set(pairs["context_a"].to_pylist()) | set(pairs["context_b"].to_pylist())
        assert f"; {len(contexts)} requests to endpoints" in run("--dry-run").stdout
        run()
        assert Counter(server.asked) == Counter(contexts)
        responses = table(tiny, "responses", "bot")
        assert responses["response"].equals(pc.utf8_upper(responses["context"]))

        # It is asked again only on request: a new round makes everything downstream.
        server.asked.clear()
        assert planned() == []
        run("--force", "--select", "diversity")
        assert not planned()
        server.asked.clear()
        assert f"; {len(contexts)} requests to endpoints" in run("--dry-run", "--ask-again").stdout
        assert planned() == []
        for refused in ("--select", "responses"), ("--model", "nonsense"):
            assert command("run", "--ask-again", *refused).returncode == 1
        assert planned() == []
        run("--ask-again")
        assert Counter(server.asked) == Counter(contexts)
        assert planned() == []

    # The same answers from a file.
    done = command("export", "pairs", "--dimension", "gender", "--output", str(tmp_path / "pairs.csv"))
    assert f"{pairs.num_rows:,} pairs, {2 * pairs.num_rows:,} contexts" in done.stdout, done.stderr
    with (tmp_path / "pairs.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    answers = tmp_path / "answers.jsonl"
    answers.write_text("".join(json.dumps({**row, "response": row["context"].upper()}) + "\n" for row in rows))
    done = command("import", str(answers), "--name", "from-file", "--dimension", "gender")
    assert done.returncode == 0, done.stderr
    assert f"{2 * pairs.num_rows:,} responses of 'from-file'" in done.stdout
    run("--model", "from-file")
    for name in TABLES:
        assert table(tiny, name, "bot").equals(table(tiny, name, "from-file")), name

    # Answers that change are seen; pairs that change are too.
    assert planned("--model", "from-file") == []
    answers.write_text("".join(json.dumps({**row, "response": "ok"}) + "\n" for row in rows))
    assert command("import", str(answers), "--name", "from-file", "--dimension", "gender").returncode == 0
    assert "responses gender from-file" in planned("--model", "from-file")
    change(data / "profiles" / "tiny.yaml", lambda profile: profile["dialogue_fairness"]["pairs"].update(maximum=20))
    done = command("run", "--model", "from-file")
    assert done.returncode == 1
    assert "the pairs changed since the responses were imported" in done.stderr

    # Wrong names and wrong files.
    for arguments, expected in (
        (("--name", "Bad Name", "--dimension", "gender"), "--name: expected lower-case letters"),
        (("--name", "bot", "--dimension", "gender"), "has 'bot' already"),
        (("--name", "x", "--dimension", "age"), "unknown dimension 'age' in profile 'tiny'; known: gender"),
        (("--name", "x", "--dimension", "gender", "--corpus", "y"), "unknown corpus 'y'"),
        (("--name", "x", "--dimension", "gender"), "export them again"),
    ):
        run("--select", "context_pairs")
        done = command("import", str(answers), *arguments)
        assert done.returncode == 1
        assert expected in done.stderr
        assert "Traceback" not in done.stderr
    assert not (tiny.workspace / "imports" / "x").exists()


@pytest.mark.verify
def test_a_killed_endpoint_run_asks_nothing_twice(tiny: Project, data: Path) -> None:
    server = ChatServer(delay=0.02)
    with serve(server) as address:
        add_endpoint(data, address, concurrency=4)
        run("--select", "context_pairs")
        killed = process("run")
        while len(server.asked) < 40 and killed.poll() is None:
            time.sleep(0.01)
        killed.send_signal(signal.SIGKILL)
        killed.communicate()
        time.sleep(0.2)
        run()
    pairs = Lake(tiny.workspace).read("context_pairs", PAIRS)
    contexts = set(pairs["context_a"].to_pylist()) | set(pairs["context_b"].to_pylist())
    counts = Counter(server.asked)
    assert set(counts) == contexts
    # Answers under way at the kill could not be kept: one a connection at most.
    assert sum(counts.values()) <= len(contexts) + 4


@pytest.mark.verify
def test_a_stopped_round_is_continued(tiny: Project, data: Path) -> None:
    """Ctrl-C says: run the same command again. That run asks for no answer twice."""
    server = ChatServer()
    with serve(server) as address:
        add_endpoint(data, address, concurrency=4)
        run()
        contexts = len(set(server.asked))
        for arguments in ("--ask-again",), ("--force",), ("--ask-again",):
            server.asked.clear()
            server.delay = 0.02
            stopped = process("run", *arguments)
            while len(server.asked) < 30 and stopped.poll() is None:
                time.sleep(0.01)
            stopped.send_signal(signal.SIGINT)
            _, errors = stopped.communicate()
            assert stopped.returncode == 130, errors
            assert "run the same command again to go on from here" in errors
            assert "Traceback" not in errors
            server.delay = 0.0
            run(*arguments)
            assert contexts <= len(server.asked) <= contexts + 4
            assert planned() == []


def test_an_endpoint_that_fails_costs_only_its_own_partitions(
    tiny: Project, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BOT_KEY", "sk-secret")
    with serve(ChatServer(*[401] * 100)) as address:
        add_endpoint(data, address, key_variable="BOT_KEY")
        change(data / "profiles" / "tiny.yaml", lambda profile: profile["models"].update(seq2seq={
            "corpus": "tiny", "seq2seq": {"layers": 1, "hidden": 8, "embedding": 8, "vocabulary": 99, "dropout": 0.1},
            "training": {"optimiser": "adam", "learning_rate": 0.01, "momentum": 0.0, "clipping": 1.0, "epochs": 1},
        }))  # fmt: skip
        done = command("run")
        assert done.returncode == 1
        assert "failed: responses gender bot: endpoint" in done.stderr
        assert "check the key in BOT_KEY" in done.stderr
        assert "dialogue_significance gender seq2seq" not in done.stderr
        change(data / "models" / "bot.yaml", lambda model: model["endpoint"].update(max_requests=5))
        assert "max_requests: " in command("run").stderr
    everything = b"".join(path.read_bytes() for path in tiny.workspace.rglob("*") if path.is_file())
    assert b"sk-secret" not in everything


@pytest.mark.filterwarnings("ignore")
def test_a_folder_of_hugging_face(tiny: Project, data: Path, tmp_path: Path) -> None:
    name = causal_lm(tmp_path / "model")
    source = {"name": name, "prompt": "user : {context} bot :"}
    add_model(data, "mine", architecture="causal_lm", huggingface=source, decoding={"max_tokens": 5})
    run()
    responses = table(tiny, "responses", "mine")
    assert responses.num_rows == 2 * Lake(tiny.workspace).read("context_pairs", PAIRS).num_rows
    assert all(responses["response"].to_pylist())
    assert planned("--ask-again") == []  # a folder gives the same answers again
    (tmp_path / "model" / "README.md").write_text("changed")
    assert "responses gender mine" in planned()
    (tmp_path / "model" / "model.safetensors").unlink()
    done = command("run")
    assert done.returncode == 1
    assert "holds no weights" in done.stderr


@pytest.mark.verify
def test_retrieval_and_a_missing_corpus(tiny: Project, data: Path) -> None:
    """Both architectures side by side; a corpus whose file is missing takes only its own model with it."""
    write_yaml(data / "corpora" / "gone.yaml", {
        "platform": "reddit", "format": "lines", "files": [{"path": "gone.txt"}], "licence": "", "citation": "",
    })  # fmt: skip
    change(data / "profiles" / "tiny.yaml", lambda profile: profile.update(
        dialogue_fairness={**profile["dialogue_fairness"], "corpora": ["tiny", "gone"]}, dimensions=["gender"],
        models={"retrieval": RETRIEVAL, "retrieval-reddit": {**RETRIEVAL, "corpus": "gone"}},
    ))  # fmt: skip
    assert "dialogue_models retrieval-reddit" in planned()
    assert not [line for line in planned("--model", "retrieval") if "gone" in line or "reddit" in line]
    done = command("run")
    assert done.returncode == 1
    assert "failed: reddit_dialogues gone: " in done.stderr
    assert "gone.txt: cannot be read: No such file" in done.stderr
    assert "skipped because a step that they need failed: " in done.stderr
    responses = table(tiny, "responses", "retrieval")
    dialogues = Lake(tiny.workspace).read("twitter_dialogues", {"corpus": "tiny"})
    training = set(dialogues.filter(pc.equal(dialogues["split"], "train"))["response"].to_pylist())
    assert set(responses["response"].to_pylist()) <= training
    query = "select count(distinct corpus) as n, min(corpus) as c from twitter_dialogues"
    assert json.loads(command("sql", query, "--format", "json").stdout) == [{"n": 1, "c": "tiny"}]


def test_a_name_stands_for_one_model(tiny: Project, data: Path) -> None:
    folder = tiny.workspace / "imports" / "seq2seq"
    folder.mkdir(parents=True)
    write_yaml(folder / "model.yaml", {"architecture": "imported", "studies": ["dialogue_fairness"], "corpus": "tiny"})
    with pytest.raises(
        FairnessError, match="model 'seq2seq' is declared in the profile, and responses under this name"
    ):
        Project("tiny")
    folder.rename(folder.with_name("bot"))
    write_yaml(folder.with_name("bot") / "model.yaml", {"architecture": "imported", "studies": [], "corpus": "gone"})
    with pytest.raises(FairnessError, match="imports/bot: responses to corpus 'gone' were imported"):
        Project("tiny")


def test_a_gate_that_saw_nothing_does_not_open(tiny: Project, data: Path) -> None:
    change(data / "profiles" / "tiny.yaml", lambda profile: profile.update(models={}, dimensions=["gender"]))
    done = command("run", "--fail-on", "biased")
    assert done.returncode == 1
    assert "the gate stays closed" in done.stderr


def test_tables_of_an_older_layout_do_not_break_queries(made: Project) -> None:
    new = Lake(made.workspace).table_path("twitter_dialogues", {"corpus": "tiny"})
    old = Lake(made.workspace).table_path("twitter_dialogues", {})
    old.write_bytes(new.read_bytes())
    query = "select count(*) as n, min(corpus) as c from twitter_dialogues"
    (row,) = json.loads(command("sql", query, "--format", "json").stdout)
    assert row == {"n": Lake(made.workspace).read("twitter_dialogues", {"corpus": "tiny"}).num_rows, "c": "tiny"}


@pytest.mark.verify
def test_a_profile_that_trains_nothing(tiny: Project, data: Path, tmp_path: Path) -> None:
    """Corpus and dimension alone: pairs go out, answers come in, and the report has them."""
    change(data / "profiles" / "tiny.yaml", lambda profile: profile.update(
        models={}, dimensions=["gender"],
        dialogue_fairness={"corpora": ["tiny"], "splits": {"train": 0, "valid": 0, "test": 0, "audit": 1}},
    ))  # fmt: skip
    run("--select", "context_pairs")
    pairs = str(tmp_path / "pairs.jsonl")
    assert command("export", "pairs", "--dimension", "gender", "--output", pairs).returncode == 0
    rows = [json.loads(line) for line in Path(pairs).read_text().splitlines()]
    Path(pairs).write_text("".join(json.dumps({**row, "response": f"so {i % 7}"}) + "\n" for i, row in enumerate(rows)))
    done = command("import", pairs, "--name", "bot", "--dimension", "gender")
    assert done.returncode == 0, done.stderr
    run()
    assert json.loads(command("results", "--format", "json").stdout)[0]["model"] == "bot"
    report = (tiny.workspace / "reports" / "dialogue_fairness_report.html").read_text()
    assert "not measured" not in report.split('id="verdicts"')[1].split("</table>")[0]


@pytest.mark.verify
def test_seeds_give_a_recipes_verdict(tiny: Project, data: Path) -> None:
    """Three trainings of a model, and of its debiased one; each is a model, and one verdict is on all of them."""

    def edit(profile: dict) -> None:
        profile["models"] = {"seq2seq": {**profile["models"]["seq2seq"], "seeds": 3}, "seq2seq-wer": {}}
        profile["dimensions"] = ["gender"]

    before = tiny.parts["dialogue_fairness"].models["seq2seq"].identity()
    change(data / "profiles" / "tiny.yaml", edit)
    project = Project("tiny")
    models = project.parts["dialogue_fairness"].models
    assert list(models) == [
        "seq2seq", "seq2seq-wer", "seq2seq.seed2", "seq2seq.seed3", "seq2seq-wer.seed2", "seq2seq-wer.seed3"
    ]  # fmt: skip
    assert models["seq2seq-wer.seed3"].base == "seq2seq.seed3"
    assert models["seq2seq"].identity() == before  # more seeds train nothing anew
    assert {"dialogue_models seq2seq.seed3", "recipe_significance gender seq2seq"} <= set(planned("--model", "seq2seq"))
    run("--model", "seq2seq")
    lake = Lake(project.workspace)
    row = lake.read("recipe_significance", {"dimension": "gender", "model": "seq2seq"}).to_pylist()[0]
    tables = [lake.read("dialogue_significance", {"dimension": "gender", "model": name}).to_pylist()
              for name in ("seq2seq", "seq2seq.seed2", "seq2seq.seed3")]  # fmt: skip
    seeds = [next(judged for judged in table if judged["measure"] == row["measure"]) for table in tables]
    assert row["seeds"] == 3
    assert row["difference"] == pytest.approx(sum(seed["difference"] for seed in seeds) / 3)
    weights = [lake.card("dialogue_models", {"model": name}).content for name in ("seq2seq", "seq2seq.seed2")]
    assert weights[0] != weights[1]
    run()
    assert planned() == []
    report = (project.workspace / "reports" / "dialogue_fairness_report.html").read_text(encoding="utf-8")
    assert "Recipes: the same model, trained several times" in report
    assert lake.card("recipe_significance", {"dimension": "gender", "model": "seq2seq-wer"})

    for wrong, message in (
        ({"seeds": 5}, "5 seeds, but its base 'seq2seq' has only 3"),
        ({"seeds": 0}, "models.seq2seq-wer.seeds: expected 1 or more, found 0"),
    ):
        change(
            data / "profiles" / "tiny.yaml",
            lambda profile, wrong=wrong: profile["models"].update({"seq2seq-wer": wrong}),
        )
        with pytest.raises(FairnessError, match=message):
            Project("tiny")


@pytest.mark.verify
def test_classifiers_are_scored_on_labelled_texts_and_another_judges_again(
    tiny: Project, data: Path, tmp_path: Path
) -> None:
    rows = [f'"{person} {phrase} {i}",{label}' for i in range(200) for person, phrase, label in
            (("he", "idiot", "bad"), ("she", "thanks", "good"), ("she", "shut up", "bad"), ("he", "lovely", "good"))]  # fmt: skip
    (tmp_path / "texts.csv").write_text("\n".join(["text,label", *rows]) + "\n", encoding="utf-8")
    labelled = [{"path": str(tmp_path / "texts.csv"), "text": "text", "label": "label", "offensive": ["bad"]}]

    def edit(profile: dict) -> None:
        profile["dimensions"] = ["gender"]
        profile["dialogue_fairness"]["measures"] = {"labelled": labelled, "other_classifiers": ["trained"]}

    change(data / "profiles" / "tiny.yaml", edit)
    run()
    lake, key = Lake(tiny.workspace), {"dimension": "gender", "model": "seq2seq"}
    quality = lake.read("classifier_quality", {"dimension": "gender"}).to_pylist()
    assert {row["classifier"] for row in quality} == {"alt-profanity-check", "trained"}
    recall = {r["classifier"]: r["value"] for r in quality if (r["group"], r["metric"]) == ("all", "recall")}
    assert recall["trained"] == 100.0
    kinds = {(row["kind"], row["variation"]) for row in lake.read("verdict_variations", key).to_pylist()}
    assert ("classifier", "trained") in kinds
    assert "Offence classifiers on labelled texts" in (
        tiny.workspace / "reports" / "dialogue_fairness_report.html"
    ).read_text(encoding="utf-8")
    (tmp_path / "texts.csv").write_text("text,label\nx,good\n", encoding="utf-8")
    done = command("run")
    assert done.returncode == 1
    assert "no row has the label 'bad' in column 'label'" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_stated_prompt_is_the_filled_in_chat_template(tiny: Project, tmp_path: Path) -> None:
    template = "{% for m in messages %}<{{ m.role }}> {{ m.content }} {% endfor %}{% if add_generation_prompt %}<bot>{% endif %}"
    given = look_at(causal_lm(tmp_path / "chat", template=template))
    part = tiny.parts["dialogue_fairness"]
    arguments = argparse.Namespace(prompt=None, system="Be kind.")
    description = audit.give(part, given, "chat", arguments)
    assert "chat template '<system> Be kind. <user> {context} <bot>'" in description
    plain = look_at(causal_lm(tmp_path / "plain"))
    description = audit.give(part, plain, "plain", argparse.Namespace(prompt="Q: {context} A:", system=None))
    assert "prompt 'Q: {context} A:'" in description
