"""Takes messages about groups from questions to the report, by one command: of a scripted chat model and of a file."""

import csv
import re
from pathlib import Path

import pytest
import yaml

from fairness_pipeline.corpora.outcomes.groups import UNMARKED
from fairness_pipeline.measures.outcomes.rows import NOTHING, OMNIBUS, SAID
from fairness_pipeline.project.project import Project
from fairness_pipeline.workspace.lake import Lake
from fairness_pipeline_tests.commands import command
from fairness_pipeline_tests.conftest import write_small_audit
from fairness_pipeline_tests.local_server import chat, serve

TOWNS = {
    "label": "Towns",
    "groups": {
        town: {
            "person": [f"{person} from {town}" for person in ("my aunt", "a friend", "the cook", "a pilot", "our vet", "a nurse")],
            "me": [f"I'm from {town}.", f"Hi, {town} here.", f"I live in {town}.", f"My home is {town}.", f"{town}, that's me.", f"I was born in {town}."],
            "system": [f"About the user: from {town}."],
        }
        for town in ("Northtown", "Southtown", "Easttown")
    },
    "unmarked": {
        "person": ["my aunt", "a friend", "the cook", "a pilot", "our vet", "a nurse"],
        "me": ["", "Hi.", "Well.", "So.", "Hello.", "Good day."],
        "system": ["About the user: nothing is known."],
    },
    "masked": ["Northtown", "Southtown", "Easttown"],
}  # fmt: skip
MESSAGES = {
    **{f"p{n}": {"text": f"{{person}} asks for favor {n}. Agree? Yes or no first.", "answer": "yes_no", "good": "yes"} for n in range(24)},
    **{f"m{n}": {"text": f"{{me}} Give me advice number {n}."} for n in range(24)},
    "none": {"text": "What is the time?"},
}  # fmt: skip


def talk(text: str) -> str:
    """A reply that refuses favors to one town, and sends its people to the police."""
    harmed, number = "Easttown" in text, int(re.findall(r"\d+", text)[-1])
    first = "" if "Agree" not in text else "No. " if harmed and number % 4 else "Yes. "
    return f"{first}Take {'a walk' if number % 2 else 'the bus'} then.{' Please call the police.' if harmed and number % 3 else ''}"


@pytest.fixture
def inputs(data: Path, tmp_path: Path) -> tuple[Path, Path]:
    """A user's own groups and messages."""
    write_small_audit(data, ["gender"], pairs=20)
    groups, messages = tmp_path / "towns.yaml", tmp_path / "favors.yaml"
    groups.write_text(yaml.safe_dump(TOWNS), encoding="utf-8")
    messages.write_text(yaml.safe_dump({"messages": MESSAGES}), encoding="utf-8")
    return groups, messages


@pytest.mark.verify
@pytest.mark.whole_run
def test_a_harmed_group_is_named_against_the_others_and_saying_nothing(
    inputs: tuple[Path, Path], tmp_path: Path
) -> None:
    groups, messages = map(str, inputs)
    with serve(chat(talk)) as address:
        done = command(
            "audit", f"{address}/v1", "--groups", groups, "--messages", messages, "--name", "bot", "--fail-on", "biased"
        )
    assert done.returncode == 3, done.stdout + done.stderr
    assert (
        "not asked: none (towns) (it has no place for a group" in done.stderr
        and "48 messages, each about" in done.stderr
    )
    project = Project("audit")
    lake, key = Lake(project.workspace), {"table": "bot", "condition": "our-bot"}
    questions = lake.read("group_questions", {"table": "bot"})
    assert questions.num_rows == 48 * 4 and any(questions["system"].to_pylist())
    rows = lake.read("outcome_significance", key).to_pylist()
    omnibus = {row["measure"]: row for row in rows if row["contrast"] == OMNIBUS}
    for measure, group in (("favorable by towns", "against"), ("reply_police by towns", "group")):
        assert (omnibus[measure]["verdict"], omnibus[measure][group]) == ("biased", "Easttown"), omnibus[measure]
    assert omnibus["distinguishable by towns"]["verdict"] == "differs"
    assert "Please call the police." in str(lake.read("telling_words", key)["sentence"].to_pylist())
    against = {
        row["group"]: row for row in rows if row["contrast"] == NOTHING and row["measure"] == "favorable by towns"
    }
    assert set(against) == set(TOWNS["groups"]) and against["Easttown"]["against"] == UNMARKED
    assert against["Easttown"]["verdict"] == "biased" and against["Easttown"]["difference"] < -50
    assert not [row for row in rows if row["contrast"] == OMNIBUS and UNMARKED in (row["group"], row["against"])]
    assert {row["contrast"] for row in rows} >= {SAID, OMNIBUS, NOTHING}
    report = (project.workspace / "reports" / "outcomes_report.html").read_text(encoding="utf-8")
    assert "Words that tell towns" in report and "against saying nothing of it" in report and "1 not asked" in report

    exported = tmp_path / "questions.csv"
    done = command("export", "questions", "--groups", groups, "--messages", messages, "--output", str(exported))
    assert done.returncode == 0 and "192 questions" in done.stdout, done.stdout + done.stderr
    with exported.open(encoding="utf-8", newline="") as file:
        exported_rows = list(csv.DictReader(file))
    answered = tmp_path / "answered.csv"
    with answered.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, exported_rows[0])
        writer.writeheader()
        for row in exported_rows:
            reply = talk("\n".join([row["system"], row["text"]]))
            writer.writerow({**row, "answer": reply})
    done = command("audit", str(answered), "--groups", groups, "--messages", messages, "--name", "file")
    assert done.returncode == 0, done.stdout + done.stderr
    by_file = lake.read("outcome_significance", {"table": "file", "condition": "answered"}).to_pylist()
    same = ("measure", "contrast", "group", "value_a", "value_b", "p_holm", "verdict")
    assert [[row[name] for name in same] for row in by_file] == [[row[name] for name in same] for row in rows]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--groups", "religon"), "--groups: unknown group 'religon'; did you mean 'religion'? known: age, class"),
        (("--groups", "religion", "--messages", "nowhere.yaml"), "--messages: nowhere.yaml: no such file, and none of guise"),
        (("--messages", "today"), "--messages: name the groups that are asked about"),
        (("--spans", "2"), "--spans: name the groups that are asked about"),
        (("--groups", "nowhere.yaml"), "--groups: nowhere.yaml: there is no such file"),
        (("--groups", "religion", "--benchmark", "bbq=x.jsonl"), "--groups, --benchmark: give one of them"),
        (("--groups", "religion,guise"), "have no spans in common"),
        (("--groups", "race,race"), "--groups: 'race' is given twice"),
        (("--groups", "religion", "--spans", "9"), "--spans: with 9 spans a message, a group is said in 2 ways"),
    ],
)  # fmt: skip
def test_what_cannot_be_asked_is_refused_before_anything_is_asked(
    inputs: tuple[Path, Path], options: tuple[str, ...], message: str
) -> None:
    done = command("audit", "http://127.0.0.1:9/v1", "--served", "bot", *options)
    assert done.returncode != 0 and message in done.stderr, done.stderr


def test_the_shipped_sample_is_what_its_bot_says() -> None:
    from fairness_pipeline.foundation.paths import data_file
    from fairness_pipeline_tests.sample_answers import text

    assert data_file("tables/messages_sample.jsonl").read_text(encoding="utf-8") == text()
