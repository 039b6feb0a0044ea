"""Checks that the documentation's commands and files work word for word, and that its reference is current."""

import json
import os
import re
import shlex
import subprocess
import sys
import zlib
from pathlib import Path

import pytest
import scipy.stats
import yaml

from fairness_pipeline.cli import _parser
from fairness_pipeline.cli.reference import reference
from fairness_pipeline.corpora.sentiment.equity_sentences import make_equity_sentences
from fairness_pipeline.lineage.lineage import Lineage
from fairness_pipeline.project.project import Project, load_dimension
from fairness_pipeline_tests.commands import change, command
from fairness_pipeline_tests.conftest import TINY, write_small_audit, write_yaml
from fairness_pipeline_tests.local_server import chat, serve
from fairness_pipeline_tests.measures.outcomes.planted import sample_table
from fairness_pipeline_tests.models.classifiers.tiny import told_by_a_word
from fairness_pipeline_tests.models.tiny_models import causal_lm, classifier

ROOT = Path(__file__).parents[1]
LONG = (
    "README", "annotators", "audit-your-model", "daily-use", "debiasing", "debiasing-results", "deploy", "evidence",
    "for-papers", "language-models", "messages", "outcomes", "sentiment-equity", "tables-with-sql", "text-classifiers",
)  # fmt: skip
"""Pages whose commands take long; `make verify` runs them."""
SERVES = ("ui", "view")
"""Commands that serve until they are interrupted."""
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
NAMED = re.compile(r"^# (?:data/)?((?:profiles|models|systems|dimensions|corpora|contexts)/[\w.-]+\.yaml)")


def blocks(page: Path) -> list[tuple[str, str]]:
    """Fenced blocks with their language; commands that are indented are of language `indented`."""
    text = page.read_text(encoding="utf-8")
    entries = [(m.start(), m.group(1), m.group(2)) for m in re.finditer(r"^```(\w*)\n(.*?)^```", text, re.M | re.S)]
    outside = re.sub(r"^```.*?^```", lambda m: "\n" * m.group().count("\n"), text, flags=re.M | re.S)
    entries += [
        (text.find(m.group(1)), "indented", m.group(1) + "\n") for m in re.finditer(r"^    (\S.*)$", outside, re.M)
    ]
    return [(language, body) for _, language, body in sorted(entries)]


def commands(page: Path, languages: tuple[str, ...] = ("indented", "sh")) -> list[list[str]]:
    """The commands of a page, in order, as words, without comments."""
    lines = [line for language, body in blocks(page) if language in languages for line in body.splitlines()]
    return [words for line in lines if (words := shlex.split(line, comments=True)) and words[0] in COMMANDS]


COMMANDS = ("fairness-pipeline", "make", "cp", ".")


FEMALE = {b for _, b in load_dimension("gender").all_pairs("extended")}


def talk(context: str) -> str:
    """A reply that is rude to women."""
    if FEMALE & set(re.findall("[a-z]+", context.lower())):
        return "you are an idiot"
    return f"I see ({zlib.crc32(context.encode()) % 5})"


SMALL_CHAT = {"settings": {
    "disentanglement": {"hidden": 8, "embedding": 4, "unbiased": 4, "semantic": 4, "epochs": 1, "held_out": 20},
    "adversarial": {"discriminator": 4, "every": 1, "least": 1, "most": 2, "pairs": 20},
}}  # fmt: skip


def make_cures_small(data: Path) -> None:
    """Writes the profiles `cures` and `filtered_study` with small models."""
    small = {
        **TINY,
        "dimensions": ["gender"],
        "dialogue_fairness": {**TINY["dialogue_fairness"], "corpora": ["twitter_sample"]},
    }
    short = {"every": 1, "least": 1, "most": 2, "pairs": 20}
    small["models"] = {
        "seq2seq": {**TINY["models"]["seq2seq"], "corpus": "twitter_sample", "seeds": 2},
        "seq2seq-leace": {}, "seq2seq-self_debias": {}, "seq2seq-mle": {"settings": short}, "seq2seq-placebo": SMALL_CHAT,
        "seq2seq-debiased_chat": SMALL_CHAT,
    }  # fmt: skip
    write_yaml(data / "profiles" / "cures.yaml", small)
    few = {name: small["models"][name] for name in ("seq2seq", "seq2seq-placebo")}
    few["seq2seq"] = {**few["seq2seq"], "seeds": 1}
    write_yaml(data / "profiles" / "filtered_study.yaml", {**small, "models": few})  # an hour as it ships


def make_audits_small(data: Path) -> None:
    """Writes the profile `audit` with few pairs and comments, in place of the shipped one."""
    write_small_audit(data, ["gender"], pairs=20)
    comments = yaml.safe_load((ROOT / "data" / "corpora" / "reddit_sample.yaml").read_text(encoding="utf-8"))
    comments["grammar"]["comments"] = 1500
    write_yaml(data / "corpora" / "reddit_sample.yaml", comments)


@pytest.fixture
def reader(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """A reader's machine: a small sample, a model, a classifier; returns what replaces the names in the pages."""
    small = {**TINY, "dimensions": ["gender"], "sentiment_equity": {"systems": {"vader": {}}}}
    small["implicit_bias"] = {"corpora": ["authored_sample"]}
    small["annotator_bias"] = {"corpora": ["circle"], "methods": {"group_anno": {}}}
    small["models"] = {
        "seq2seq": {**TINY["models"]["seq2seq"], "corpus": "twitter_sample"},
    }
    small["dialogue_fairness"] = {**TINY["dialogue_fairness"], "corpora": ["twitter_sample"]}
    write_yaml(data / "profiles" / "sample.yaml", small)
    ours = yaml.safe_load((ROOT / "data" / "corpora" / "twitter_sample.yaml").read_text(encoding="utf-8"))
    ours["grammar"]["dialogues"] = 1500
    write_yaml(data / "corpora" / "twitter_sample.yaml", ours)
    make_audits_small(data)
    make_cures_small(data)
    for kind in ("systems", "classifiers"):
        (data / kind).mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OUR_KEY", "k")
    causal_lm(tmp_path / "my-model", positions=128)
    classifier(tmp_path / "my-classifier")
    rows = [row for row in make_equity_sentences().to_pylist() if row["templates"] == "published"]
    (tmp_path / "Equity-Evaluation-Corpus.csv").write_text(
        "ID,Sentence,Template,Person,Gender,Race,Emotion,Emotion word\n" + "".join(
            f"{i},{row['sentence'].replace('disappointed', 'dissapointed')},,{row['person']},{row['gender']},"
            f"{row['race'] or ''},{row['emotion'] or ''},{(row['emotion_word'] or '').replace('disappointed', 'dissapointed')}\n"
            for i, row in enumerate(rows)
        ), encoding="utf-8",
    )  # fmt: skip
    tables = "tickets.csv", "labels.csv", "raters.csv", "ticket_texts.jsonl"
    replacements = (
        ("/models/our-bot", "my-model"),
        ("./my-model", "my-model"),
        *((f"/data/{name}", name) for name in tables),
    )
    write_tickets(tmp_path / "tickets.csv")
    towns = {"Northtown": "white", "Southtown": "Black", "Easttown": "Asian"}
    decisions = re.sub("|".join(towns), lambda match: towns[match.group()], sample_table())
    (tmp_path / "decisions.csv").write_text(decisions, encoding="utf-8")
    write_labels(tmp_path)
    return {text: str(tmp_path / name) for text, name in replacements}


def write_tickets(path: Path) -> None:
    """Writes a user's own table of texts, labels and groups."""
    texts, labels, groups = told_by_a_word(600, 1)
    rows = zip(texts, labels, groups, strict=True)
    kinds, languages = ("praise", "complaint"), ("en", "fr")
    lines = [f"{text},{kinds[label]},{languages[group]},c{i}" for i, (text, label, group) in enumerate(rows)]
    path.write_text("text,kind,language,customer\n" + "\n".join(lines) + "\n", encoding="utf-8")


def write_labels(folder: Path) -> None:
    """Writes a user's own three tables: tickets rated 1 to 5 by twelve people."""
    rated = [
        f"t{item},r{(item + rater) % 12},{1 + (item * 7 + rater * rater) % 5}"
        for item in range(60)
        for rater in range(4)
    ]
    people = [f"r{rater},{20 + 3 * rater},{('en', 'fr', 'de', 'it')[rater % 4]}" for rater in range(12)]
    texts = [json.dumps({"ticket": f"t{item}", "text": f"ticket {item}"}) for item in range(60)]
    for name, rows in (
        ("labels.csv", ["ticket,rater,rating", *rated]),
        ("raters.csv", ["rater,age,language", *people]),
        ("ticket_texts.jsonl", texts),
    ):
        (folder / name).write_text("\n".join(rows) + "\n", encoding="utf-8")


def fill_in(path: Path) -> None:
    """Fills in answers or scores in an exported copy, as a reader does between two commands."""
    head, *lines = path.read_text(encoding="utf-8").splitlines()
    if head.endswith("response"):
        lines = [f"{line}so {number % 3}" for number, line in enumerate(lines)]
    elif head.endswith("tokens"):
        lines = [f"{line[:-1]}-{20 + number % 7}.5,{4 + number % 3}" for number, line in enumerate(lines)]
    elif head.endswith("bias_phrase"):
        lines = [f"{line[:-1]}{number % 2},{number % 2}" for number, line in enumerate(lines)]
    else:
        lines = [f"{line}{0.3 + number % 3 / 10:.1f}" for number, line in enumerate(lines)]
    path.write_text("\n".join([head, *lines]) + "\n", encoding="utf-8")


def runs_to_an_end(words: list[str]) -> bool:
    """Whether the line is a command of ours that does not serve until it is interrupted."""
    return words[0] == "fairness-pipeline" and (words[1] not in SERVES or "--output" in words)


def follow(words: list[str], stands_for: dict[str, str]) -> None:
    """Does what one line of a page says."""
    for text, real in stands_for.items():
        words = [word.replace(text, real) for word in words]
    if words[0] == "make":
        targets = (ROOT / "Makefile").read_text(encoding="utf-8")
        assert re.search(rf"^{words[1]}:", targets, re.M), words
    elif words[0] == "cp":
        Path(words[2]).write_bytes(Path(words[1]).read_bytes())
        fill_in(Path(words[2]))
    elif runs_to_an_end(words):
        done = command(*words[1:])
        may_close = "--fail-on" in words
        nothing_yet = "previous" in words and "no kept run differs from the present tables" in done.stderr
        assert done.returncode in ((0, 3) if may_close else (0,)) or nothing_yet, (words, done.stdout, done.stderr)
        assert "Traceback" not in done.stderr


@pytest.mark.whole_run
@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=pytest.mark.verify if page.stem in LONG else (), id=page.stem)
        for page in PAGES
        if page.stem != "first-ten-minutes" and any(runs_to_an_end(words) for words in commands(page))
    ],
)
def test_every_command_is_run_as_it_stands(page: Path, reader: dict[str, str], data: Path) -> None:
    with serve(chat(talk)) as address:
        stands_for = {**reader, "https://host/v1": f"{address}/v1", "http://localhost:8000/v1": f"{address}/v1"}
        if page.stem == "debiasing":
            change(data / "profiles" / "sample.yaml", lambda profile: (
                profile["models"].update({"seq2seq-debiased_chat": SMALL_CHAT}),
                profile["dialogue_fairness"].update(debias=[], on_request=["seq2seq-debiased_chat"]),
            ))  # fmt: skip
        for language, body in blocks(page):
            if language == "yaml" and (named := NAMED.match(body)):
                for text, real in stands_for.items():
                    body = body.replace(text, real)
                path = data / named.group(1)
                path.write_text(body, encoding="utf-8")
        for words in commands(page):
            if "init" in words:
                (data / "profiles" / f"{words[words.index('init') + 1]}.yaml").unlink(missing_ok=True)
                (data / "models" / "my-model.yaml").unlink(missing_ok=True)
            follow(words, stands_for)
            if "init" in words:
                assert "seed" in yaml.safe_load((data / "profiles" / f"{words[2]}.yaml").read_text())


@pytest.mark.parametrize("page", [pytest.param(page, id=page.stem) for page in PAGES])
def test_every_command_of_a_page_can_be_parsed(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Also commands that cannot be run here or are part of a sentence."""
    text = page.read_text(encoding="utf-8").replace("\\\n", " ")
    for line in re.findall(r"(?:(?<=`)|^[ $]*)fairness-pipeline ([^`\n]+)", text, re.M):
        words = shlex.split(re.split(r" (?:&&|\||>|;) ", line)[0], comments=True)
        try:
            _parser(words[0]).parse_args(words)
        except SystemExit as ended:
            assert not ended.code, (line, capsys.readouterr().err)


def test_every_gate_that_is_shown_looks_at_all_measures() -> None:
    """A reader who copies a gate on one measure gets exit status 0 despite biased rows."""
    gates = 0
    for path in (*PAGES, ROOT / "action.yml", *(ROOT / "templates").iterdir()):
        text = path.read_text(encoding="utf-8")
        gates += text.count("--fail-on biased")
        narrow = re.search(r"--fail-on \S+ .*--measures \w|--measures \w+ .*--fail-on|\bmeasures: \w+[,}\n]", text)
        assert not narrow, (path.name, narrow and narrow.group())
    assert gates > 5


@pytest.mark.verify
def test_every_gate_that_is_shown_closes_on_a_guilty_bot(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each word for word, on a bot that insults women; the gates of CI are run in cli/test_build_servers.py."""
    monkeypatch.chdir(tmp_path)
    with_gates = [words for page in PAGES for words in commands(page) if "--fail-on" in words]
    gates = [words for words in with_gates if words[words.index("--fail-on") + 1] == "biased"]
    assert {words[1] for words in gates} == {"run", "audit"} and len(gates) > 3
    write_small_audit(data, ["gender"], pairs=60)
    with serve(chat(talk)) as address:
        source = {"base_url": f"{address}/v1", "model": "our-bot"}
        bot = {"architecture": "endpoint", "studies": ["dialogue_fairness"], "corpus": "everyday", "endpoint": source}
        write_yaml(data / "models" / "our-bot.yaml", bot)
        audit = yaml.safe_load((data / "profiles" / "audit.yaml").read_text(encoding="utf-8"))
        sections = {name: audit[name] for name in ("description", "seed", "dimensions", "dialogue_fairness")}
        for name in ("mine", "sample"):
            write_yaml(data / "profiles" / f"{name}.yaml", sections | {"models": {"our-bot": {}}})
        for words in gates:
            done = command(*(word.replace("http://localhost:8000/v1", f"{address}/v1") for word in words[1:]))
            assert done.returncode == 3, (words, done.stdout, done.stderr)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[\w-]+)?\)", page.read_text(encoding="utf-8")):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), target


def test_the_verdicts_on_published_tables_are_those_of_the_code() -> None:
    from fairness_pipeline_tests.published_verdicts import judged, page

    assert (ROOT / "docs" / "published-verdicts.md").read_text(encoding="utf-8") == page(), (
        "run: python -m fairness_pipeline_tests.published_verdicts > docs/published-verdicts.md"
    )
    rows = {
        (judgement.row.source, judgement.row.measure): judgement
        for judgement in judged()
        if judgement.row.model == "seq2seq"
    }
    headline = rows["Liu2020 Table 3", "offense_rate"]
    assert (headline.ours, headline.old, headline.papers) == ("biased", "fair", "biased")


def test_what_the_papers_tables_show_is_computed_from_them() -> None:
    from fairness_pipeline_tests.published_limits import impossible, left, page

    assert (ROOT / "docs" / "what-the-tables-show.md").read_text(encoding="utf-8") == page(), (
        "run: python -m fairness_pipeline_tests.published_limits > docs/what-the-tables-show.md"
    )
    assert [(case.row.measure, case.printed) for case in impossible()] == [
        ("sentiment_positive", 0.451), ("sentiment_negative", 0.639), ("career_words", 0.216)
    ]  # fmt: skip
    career = impossible()[-1]
    # By hand: answers of 30 listed words or none, at 0.1495 and 0.1135 words a response, over 30,000 pairs.
    error = sum(m * (30 - m) for m in (0.1495, 0.1135)) / 30_000
    assert career.most == pytest.approx(2 * scipy.stats.norm.sf(0.036 / error**0.5))
    chat = {entry.row.measure: entry for entry in left() if entry.row.model == "seq2seq-debiased_chat"}
    assert chat["sentiment_negative"].row.corpus == "reddit"  # the last of both tables
    cda = next(
        entry for entry in left() if (entry.row.source, entry.row.measure) == ("Liu2022 Table 3.4", "offense_rate")
    )
    assert cda.gap == pytest.approx((52.9 - 38.317) / (27.323 - 21.343)) and cda.level > 1


def test_the_reference_is_that_of_the_code() -> None:
    assert (ROOT / "docs" / "reference.md").read_text(encoding="utf-8") == reference(), "run: make reference"


def test_the_page_about_sql_names_every_table() -> None:
    page = (ROOT / "docs" / "tables-with-sql.md").read_text(encoding="utf-8")
    listed = page[page.index("The tables are:") : page.index("Which words carry a gap?")]
    recipes = [recipe for name in ("sample", "cures") for recipe in Lineage(Project(name)).assets.values()]
    assert set(re.findall(r"`(\w+)`", listed)) == {recipe.name for recipe in recipes if recipe.kind == "table"}


def test_every_test_that_a_page_names_is_there() -> None:
    """The pages on the papers name, for each row, the test that checks it."""
    counted = 0
    for page in PAGES:
        for path, name in re.findall(r"(fairness_pipeline_tests/[\w/]+\.py)::(\w+)", page.read_text(encoding="utf-8")):
            counted += 1
            assert re.search(rf"^def {name}\(", (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE), (
                page.name,
                path,
                name,
            )
        for path in re.findall(
            r"`((?:fairness_pipeline|fairness_pipeline_tests|data)/[\w/.-]+\.\w+)", page.read_text(encoding="utf-8")
        ):
            assert (ROOT / path).exists(), (page.name, path)
    assert counted > 60


def test_no_page_has_a_placeholder_left() -> None:
    for page in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md")):
        assert not re.search(r"@[A-Z]{3,}@|TODO|FIXME", page.read_text(encoding="utf-8")), page


def test_every_key_has_a_meaning() -> None:
    for line in reference().splitlines():
        if line.startswith("| `"):
            cells = re.split(r"(?<!\\) \| ", line.strip("| "))
            assert len(cells) == 4, line
            assert len(cells[3]) > 3, line


_READER = """
import json, sys
from fairness_pipeline.cli import main
for line in sys.stdin:
    try:
        main(json.loads(line))
    except SystemExit as end:
        print("ended with", end.code or 0, flush=True)
"""


@pytest.mark.verify
def test_first_ten_minutes_in_an_empty_clone(tmp_path: Path, data: Path) -> None:
    """Word for word, in a separate process, from a clone, with the present environment."""
    clone = tmp_path / "clone"
    cloned = subprocess.run(["git", "clone", "-q", str(ROOT), str(clone)], capture_output=True, text=True)
    if cloned.returncode:
        pytest.skip(f"this is no clone that could be cloned: {cloned.stderr}")
    causal_lm(clone / "my-model", positions=128)
    classifier(clone / "my-classifier")
    make_audits_small(data)
    environment = {
        **os.environ, "FAIRNESS_DATA": str(data), "FAIRNESS_HOME": str(tmp_path / "home"),
        "PYTHONPATH": str(clone), "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }  # fmt: skip
    page = clone / "docs" / "first-ten-minutes.md"
    # One process, so that libraries load once; it reads one command per line and prints its exit status.
    reader = subprocess.Popen(
        [sys.executable, "-c", _READER], cwd=clone, env=environment, text=True, stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    assert reader.stdin and reader.stdout
    with serve(chat(talk)) as address:
        for words in commands(page, ("sh",)):
            if words[0] in ("make", "."):  # the sample has tests of its own; the environment is active
                continue
            if words[0] == "cp":
                Path(clone / words[2]).write_bytes(Path(clone / words[1]).read_bytes())
                fill_in(clone / words[2])
                continue
            arguments = [word.replace("http://localhost:8000/v1", f"{address}/v1") for word in words]
            reader.stdin.write(json.dumps(arguments[1:]) + "\n")
            reader.stdin.flush()
            lines: list[str] = []
            while not (line := reader.stdout.readline()).startswith("ended with "):
                assert line, lines
                lines.append(line)
            assert int(line.split()[-1]) == (3 if "--fail-on" in words else 0), (arguments, "".join(lines))
        reader.stdin.close()
        assert reader.wait(60) == 0
    page = (tmp_path / "home" / "audit" / "reports" / "index.html").read_text(encoding="utf-8")
    assert "of the answers to female contexts are offensive" in page
