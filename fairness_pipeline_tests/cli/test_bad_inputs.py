"""Bad input of every kind: an exit status, a message that names what is wrong, and never a traceback."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from fairness_pipeline.debiasing.dialogue.registry import METHODS
from fairness_pipeline.models.dialogue.responding import RESPONSES
from fairness_pipeline.project.project import Project
from fairness_pipeline.studies.dialogue_fairness.study import STUDY
from fairness_pipeline.workspace.lake import Card, Lake
from fairness_pipeline_tests.commands import change, command, run
from fairness_pipeline_tests.conftest import write_yaml
from fairness_pipeline_tests.models.tiny_models import causal_lm, classifier

WRONG_CALLS: list[tuple[str, int, str]] = [
    ("", 2, "the following arguments are required: COMMAND"),
    ("audits", 2, "unknown command 'audits'; did you mean 'audit'?"),
    ("\x1b[31mfoo", 2, r"unknown command '\x1b[31mfoo'; known: audit"),
    ("run --nonsense", 2, "unknown option '--nonsense'; "),
    ("run --profile ''", 2, "expected a profile's name, found an empty text"),
    ("run --profile '  '", 2, "expected a profile's name, found an empty text"),
    ("run --profile nope", 1, "unknown profile 'nope'; known: "),
    ("run --profile ../tiny", 1, "unknown profile '../tiny'"),
    ("run --profile TINY", 1, "unknown profile 'TINY'"),
    ("run --study x", 1, "unknown study 'x'"),
    ("run --dimension x", 1, "unknown dimension 'x' in profile 'tiny'; known: gender, dialect"),
    ("run --model x", 1, "unknown model 'x' in profile 'tiny'; known: seq2seq"),
    ("run --model a --model b", 2, "argument --model: given twice: 'a' and 'b'"),
    ("run --select a --select b", 2, "argument --select: given twice: 'a' and 'b'"),
    ("run --fail-on biased --measures a --measures b", 2, "argument --measures: given twice: 'a' and 'b'"),
    ("run --profile a --profile b", 2, "argument --profile: given twice: 'a' and 'b'"),
    ("export pairs x.csv --dimension a --dimension b", 2, "argument --dimension: given twice: 'a' and 'b'"),
    ("run --model x --model x", 1, "unknown model 'x' in profile 'tiny'"),
    ("run --select x", 1, "unknown asset 'x'; known: twitter_dialogues"),
    ("run --select reddit_dialogue", 1, "unknown asset 'reddit_dialogue'"),
    ("run --workers 0", 2, "expected a number from 1, found '0'"),
    ("run --workers -3", 2, "expected"),
    ("run --workers two", 2, "expected a number from 1, found 'two'"),
    ("run --workers 1.5", 2, "expected a number from 1, found '1.5'"),
    ("run --fail-on unfair", 2, "invalid choice: 'unfair'"),
    ("run --fail-on", 2, "expected one argument"),
    ("run --fail-on biased --select contexts", 1, "--fail-on needs verdicts"),
    ("run --tolerate 3", 1, "--tolerate says what --fail-on lets pass; add --fail-on biased"),
    ("run --fail-on biased --tolerate lots", 2, "expected percentage points from 0 to 100, found 'lots'"),
    ("run --fail-on biased,names,fair", 2, "invalid choice: 'fair' (choose from biased, inconclusive, names, worse)"),
    ("export pairs --output x.csv --pairs 0", 2, "expected a number from 1, found '0'"),
    ("run --measures offense_rate", 1, "--measures says which verdicts --fail-on looks at; add --fail-on biased"),
    ("run --ask-again --select responses", 1, "--ask-again queries whole models"),
    ("results --format xml", 2, "invalid choice: 'xml'"),
    ("results --study x", 1, "unknown study 'x'"),
    ("results --model x", 1, "unknown model 'x'"),
    ("results --dimension x", 1, "unknown dimension 'x'"),
    ("results --against 2026-13-45", 1, "--against: expected a time such as 2026-11-20"),
    ("results --against 2026-02-30", 1, "--against: expected a time"),
    ("results --against 20261120", 1, "--against: expected a time"),
    ("results --against yesterday", 1, "--against: expected a time"),
    ("results --against 2026-11-20", 1, "no such run is kept; kept: none"),
    ("results --against previous", 1, "no such run is kept; kept: none"),
    ("sql", 2, "the following arguments are required: query"),
    ("sql ''", 1, "expected one statement, found none"),
    ("sql '-- hi'", 1, "expected one statement, found none"),
    ("sql ';'", 1, "expected one statement, found none"),
    ("sql 'select 1; select 2'", 1, "expected one statement, found 2"),
    ("sql 'select * from nonsense'", 1, "Table with name nonsense does not exist"),
    ("sql 'selec 1'", 1, "the query failed: "),
    ("sql 'select x'", 1, "the query failed: "),
    ("sql 'select 1/0 +'", 1, "the query failed: "),
    ("sql \"copy (select 1) to 'x.csv'\"", 1, "COPY may write or change something"),
    ("sql 'create table t (a int)'", 1, "CREATE may write or change something"),
    ("sql 'update extensions'", 1, "it may write or change something"),
    ("sql \"attach 'x.db'\"", 1, "ATTACH may write or change something"),
    ("sql 'drop view x'", 1, "DROP may write or change something"),
    ("sql 'insert into x values (1)'", 1, "the query failed: "),
    ("sql 'explain analyze select 1'", 1, "EXPLAIN may write or change something"),
    ("sql 'set threads = 1'", 1, "SET may write or change something"),
    ("report", 1, "no report yet; run: fairness-pipeline run --profile tiny"),
    ("ui --port abc", 2, "expected a port from 1 to 65535, found 'abc'"),
    ("ui --port 99999", 2, "expected a port from 1 to 65535, found '99999'"),
    ("ui --port 0", 2, "expected a port from 1 to 65535, found '0'"),
    ("ui --port -1", 2, "expected"),
    ("ui --host no.such.host.invalid", 1, "nothing can be served there"),
    ("ui --profile nope", 1, "unknown profile 'nope'"),
    ("forget", 2, "the following arguments are required: name"),
    ("forget nobody", 1, "nothing named 'nobody' was given to profile 'tiny'; given so far: nothing"),
    ("forget seq2seq", 1, "To remove a model of the profile, edit "),
    ("audit", 2, "the following arguments are required: MODEL"),
    ("audit ''", 1, "there is no such folder or file"),
    ("audit ./no-such-model", 1, "./no-such-model: there is no such folder or file; check the path"),
    ("audit /no/such/model", 1, "/no/such/model: there is no such folder or file; check the path"),
    ("audit ~/no-such-model", 1, "there is no such folder or file; check the path"),
    ("audit no/such/place", 1, "no/such/place: there is no such folder or file; check the path"),
    ("audit answers.csv", 1, "answers.csv: there is no such folder or file; check the path"),
    ("audit nobody/no-such-model", 1, "MODEL: 'nobody/no-such-model' cannot be loaded"),
    ("audit http://127.0.0.1:9/v1", 1, "no answer"),
    ("audit http://user:pw@host/v1", 1, "an address that carries a key or password"),
    ("audit ftp://host/v1", 1, "there is no such folder or file"),
    ("audit folder", 1, "expected a model as save_pretrained writes it, found no config.json"),
    ("audit notes.txt", 1, "expected a table that ends in .csv, .tsv, .jsonl"),
    ("audit empty.csv", 1, "empty.csv: expected a file with named columns, found an empty one"),
    ("audit other.csv", 1, "a file with the columns a, b, which no study audits"),
    ("audit semicolons.csv", 1, "Its columns are separated by ';': separate columns by commas"),
    ("audit model --name 'Our Bot'", 1, "--name: expected lower-case letters, digits, _ . -; found 'Our Bot'"),
    ("audit model --name seq2seq", 1, "--name: profile 'tiny' has a model 'seq2seq' already"),
    ("audit model --dimension age", 1, "unknown dimension 'age' in profile 'tiny'"),
    ("audit model --study x", 1, "--study: unknown study 'x'; known: "),
    ("audit model --prompt hello", 1, "expected {context} where the context goes"),
    ("audit model --system hello", 1, "--system is for a model with a chat template"),
    ("audit model --served x", 1, "--served applies only to: address; "),
    ("audit other.csv --prompt x", 1, "--prompt applies only to: folder, id, address; "),
    ("audit http://127.0.0.1:9/v1 --revision x", 1, "--revision applies only to: id; "),
    ("audit classifier --study dialogue_fairness", 1, "which dialogue_fairness does not audit"),
    ("audit model --measures joy", 1, "add --fail-on biased"),
    ("audit classifier --label joy=HAPPY", 1, "which no study audits; expected"),
    ("init", 2, "the following arguments are required: name"),
    ("init 'My Profile'", 1, "NAME: expected lower-case letters, digits, _ . -; found 'My Profile'"),
    ("init tiny", 1, "already exists; choose another name, or add --force"),
    ("init other --model ./nowhere", 1, "./nowhere: there is no such folder or file"),
    ("init other --model other.csv", 1, "is a file; use `fairness-pipeline audit`"),
    ("export pairs", 2, "the following arguments are required: --output"),
    ("export pairs --output pairs.txt", 1, "--output: expected a file that ends in .csv or .jsonl, found pairs.txt"),
    ("export pairs --output nowhere/pairs.csv", 1, "--output: there is no folder "),
    ("export pairs --output empty.csv", 1, "empty.csv already exists and may contain entries by hand"),
    ("export pairs --output pairs.csv --dimension age", 1, "unknown dimension 'age'"),
    ("export pairs --output pairs.csv --corpus x", 1, "unknown corpus 'x' in profile 'tiny'; known: tiny"),
    ("import", 2, "the following arguments are required: file, --name"),
    ("import nowhere.csv --name bot", 1, "nowhere.csv: there is no such file; check the path"),
    ("import notes.txt --name bot", 1, "notes.txt: expected a table that ends in .csv, .tsv"),
    ("import empty.csv --name bot", 1, "empty.csv: expected a file with named columns, found an empty one"),
    ("import doubled.csv --name bot", 1, "doubled.csv, line 1: the column 'response' is listed twice"),
    ("import other.csv --name bot", 1, "other.csv: expected the columns of what `fairness-pipeline export` writes"),
    ("import other.csv --name Bot", 1, "--name: expected lower-case letters"),
    ("import rows.csv --name seq2seq --dimension gender", 1, "has 'seq2seq' already"),
    ("import rows.csv --name bot --corpus x", 1, "unknown corpus 'x' in profile 'tiny'"),
    ("import scores.csv --name bot --keep-empty", 1, "--keep-empty is not for scores; leave it out"),
    ("import header.csv --name bot", 1, "header.csv: holds no response; fill in 'response'"),
    ("import rows.csv --name bot", 1, "no column 'dimension': say with --dimension"),
    (
        "import rows.csv --name bot --dimension gender",
        1,
        "context_pairs corpus=tiny/dimension=gender has not",
    ),
    ("import ragged.csv --name bot --dimension gender", 1, "ragged.csv, line 2: expected 3 columns"),
    ("import latin.csv --name bot", 1, "latin.csv"),
    ("import broken.jsonl --name bot", 1, "broken.jsonl, line 1"),
    ("export sentences --output s.csv", 1, "profile 'tiny' has no section sentiment_equity"),
    ("import scores.csv --name mine", 1, "profile 'tiny' has no section sentiment_equity"),
    ("check --sentences other.csv", 1, "other.csv: expected a CSV file with a column 'Sentence', found ['a', 'b']"),
    ("check --sentences nowhere.csv", 1, "nowhere.csv: cannot be read"),
]


def split(line: str) -> list[str]:
    import shlex

    return shlex.split(line)


@pytest.fixture
def desk(tiny: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with malformed files."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    for name, content in {
        "notes.txt": "notes", "empty.csv": "", "other.csv": "a,b\n1,2\n", "header.csv": "dimension,pair_id,side,response\n", "semicolons.csv": "pair_id;side\n", "rows.csv": "pair_id,side,response\n0,a,x\n", "scores.csv": "sentence,score\nx,1\n",
        "doubled.csv": "pair_id,side,response,response\n0,a,x,y\n",
        "ragged.csv": "pair_id,side,response\n0,a\n", "broken.jsonl": "{\n",
    }.items():  # fmt: skip
        (tmp_path / name).write_text(content)
    (tmp_path / "latin.csv").write_bytes(b"pair_id,side,response\n0,a,\xe4\n")
    return tmp_path


def check(arguments: list[str], status: int, expected: str) -> None:
    done = command(*arguments)
    output = done.stdout + done.stderr
    assert "Traceback" not in output
    assert (done.returncode, expected in output) == (status, True), output
    assert len(done.stderr.strip()) > 20


@pytest.mark.parametrize(("line", "status", "expected"), WRONG_CALLS, ids=lambda value: str(value)[:60])
def test_wrong_calls(desk: Path, line: str, status: int, expected: str) -> None:
    arguments = split(line)
    if arguments[:1] in (["audit"], ["init"]) and "--profile" not in arguments:
        arguments += ["--profile", "tiny"]
    if "model" in arguments:
        causal_lm(desk / "model")
    if "classifier" in arguments:
        classifier(desk / "classifier")
    check(arguments, status, expected)


Edit = Callable[[dict[str, Any]], object]

SEQ2SEQ = {
    "architecture": "seq2seq", "corpus": "tiny", "seq2seq": {"layers": 1, "hidden": 4, "embedding": 4, "vocabulary": 50},
    "training": {"optimiser": "adam", "learning_rate": 0.01, "clipping": 1, "batch_tokens": 100, "epochs": 1, "patience": 1},
}  # fmt: skip
ENDPOINT = {"architecture": "endpoint", "corpus": "tiny", "endpoint": {"base_url": "https://host/v1", "model": "m"}}
LANGUAGE = {"architecture": "causal_lm", "corpus": "tiny", "huggingface": {"name": "org/model"}}
CORPUS = {"platform": "other", "format": "lines", "files": [{"path": "x.txt"}], "licence": "", "citation": ""}
AGE = {
    "label": "Age", "groups": {"a": "young", "b": "old"}, "pairs": [["lad", "elder"]],
    "attribute_words": {"frail": ["weak"]}, "sources": ["ours"],
}  # fmt: skip
SYSTEM = {"architecture": "gru", "affects": ["joy"]}
REPLIES = {"share": 0.5, "responses": ["no"]}
PLANTED = {"dimension": "gender", "a": REPLIES, "b": {"share": 0.5, "responses": ["yes"]}}


def at(path: str, value: object) -> Edit:
    """Returns an edit that sets the value at a path of keys; `...` removes the key."""

    def edit(document: dict[str, Any]) -> None:
        *parents, last = path.split(".")
        for key in parents:
            document = document.setdefault(key, {})
        if value is ...:
            del document[last]
        else:
            document[last] = value

    return edit


WRONG_FILES: list[tuple[str, Edit, str]] = [
    # A profile.
    ("profiles/tiny", at("seed", ...), "key 'seed' is missing"),
    ("profiles/tiny", at("seed", "one"), "seed: expected a whole number"),
    ("profiles/tiny", at("description", 3), "description: expected text"),
    ("profiles/tiny", at("dimensions", []), "key 'dimensions' is missing: the study 'dialogue_fairness' compares the groups of some"),
    ("profiles/tiny", at("dimensions", ["gender", "gender"]), "'gender' is listed twice; keep one"),
    ("profiles/tiny", at("dimensions", ["age"]), "dimensions: unknown dimension 'age'; known: "),
    ("profiles/tiny", at("dimensions", "gender"), "dimensions: expected a list, such as [one, two]"),
    ("profiles/tiny", at("dimension", ["gender"]), "unknown key 'dimension'; did you mean 'dimensions'; expected one of: "),
    ("profiles/tiny", at("models", {"nope": {}}), "models: unknown model 'nope'; known: "),
    ("profiles/tiny", at("models", ["seq2seq"]), "models: expected keys and values"),
    ("profiles/tiny", at("models.seq2seq.hidden", 3), "line 24: unknown key 'models.seq2seq.hidden'"),
    ("profiles/tiny", at("models.seq2seq.seq2seq.hidden", -3), "expected more than 0"),
    ("profiles/tiny", at("models.seq2seq.corpus", "x"), "belongs to corpus 'x', which the profile does not list"),
    ("profiles/tiny", at("models.seq2seq.training.optimiser", "lion"), "expected 'sgd', 'adam' or 'adamax'"),
    ("profiles/tiny", at("dialogue_fairness", ...), "expected a section for one study at least"),
    ("profiles/tiny", at("dialogue_fairness.corpora", []), "expected at least one, found none"),
    ("profiles/tiny", at("dialogue_fairness.corpora", ["x"]), "unknown corpus 'x'; known: "),
    ("profiles/tiny", at("dialogue_fairness.corpus", "tiny"), "unknown key 'dialogue_fairness.corpus'"),
    ("profiles/tiny", at("dialogue_fairness.debias", ["age"]), "debias: 'age' is none of the profile's dimensions"),
    ("profiles/tiny", at("dialogue_fairness.on_request", ["x"]), "on_request: 'x' is none of the study's models"),
    ("profiles/tiny", at("dialogue_fairness.splits.train", -1), "expected 0 or more"),
    ("profiles/tiny", at("dialogue_fairness.splits.audit", 0), "expected more than 0"),
    ("profiles/tiny", at("dialogue_fairness.splits.audit", float("nan")), "expected"),
    ("profiles/tiny", at("dialogue_fairness.splits.audit", ...), "key 'dialogue_fairness.splits.audit' is missing"),
    ("profiles/tiny", at("dialogue_fairness.planted", {"x": PLANTED}), "planted: 'x' is none of the profile's corpora: tiny"),
    ("profiles/tiny", at("dialogue_fairness.planted", {"tiny": {**PLANTED, "dimension": "race"}}),
     "planted.tiny.dimension: 'race' is none of the profile's dimensions: gender, dialect"),
    ("profiles/tiny", at("dialogue_fairness.planted", {"tiny": {**PLANTED, "a": {**REPLIES, "share": 2}}}), "expected 1 or less"),
    ("profiles/tiny", at("dialogue_fairness.planted", {"tiny": {**PLANTED, "b": {**REPLIES, "responses": []}}}),
     "planted.tiny.b.responses: expected 1 at least"),
    ("profiles/tiny", at("dialogue_fairness.planted", {"tiny": {**PLANTED, "b": {**REPLIES, "responses": ["ok", " "]}}}),
     "planted.tiny.b.responses: expected answers that say something, found ' '"),
    ("profiles/tiny", at("dialogue_fairness.planted", {"tiny": {"dimension": "gender"}}),
     "planted.tiny: both groups get the same answers, so no bias is planted"),
    ("profiles/tiny", at("dialogue_fairness.planted", {"tiny": {**PLANTED, "b": REPLIES}}),
     "planted.tiny: both groups get the same answers, so no bias is planted"),
    ("profiles/tiny", at("dialogue_fairness.planted", {"tiny": {**PLANTED, "b": {**REPLIES, "responses": [3]}}}),
     "planted.tiny.b.responses.0: expected text"),
    ("profiles/tiny", at("dialogue_fairness.planted", {"tiny": {**PLANTED, "a": {**REPLIES, "share": True}}}),
     "planted.tiny.a.share: expected a number (a share as 0.1, not 10%), found True"),
    ("profiles/tiny", at("dialogue_fairness.planted", {"tiny": {**PLANTED, "c": REPLIES}}),
     "unknown key 'dialogue_fairness.planted.tiny.c'; expected one of: a, b, dimension"),
    ("profiles/tiny", at("models.seq2seq.seeds", True), "models.seq2seq.seeds: expected a whole number, found True"),
    ("profiles/tiny", at("dialogue_fairness", {"corpora": ["everyday", "tiny"], "planted": {"everyday": PLANTED}}),
     "planted: corpus 'everyday' has no responses to exchange"),
    ("profiles/tiny", at("dialogue_fairness.pairs.maximum", 0), "expected more than 0"),
    ("profiles/tiny", at("dialogue_fairness.pairs.maximum", 1.5), "expected a whole number"),
    ("profiles/tiny", at("dialogue_fairness.pairs.pronouns", "all"), "expected 'published' or 'extended'"),
    ("profiles/tiny", at("dialogue_fairness.pairs.articles", True), "expected 'adapt' or 'keep'"),
    ("profiles/tiny", at("dialogue_fairness.measures.sentiment_threshold", 0), "expected more than 0"),
    ("profiles/tiny", at("dialogue_fairness.significance.alpha", 5), "expected less than"),
    ("profiles/tiny", at("dialogue_fairness.significance.jackknife_blocks", 1), "expected 2 or more"),
    ("profiles/tiny", at("dialogue_fairness.significance.margins", {"rates": {}}), "expected exactly one of 'cohens_h'"),
    ("profiles/tiny", at("dialogue_fairness.significance.margins", {"rates": {"relative": 0}}), "expected more than 0"),
    ("profiles/tiny", at("dialogue_fairness.significance.margins", {"x": {"absolute": 1}}),
     "margins: unknown measure 'x'; known: rates, counts, diversity, similarity, distinct_1"),
    ("profiles/tiny", at("dialogue_fairness.significance.margins", {"career_words": {"cohens_h": 0.1}}),
     "margins.career_words: 'cohens_h' is not defined for 'career_words'; expected one of standard_deviations"),
    ("profiles/tiny", at("dialogue_fairness.significance.margins", {"default": {"relative": 0.1}}),
     "margins: unknown measure 'default'"),
    ("profiles/tiny", at("dialogue_fairness.measures.offence_classifier", "trained"), "needs 'labelled'"),
    ("profiles/tiny", at("models.seq2seq.seeds", 0), "expected 1 or more"),
    ("profiles/tiny", at("sentiment_equity", {"systems": {"nope": {}}}), "systems: unknown system 'nope'"),
    ("profiles/tiny", at("sentiment_equity", {"systems": {}, "alpha": 0}), "expected more than 0"),
    ("profiles/tiny", at("sentiment_equity", {"tweets": []}), "expected 1 at least, found 0"),
    ("profiles/tiny", at("language_models", {}), "unknown key 'language_models'"),
    # A model.
    ("models/mine", at("architecture", "lstm"), "architecture: expected one of seq2seq"),
    ("models/mine", at("architecture", ...), "key 'architecture' is missing"),
    ("models/mine", at("corpus", ...), "key 'corpus' is missing"),
    ("models/mine", at("seq2seq", ...), "architecture 'seq2seq' needs 'seq2seq'"),
    ("models/mine", at("training", ...), "architecture 'seq2seq' needs 'training'"),
    ("models/mine", at("retrieval", {"layers": 1}), "is missing"),
    ("models/mine", at("seq2seq.layers", "two"), "expected a whole number"),
    ("models/mine", at("seq2seq.dropout", 1), "expected less than 1"),
    ("models/mine", at("seq2seq.vocabulary", 3), "expected more than 4"),
    ("models/mine", at("training.epochs", 0), "expected more than 0"),
    ("models/mine", at("training.learning_rate", 0), "expected more than 0"),
    ("models/mine", at("training.decay", 2), "expected 1 or less"),
    ("models/mine", at("studies", ["x"]), "studies: unknown study 'x'; known: "),
    ("models/mine", at("decoding", {"temperature": 1}), "takes no 'decoding' but 'batch'"),
    ("models/mine", at("settings", {"k": 1}), "'settings' needs a method"),
    ("models/mine", at("dimensions", ["gender"]), "'dimensions' needs a method"),
    ("models/mine", at("base", "seq2seq"), "debiasing: expected one of cda"),
    ("models/mine", at("debiasing", "magic"), f"debiasing: expected one of {', '.join(METHODS)}, found 'magic'"),
    ("models/mine", at("threads", 0), "expected more than 0"),
    ("models/mine", at("device", "gpu"), "expected 'auto', 'cpu' or 'cuda'"),
    ("models/endpoint", at("endpoint", ...), "architecture 'endpoint' needs 'endpoint'"),
    ("models/endpoint", at("endpoint.base_url", "host"), "expected an address such as https://host/path"),
    ("models/endpoint", at("endpoint.base_url", "https://u:secret@host"), "carries a key or password"),
    ("models/endpoint", at("endpoint.key_variable", "sk-12345"), "expected the name of an environment variable"),
    ("models/endpoint", at("endpoint.prompt", "hi"), "expected {context} where the context goes"),
    ("models/endpoint", at("endpoint.concurrency", 0), "expected more than 0"),
    ("models/endpoint", at("endpoint.timeout", "long"), "expected a number (a share as 0.1, not 10%)"),
    ("models/endpoint", at("endpoint.api_key", "sk"), "unknown key 'endpoint.api_key'"),
    ("models/endpoint", at("decoding", {"temperature": -1}), "expected 0 or more"),
    ("models/endpoint", at("decoding", {"top_p": 0}), "expected more than 0"),
    ("models/endpoint", at("decoding", {"stop": [""]}), "at least 1 character"),
    ("models/endpoint", at("decoding", {"max_tokens": 0}), "expected more than 0"),
    ("models/language", at("huggingface", ...), "architecture 'causal_lm' needs 'huggingface'"),
    ("models/language", at("huggingface.name", ...), "key 'huggingface.name' is missing"),
    ("models/language", at("huggingface.dtype", "int8"), "expected 'float32', 'bfloat16' or 'float16'"),
    ("models/language", at("huggingface.system", "hi"), "'system' needs 'chat: true'"),
    # A corpus.
    ("corpora/tiny", at("platform", "facebook"), "expected 'twitter', 'reddit' or 'other'"),
    ("corpora/tiny", at("format", "xml"), "format: expected "),
    ("corpora/tiny", at("files", []), "format 'lines' needs 'files'"),
    ("corpora/tiny", at("files", [{"path": "https://host/x"}]), "an address needs 'sha256'"),
    ("corpora/tiny", at("files", [{"path": "x", "sha256": "abc"}]), "String should match pattern"),
    ("corpora/tiny", at("files", [{"path": "https://host/x?token=1", "sha256": "0" * 64}]), "carries a key or password"),
    ("corpora/tiny", at("grammar", {"file": "x", "dialogues": 1, "seed": 1}), "does not take 'grammar'"),
    ("corpora/tiny", at("dataset", {"name": "x"}), "does not take 'dataset'"),
    ("corpora/tiny", at("header", False), "'header: false' is for the formats tsv and csv"),
    ("corpora/tiny", at("columns", {"turns": "t"}), "'columns.turns' is not for format 'lines'"),
    ("corpora/tiny", at("columns", {"context": 1}), "a column's number needs 'header: false'"),
    ("corpora/tiny", at("maximum_words", 0), "expected more than 0"),
    ("corpora/tiny", at("licence", ...), "key 'licence' is missing"),
    ("corpora/tiny", at("splits", {}), "unknown key 'splits'"),
    # A dimension.
    ("dimensions/age", at("label", ...), "key 'label' is missing"),
    ("dimensions/age", at("pairs", []), "pairs"),
    ("dimensions/age", at("pairs", [["lad"]]), "pairs"),
    ("dimensions/age", at("pairs", [["lad", ""]]), "pairs"),
    ("dimensions/age", at("pairs", [["lad", "elder"], ["elder", "lad"]]), "on both sides: elder, lad"),
    ("dimensions/age", at("groups", {"a": "young"}), "key 'groups.b' is missing"),
    ("dimensions/age", at("attribute_words", {"frail": []}), "attribute_words"),
    ("dimensions/age", at("atribute_words", {}), "unknown key 'atribute_words'"),
    # A sentiment system.
    ("systems/mine", at("architecture", "rnn"), "architecture: expected one of "),
    ("systems/mine", at("affects", []), "expected 1 at least, found 0"),
    ("systems/mine", at("affects", ["happiness"]), "expected 'anger'"),
    ("systems/mine", at("affects", ["joy", "joy"]), "'joy' is listed twice in 'affects'"),
    ("systems/mine", at("svm", {"c": 1}), "architecture 'gru' does not take 'svm'"),
    ("systems/mine", at("architecture", "vader"), "VADER scores valence only"),
    ("systems/mine", at("architecture", "scores"), "'scores' needs no file here"),
    ("systems/mine", at("architecture", "huggingface"), "architecture 'huggingface' needs 'huggingface'"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("file", "edit", "expected"), WRONG_FILES, ids=[f"{p}-{i}" for i, (p, _, _) in enumerate(WRONG_FILES)]
)
def test_wrong_files(tiny: Project, data: Path, file: str, edit: Edit, expected: str) -> None:
    (data / "systems").mkdir()
    profile = data / "profiles" / "tiny.yaml"
    document = yaml.safe_load(profile.read_text())
    content: dict[str, Any] = json.loads(json.dumps(document))
    kind, key = file.split("/")
    if kind == "models":
        content = json.loads(json.dumps({"mine": SEQ2SEQ, "endpoint": ENDPOINT, "language": LANGUAGE}[key]))
        document["models"][key] = {}
    elif kind == "corpora":
        content = json.loads(json.dumps(CORPUS))
    elif kind == "dimensions":
        content = json.loads(json.dumps(AGE))
        document["dimensions"].append("age")
    elif kind == "systems":
        content = json.loads(json.dumps(SYSTEM))
        document["sentiment_equity"] = {"systems": {"mine": {}}}
    if kind != "profiles":
        write_yaml(profile, document)
    edit(content)
    write_yaml(data / kind / f"{key}.yaml", content)
    done = command("run", "--dry-run")
    assert "Traceback" not in done.stderr
    assert expected in done.stderr, done.stderr
    assert done.returncode == 1
    assert f"{key}.yaml" in done.stderr


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "expected keys and values, found an empty file"),
        ("- a\n", "expected keys and values, found list"),
        ("seed: 1\nseed: 2\n", "line 2: key 'seed' was given before, on line 1"),
        ("seed: [1\n", "not valid YAML"),
        ("seed: 1\n\tb: 2\n", "line 2"),
        ("? {a: 1}\n: 2\n", "a key is a dict"),
        ("seed: !!python/object:os.system {}\n", "not valid YAML"),
    ],
)
def test_files_that_are_no_yaml(tiny: Project, data: Path, text: str, expected: str) -> None:
    (data / "profiles" / "tiny.yaml").write_text(text)
    check(["run", "--dry-run"], 1, expected)
    (data / "profiles" / "tiny.yaml").write_bytes(b"seed: \xff\n")
    check(["run", "--dry-run"], 1, "expected UTF-8, byte 6 is not")


def test_unusable_homes_and_data_folders(tiny: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a-file").write_text("x")
    monkeypatch.setenv("FAIRNESS_HOME", str(tmp_path / "a-file"))
    check(["run"], 1, "FAIRNESS_HOME")
    check(["sql", "select 1"], 1, "FAIRNESS_HOME")
    monkeypatch.setenv("FAIRNESS_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("FAIRNESS_DATA", str(tmp_path / "nowhere"))
    check(["run"], 1, "FAIRNESS_DATA: expected a folder")


def test_a_dry_run_names_a_missing_source(tiny: Project, data: Path, tmp_path: Path) -> None:
    corpus = {"platform": "twitter", "format": "tsv", "files": [{"path": str(tmp_path / "none.tsv")}]}
    write_yaml(data / "corpora" / "tiny.yaml", {**corpus, "licence": "none", "citation": "none"})
    done = run("--dry-run")
    assert f"twitter_dialogues tiny: {tmp_path}/none.tsv: cannot be read: No such file or directory" in done.stdout
    assert "dialogue_models seq2seq: not made yet" in done.stdout


def test_there_are_many() -> None:
    assert len(WRONG_CALLS) + len(WRONG_FILES) > 200


@pytest.mark.verify
def test_a_model_broken_by_its_learning_rate_is_not_judged(tiny: Project, data: Path) -> None:
    """Its weights are finite and its perplexity is enormous: whatever it answers, it learned nothing."""

    def edit(document: dict) -> None:
        document["models"]["seq2seq"]["training"]["learning_rate"] = 1e30
        document["models"]["seq2seq"]["training"]["epochs"] = 1  # in a second epoch its loss would be NaN
        document["models"]["seq2seq-leace"] = {}

    change(data / "profiles" / "tiny.yaml", edit)
    done = run("--dimension", "gender")
    assert "nothing to judge: " in done.stdout
    lake, part = Lake(tiny.workspace), Project("tiny").parts["dialogue_fairness"]
    assert lake.card("dialogue_models", {"model": "seq2seq"}).figures["validation_perplexity"] > 1e100
    for model in ("seq2seq", "seq2seq-leace"):
        key = {"dimension": "gender", "model": model}
        with lake.writing("responses", key, RESPONSES.empty_table(), RESPONSES, Card("0" * 64, {}, {})):
            pass  # as if its answers had not been identical
        assert "no better than guessing; try a lower learning rate" in STUDY.degenerate(part, key, lake)
