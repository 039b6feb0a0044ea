"""A new user's first steps: the audit without a file, the terminal, the gate on a broken model, Dagster's process."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from subprocess import PIPE

import pytest
from safetensors.torch import load_file, save

from fairness_pipeline.corpora.dialogue.framed_contexts import FramedContexts
from fairness_pipeline.corpora.dialogue.grammar import Grammar
from fairness_pipeline.foundation import checksums
from fairness_pipeline.foundation.checksums import checksum
from fairness_pipeline.lexicons.contexts import find_contexts, make_pairs
from fairness_pipeline.lexicons.swapping import Swapper
from fairness_pipeline.project.project import Project, load_dimension
from fairness_pipeline.project.study import studies
from fairness_pipeline.reporting.results import NEVER_SEEN, Audit, counted, severity, shown_verdict, worst_first
from fairness_pipeline.reporting.text_plot import summary, text_plot
from fairness_pipeline.statistics.units import with_unit
from fairness_pipeline.workspace.lake import Lake
from fairness_pipeline_tests.commands import change, command, run
from fairness_pipeline_tests.conftest import TINY, write_small_audit, write_yaml
from fairness_pipeline_tests.corpora.test_downloads import forge
from fairness_pipeline_tests.local_server import chat, serve
from fairness_pipeline_tests.models.tiny_models import causal_lm
from fairness_pipeline_tests.studies.test_any_model import add_model

DIMENSIONS = ("gender", "dialect", "race", "religion1", "religion2", "orientation")


# The shipped contexts


@pytest.mark.verify
@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_thousands_of_contexts_a_dimension_none_of_the_training_grammar(dimension: str) -> None:
    import pyarrow as pa

    framed = FramedContexts.load("contexts/everyday.yaml")
    texts = [text for name, _, text in framed.texts() if name == dimension]
    table = pa.table(
        {"dialogue_id": [str(i) for i in range(len(texts))], "context": texts, "split": ["audit"] * len(texts)}
    )
    words = load_dimension(dimension)
    swapper = Swapper(words, pronouns="extended", further=True, senses=True)
    contexts = find_contexts(table, swapper, spans=framed.spans(dimension)).table
    pairs = make_pairs(
        contexts, words, maximum=100_000, seed=1, pronouns="extended", senses="rules", further=True
    ).table
    assert pairs.num_rows >= 8500
    assert len(set(zip(pairs["context_a"].to_pylist(), pairs["context_b"].to_pylist(), strict=True))) == pairs.num_rows
    for side in "ab":  # the article fits every swapped word
        wrong = [text for text in pairs[f"context_{side}"].to_pylist() if re.search(r"\b[Aa] (?!one\b)[aeio]\w", text)]
        assert wrong == []
    grammar = Grammar.load("grammars/twitter_sample.yaml")
    trained_on = {dialogue.context for dialogue in grammar.generate(30_000, seed=2)}
    assert not trained_on & set(texts)
    assert not {topic.action for topic in grammar.topics.values()} & set(texts)


def test_contexts_have_nothing_to_train_on(tiny: Project, data: Path) -> None:
    change(data / "profiles" / "tiny.yaml", lambda p: p["dialogue_fairness"].update(corpora=["everyday"]))
    change(data / "profiles" / "tiny.yaml", lambda p: p["models"]["seq2seq"].update(corpus="everyday"))
    done = command("run", "--select", "dialogue_models")
    assert done.returncode == 1
    assert "its corpus 'everyday' has no responses, so nothing can be trained on it" in done.stderr


# The audit without a file


@pytest.fixture
def quick(data: Path) -> Project:
    """The profile `audit`, with few pairs."""
    write_small_audit(data, ["gender", "race"], pairs=60)
    return Project("audit")


_GENDER = load_dimension("gender")
FEMALE = {"she", "her"} | {b.lower() for _, b in (*_GENDER.pairs, *_GENDER.further)}


def rude(context: str) -> str:
    words = set(re.findall(r"[a-z']+", context.lower()))
    return "shut up, you idiot" if words & FEMALE else f"I see, {len(context) % 7}"


def test_an_endpoint_without_any_yaml(quick: Project) -> None:
    with serve(chat(lambda context: f"<think>hm, idiot</think>{rude(context)}")) as address:
        done = command("audit", f"{address}/v1", "--name", "our-bot", "--workers", "1")
        assert done.returncode == 0, done.stderr
        assert re.search(r"\d+ requests to endpoints .*; the time is estimated once some are answered", done.stdout)
        assert re.search(r"gender +our-bot .*✗", done.stdout), done.stdout
        assert "Next: open the report" in done.stdout
        asked_at = datetime.now(UTC) - timedelta(days=3, hours=2)
        for path in Lake(quick.workspace).partitions("responses"):
            os.utime(path, (asked_at.timestamp(), asked_at.timestamp()))
        gated = ("audit", f"{address}/v1", "--name", "our-bot", "--fail-on", "biased")
        gate = command(*gated, "--reuse", "--measures", "offense_rate")
        assert (gate.returncode, gate.stderr.splitlines()[-1]) == (3, "--fail-on biased: gender our-bot offense_rate")
        since = f"answers since {asked_at:%Y-%m-%d %H:%M} UTC, 3 days old at most"
        age = f"our-bot: {since}, reused; --ask-again asks anew, model our-bot"
        assert age in gate.stdout.splitlines()
        warning = "1 of 2 verdicts of the gate could not have been biased"  # race: all answers are the same
        assert warning in gate.stdout and gate.stdout.index(warning) < gate.stdout.index(
            "Dialogue fairness, profile audit"
        )
        never_seen = command(*gated, "--measures", "sentiment_positive")
        assert never_seen.returncode == 1, never_seen.stderr
        assert (
            "no verdict could have been biased: never seen: sentiment_positive (gender our-bot, race"
            in never_seen.stderr
        )
        assert re.search(
            r"(?m)^our-bot: answers since .* UTC, (less than a|\d+) minutes? old at most, model our-bot$",
            never_seen.stdout,
        )
        wrong = command("audit", f"{address}/v1", "--name", "our-bot", "--fail-on", "biased", "--measures", "offence")
        assert wrong.returncode == 1
        assert "--measures: unknown measure 'offence'; did you mean 'offense_rate'" in wrong.stderr
    answers = (
        Lake(quick.workspace).read("responses", {"dimension": "gender", "model": "our-bot"})["response"].to_pylist()
    )
    assert not [text for text in answers if "think" in text]

    # The report: findings first, a pair that shows one, then the figure; and the index.
    page = (quick.workspace / "reports" / "dialogue_fairness_report.html").read_text()
    findings, picture, caveats = (page.index(f'id="{name}"') for name in ("found", "differences", "caveats"))
    assert findings < page.index("of the answers to female contexts are offensive") < picture < caveats
    assert findings < page.index("This may offend") < page.index('class="answer">shut up, you idiot') < picture
    assert page.count("<details") > 3
    assert '<a href="dialogue_significance.csv">' in page
    index = (quick.workspace / "reports" / "index.html").read_text()
    assert "our-bot: 100% of the answers to female contexts are offensive" in index
    head, *rows = (quick.workspace / "reports" / "dialogue_significance.csv").read_text().splitlines()
    assert head.startswith("dimension,model,measure")
    assert len(rows) == 2 * 24  # two dimensions; measures, their parts, their values with masked words

    # After `forget` it is no longer shown.
    assert "removed: " in command("forget", "our-bot", "--profile", "audit").stdout
    assert "our-bot" not in command("results", "--profile", "audit", "--format", "csv").stdout
    assert command("forget", "our-bot", "--profile", "audit").returncode == 1


def test_a_file_of_answers_and_an_export_that_was_filled_in(quick: Project, tmp_path: Path) -> None:
    pairs = tmp_path / "pairs.csv"
    assert command("export", "pairs", "--profile", "audit", "--output", str(pairs)).returncode == 0
    head, *lines = pairs.read_text().splitlines()
    assert head == "dimension,pair_id,side,context,response"
    assert len(lines) == 2 * 2 * 60
    filled = "\n".join([head, *(f"{line}so {i % 5}" for i, line in enumerate(lines))])
    pairs.write_text(filled)
    again = command("export", "pairs", "--profile", "audit", "--output", str(pairs))
    assert again.returncode == 1
    assert "may contain entries by hand" in again.stderr
    assert pairs.read_text() == filled
    gate = ("--fail-on", "biased", "--workers", "1")
    done = command("audit", str(pairs), "--name", "ours", *gate)
    assert done.returncode == 0, done.stderr
    assert re.search(r"(?m)^ours: from a file of .* UTC, less than a minute old$", done.stdout)
    assert "'ours': 240 answers to gender, race" in done.stdout
    again = command("audit", str(pairs), "--name", "ours", *gate)
    assert "reused" not in again.stdout  # a file cannot be asked again
    os.utime(pairs, (0, 0))
    old = command("audit", str(pairs), "--name", "ours", *gate)
    assert re.search(r"(?m)^ours: from a file of 1970-01-01 00:00 UTC, [\d,]+ days old$", old.stdout)
    assert "replaced the responses of 'ours' to gender that were imported before" in again.stdout
    swapped = {"a": "that woman sounds kind", "b": "that man sounds kind"}
    wrong = [f"{line}{swapped[line.split(',')[2]]}" for line in lines if line.startswith("gender")]
    pairs.write_text("\n".join([head, *wrong]))
    named = command("audit", str(pairs), "--name", "mixed-up", "--fail-on", "biased")
    assert named.returncode == 3, named.stderr
    assert "100% of those to male contexts name only the other one" in " ".join(named.stdout.split())
    report = quick.workspace / "reports" / "dialogue_fairness_report.html"
    assert "that woman sounds kind" in report.read_text()
    assert command("export", "pairs", "--profile", "audit", "--output", str(pairs), "--force").returncode == 0


@pytest.mark.verify
def test_init_writes_what_runs(data: Path) -> None:
    done = command("init", "first")
    assert done.returncode == 0, done.stderr
    profile, model = (data / "profiles" / "first.yaml"), (data / "models" / "first-bot.yaml")
    assert "# of every draw" in profile.read_text()
    assert "# it is trained here" in model.read_text()
    change(model, lambda m: m["training"].update(epochs=1))
    change(profile, lambda p: p.update(dimensions=["gender"]))
    change(profile, lambda p: p["dialogue_fairness"]["pairs"].update(maximum=30))
    run("--profile", "first")


# The gate


def untrained(folder: Path) -> str:
    """Saves a GPT-2 of 1,200 words with random weights."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

    words = {word: i for i, word in enumerate(["<unk>", "<pad>", "</s>", *(f"w{i}" for i in range(1100))])}
    for (
        word
    ) in "It was raining so we stayed at home I have been working She put the keys Thank you very much for".split():
        words.setdefault(word, len(words))
    backend = Tokenizer(models.WordLevel(words, unk_token="<unk>"))
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend, unk_token="<unk>", pad_token="<pad>", eos_token="</s>"
    )
    torch.manual_seed(0)
    model = GPT2LMHeadModel(GPT2Config(vocab_size=len(words), n_positions=64, n_embd=16, n_layer=1, n_head=2))
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


@pytest.mark.verify
def test_a_gate_does_not_open_where_nothing_can_be_judged(quick: Project, tmp_path: Path) -> None:
    gate = ("--dimension", "gender", "--fail-on", "biased", "--workers", "1")
    with serve(chat(lambda context: "I cannot answer that.")) as address:
        done = command("audit", f"{address}/v1", "--name", "same", *gate)
    assert done.returncode == 1
    assert "--fail-on: nothing to judge: gender × same: 100% of its answers are 'I cannot answer that.'" in done.stderr
    assert "gender × same: nothing to judge: 100% of its answers are" in done.stdout

    done = command("audit", untrained(tmp_path / "raw"), *gate)
    assert done.returncode == 1, done.stdout
    assert "predict plain English no better than guessing; was it trained?" in done.stderr

    import torch
    from safetensors.torch import load_file, save_file

    weights = Path(causal_lm(tmp_path / "broken", positions=64)) / "model.safetensors"
    tensors = load_file(weights)
    tensors[next(iter(tensors))][0] = torch.nan
    save_file(tensors, weights, metadata={"format": "pt"})
    done = command("audit", str(tmp_path / "broken"), *gate)
    assert done.returncode == 1
    assert "holds weights that are not numbers" in done.stderr
    rows = json.loads(command("results", "--profile", "audit", "--model", "same", "--format", "json").stdout)
    assert {row["verdict"] for row in rows if row["dimension"] == "gender"} == {"nothing to judge"}
    assert "profile 'audit' has it: add --profile audit" in command("results", "--model", "same").stderr
    warning = command(
        "sql", "--profile", "audit", "select verdict from dialogue_significance where model = 'same'"
    ).stderr
    assert "nothing to judge, whatever the verdict in dialogue_significance: " in warning
    assert "gender × same (100%" in warning
    recipe_warning = command("sql", "--profile", "audit", "select verdict from recipe_significance").stderr
    assert "whatever the verdict in recipe_significance: " in recipe_warning and "gender × same (100%" in recipe_warning
    page = (quick.workspace / "reports" / "dialogue_fairness_report.html").read_text()
    assert "<b>Nothing to judge:</b> " in page
    assert "gender × same: 100% of its answers are" in page


@pytest.mark.verify
def test_a_gate_hashes_weights_itself(quick: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checksums, "_REMEMBER", 1)  # so that checksums of small weights are kept, too
    audit = ("audit", causal_lm(tmp_path / "ours", positions=64), "--dimension", "gender", "--workers", "1")
    gate = (*audit, "--fail-on", "biased")

    def answers() -> list[str]:
        key = {"dimension": "gender", "model": "ours"}
        return Lake(quick.workspace).read("responses", key)["response"].to_pylist()

    assert command(*gate).returncode in (0, 3)
    before, weights = answers(), tmp_path / "ours" / "model.safetensors"
    tensors = load_file(weights)
    wrong = checksum(weights)
    retrained = save({name: -tensor for name, tensor in tensors.items()}, metadata={"format": "pt"})
    weights.write_bytes(retrained)  # in place
    record = forge(weights, wrong)  # as if nothing had changed
    assert command(*audit).returncode == 0
    assert answers() == before
    checked = command("check", "--profile", "audit")
    assert (checked.returncode, f"{record}: not the SHA-256 of {weights}" in checked.stdout) == (1, True)
    assert command(*gate).returncode in (0, 3)
    assert answers() != before
    assert command("check", "--profile", "audit").returncode == 0


def test_a_classifier_that_tells_nothing_apart(quick: Project, tmp_path: Path) -> None:
    import numpy as np

    from fairness_pipeline.corpora.sentiment.equity_sentences import make_equity_sentences
    from fairness_pipeline.measures.sentiment.equity_pairs import measure_separation

    sentences = make_equity_sentences()
    emotions = np.array(sentences["emotion"].to_pylist(), dtype=object)
    joy = (emotions == "joy").astype(float)
    assert measure_separation(sentences, ["valence"], joy[:, None]) == 1.0
    assert measure_separation(sentences, ["anger", "joy"], np.stack([joy, joy], axis=1)) == 1.0
    noise = np.random.default_rng(0).uniform(size=(sentences.num_rows, 1))
    assert 0.47 < measure_separation(sentences, ["valence"], noise) < 0.53


# Words for findings


ROW = {
    "measure": "offense_rate", "unit": "percent", "value_a": 10.0, "value_b": 20.0, "difference": -10.0, "ci_low": -12.0,
    "ci_high": -8.0, "margin": 1.5, "verdict": "biased",
}  # fmt: skip


def test_one_meaning_of_difference() -> None:
    assert with_unit(ROW) == "-10 points"
    assert with_unit({**ROW, "unit": "count_per_response", "difference": 0.25}) == "+0.25 a response"
    assert with_unit({**ROW, "unit": "score", "difference": 0.01}) == "+0.0100"
    never = {**ROW, "value_a": 0.0, "value_b": 0.0, "difference": 0.0, "margin": 0.0, "verdict": "inconclusive"}
    assert shown_verdict(never) == NEVER_SEEN
    assert shown_verdict({**never, "unit": "score"}) == "inconclusive"  # a score of 0 is a score
    backwards = [
        never,
        {**ROW, "verdict": "fair"},
        {**ROW, "verdict": "inconclusive"},
        {**ROW, "difference": -3.0},
        ROW,
    ]
    study = studies()[0]
    assert sorted(backwards, key=severity(study)) == list(reversed(backwards))
    refused = {**ROW, "measure": "refusal", "difference": ROW["difference"] / 2}
    longer = {**ROW, "measure": "length", "difference": ROW["difference"] * 2}
    assert sorted([longer, refused], key=severity(study)) == [refused, longer]  # harm comes first
    audits = [Audit({"dimension": d, "model": "m"}, rows) for d, rows in (("a", []), ("b", [never]), ("c", [ROW]))]
    assert [audit.key["dimension"] for audit in worst_first(study, audits)] == ["c", "b", "a"]
    assert counted(study, audits) == {"biased": 1, NEVER_SEEN: 1}


def test_findings_name_the_right_group_and_tell_numbers_apart() -> None:
    from fairness_pipeline.measures.dialogue.registry import finding

    groups = ("male", "female")
    expected = "20% of the answers to female contexts are offensive, 10% of those to male contexts"
    assert finding(ROW, groups) == expected
    turned = {**ROW, "value_a": 45.64, "value_b": 45.61}
    expected_closer = "45.64% of the answers to male contexts are offensive, 45.61% of those to female contexts"
    assert finding(turned, groups) == expected_closer
    counts = {**ROW, "measure": "family_words", "value_a": 0.0, "value_b": 0.25}
    assert (
        finding(counts, groups)
        == "the average answer to female contexts contains 0.25 family words, that to male contexts 0"
    )


def test_a_gate_on_what_was_never_measured(data: Path) -> None:
    small = {**TINY, "dimensions": ["gender"], "models": {}, "sentiment_equity": {"systems": {"vader": {}}}}
    write_yaml(data / "profiles" / "ours.yaml", {k: v for k, v in small.items() if k != "dialogue_fairness"})
    gate = ("run", "--profile", "ours", "--fail-on", "biased")
    assert command(*gate, "--measures", "valence").returncode == 0
    done = command(*gate, "--measures", "anger")
    assert done.returncode == 1
    assert "--fail-on: anger: not measured in the selected part of the profile" in done.stderr


def test_a_plot_in_characters() -> None:
    assert text_plot([("Offence", ROW)]) == "Offence ◀       : ┊ :         biased -10 points"
    inside = {**ROW, "difference": 0.0, "ci_low": -0.6, "ci_high": 0.6, "verdict": "fair"}
    assert text_plot([("x", inside)]) == "x         :─●─:         fair +0 points"
    project = Project("sample")
    text = summary(
        studies()[0],
        project.parts["dialogue_fairness"],
        {"dimension": "gender", "model": "seq2seq"},
        [ROW, {**ROW, "verdict": "fair"}],
    )
    assert text.startswith(
        "1 biased, 1 fair: seq2seq (this checkpoint): 20% of the answers to female contexts are offensive, 10% of those to male contexts"
    )
    assert len(text) < 1000  # Dagster's UI cuts longer texts


# The terminal


def test_tables_fit_the_terminal(made: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    for width in (80, 160):
        monkeypatch.setenv("COLUMNS", str(width))
        fits(width)


def test_the_line_over_a_table_is_never_folded(made: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "24")
    assert "Dialogue fairness, profile tiny\n" in run().stdout


def fits(width: int) -> None:
    queries = ("select * from responses limit 3", "select * from dialogue_significance limit 2")
    outputs = [run().stdout.partition("Dialogue fairness")[2], command("results").stdout]
    outputs += [command("sql", query).stdout for query in queries]
    for text in outputs:
        lines = [line for line in text.splitlines() if not line.startswith("Report: ")]
        assert max(map(len, lines)) <= width
        assert not re.search(r"(?m)^\s*\w\s*$\n^\s*\w\s*$", text)  # no column is one letter wide
    assert "gender" in outputs[1]
    assert re.search(r"1 of 2 -+\n(  )?measure +distinguishable", outputs[3])  # 30 columns: record by record
    assert "verdict" in outputs[1].splitlines()[0]


def test_answers_reach_the_terminal_without_escape_codes_and_requests_are_counted(tiny: Project, data: Path) -> None:
    with serve(chat(lambda context: f"\x1b[31m{len(context) % 3}\x1b[2J‮")) as address:
        add_model(
            data,
            "bot",
            architecture="endpoint",
            endpoint={"base_url": address, "model": "m"},
            decoding={"max_tokens": 9},
        )
        change(data / "profiles" / "tiny.yaml", lambda profile: profile.update(dimensions=["gender"]))
        run("--model", "bot")
    figures = Lake(tiny.workspace).card("responses", {"dimension": "gender", "model": "bot"}).figures
    requests = f"{figures['distinct_contexts']:,} requests to endpoints ("
    assert requests in run("--dry-run", "--force", "--model", "bot").stdout
    results = [
        command("sql", "select response from responses"),
        command("sql", 'select response as "a \x1b[31m" from responses', "--format", "csv"),
    ]
    for text in [done.stdout + done.stderr for done in results] + [
        (tiny.workspace / "reports" / "dialogue_fairness_report.html").read_text()
    ]:
        assert "\\x1b[31m" in text
        assert not re.search("[\x1b\u202e]", text)


def test_json_holds_no_bare_nan(tiny: Project) -> None:
    done = command("sql", "select 'nan'::double as x, [1, 'inf'::double] as y", "--format", "json")
    assert json.loads(done.stdout, parse_constant=lambda name: pytest.fail(name)) == [{"x": None, "y": [1.0, None]}]


def test_the_reason_of_a_dry_run_is_short(made: Project, data: Path) -> None:
    change(data / "profiles" / "tiny.yaml", lambda profile: profile["dialogue_fairness"]["splits"].update(train=0.4))
    change(data / "profiles" / "tiny.yaml", lambda profile: profile["models"]["seq2seq"]["training"].update(
        epochs=3, patience=3, learning_rate=0.02, clipping=2.0, batch_tokens=400, optimiser="sgd", momentum=0.5
    ))  # fmt: skip
    lines = run("--dry-run").stdout.splitlines()
    assert len(lines) == 40
    assert max(len(line.partition(": ")[2]) for line in lines) < 200


# Dagster's process


def test_the_ui_refuses_a_port_in_use(tiny: Project) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        done = command("ui", "--port", port)
        assert done.returncode == 1
        assert f"--port {port}, --host 127.0.0.1: nothing can be served there (Address already in use)" in done.stderr


@pytest.mark.verify
def test_the_ui_ends_on_sigterm(tiny: Project, tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "random.py").write_text("raise SystemExit('a module of the current folder was imported')")
    program = Path(sys.executable).with_name("fairness-pipeline")
    ui = subprocess.Popen([program, "ui", "--port", port], cwd=tmp_path / "here", stdout=PIPE, stderr=PIPE, text=True)
    deadline = time.monotonic() + 90
    while True:
        assert ui.poll() is None, ui.communicate()
        assert time.monotonic() < deadline
        with socket.socket() as connection:
            if connection.connect_ex(("127.0.0.1", int(port))) == 0:
                break
        time.sleep(0.5)
    ui.send_signal(signal.SIGTERM)
    ui.communicate(timeout=60)
    with socket.socket() as connection:
        assert connection.connect_ex(("127.0.0.1", int(port))) != 0
