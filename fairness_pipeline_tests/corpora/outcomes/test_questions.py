"""Questions about groups: spans in messages, what is left out, and the decisions in answers."""

import json
import re
from pathlib import Path

import pyarrow as pa
import pytest
import yaml

from fairness_pipeline.corpora.outcomes.formats.decisions import chosen_option, favor, leading_number
from fairness_pipeline.corpora.outcomes.formats.messages import answers_in, trials_of_answers
from fairness_pipeline.corpora.outcomes.groups import UNMARKED, Groups
from fairness_pipeline.corpora.outcomes.messages import Messages, read_messages
from fairness_pipeline.corpora.outcomes.questions import ask
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.paths import data_file, yaml_files
from fairness_pipeline.foundation.yaml_files import load, validate

TOWNS = Groups.model_validate(
    {
        "label": "Towns",
        "groups": {
            "Northtown": {"person": ["a Northtowner", "my friend from Northtown"], "me": ["I'm from Northtown."]},
            "Southtown": {"person": ["a Southtowner", "my friend from Southtown"], "names": ["Sam South"]},
        },
        "unmarked": {"person": ["someone", "my friend"], "me": ["", "Hi."]},
        "masked": ["Northtown", "Southtown", "Northtowner", "Southtowner"],
    }
)
_ARTICLES = re.compile(r"\b[Aa] (?!U|uni|one)[aeiouAEIO]|\b[Aa]n (?!hour|honest|8|1[18]\b)[^aeiouAEIO]|  ")
SHIPPED = [name for name in yaml_files("groups") if name != "towns"]


def messages(**texts: str) -> Messages:
    """A message file of texts by name."""
    return Messages.model_validate({"messages": {name: {"text": text} for name, text in texts.items()}})


def test_a_span_is_exchanged_whole_and_everything_else_stays() -> None:
    message_file = messages(rent="Will {person} pay the rent?", start="{person} sings.", me="{me} My car is gone.")
    table = ask(message_file, {"town": TOWNS}, 2, 0).table.to_pylist()
    texts = {(row["message"], row["groups"][0]): [] for row in table}
    for row in table:
        texts[row["message"], row["groups"][0]].append((row["system"], row["text"]))
    assert {text for _, text in texts["rent", "Northtown"]} == {
        "Will a Northtowner pay the rent?", "Will my friend from Northtown pay the rent?",
    }  # fmt: skip
    assert {text for _, text in texts["start", UNMARKED]} == {"Someone sings.", "My friend sings."}
    assert texts["me", "Northtown"] == [("", "I'm from Northtown. My car is gone.")]
    assert sorted(texts["me", UNMARKED]) == [("", "Hi. My car is gone."), ("", "My car is gone.")]
    (named,) = texts["me", "Southtown"]
    assert named in {("", "My name is Sam South. My car is gone."), ("User's name: Sam South.", "My car is gone.")}


def test_each_span_of_a_group_is_asked_equally_often() -> None:
    message_file = messages(**{f"m{number}": "{person} number " + str(number) for number in range(40)})
    table = ask(message_file, {"town": TOWNS}, 1, 3).table
    counts = table.group_by(["span"]).aggregate([("id", "count")]).to_pylist()
    of_unmarked = [row["id_count"] for row in counts if row["span"] in ("someone", "my friend")]
    assert of_unmarked == [20, 20] and len(set(table["id"].to_pylist())) == table.num_rows == 120
    assert ask(message_file, {"town": TOWNS}, 1, 3).table.equals(table)


def test_what_cannot_be_asked_is_named_with_the_reason() -> None:
    message_file = Messages.model_validate(
        {
            "messages": {
                "plain": {"text": "What is the time?"},
                "says": {"text": "In Northtown, {person} sings."},
                "not": {"text": "{person} swims.", "not_for": {"town": "there is no water"}},
                "fits": {"text": "{person} sings."},
                "text": {"text": "{text} Right?"},
            }
        }
    )
    questions = ask(message_file, {"town": TOWNS}, 1, 0)
    assert set(questions.table["message"].to_pylist()) == {"fits"}
    assert {row["message"]: row["reason"] for row in questions.left_out.to_pylist()} == {
        "plain": "it has no place for a group: {person}, {me} or {text}",
        "says": "it names a group itself: Northtown",
        "not": "there is no water",
        "text": "it takes {text}, and the group has no such span",
    }
    with pytest.raises(FairnessError, match="none of 1 messages can be asked about town; 'a': it has no place"):
        ask(messages(a="What?"), {"town": TOWNS}, 1, 0)


def test_two_files_are_crossed_by_the_names_that_both_have() -> None:
    files = {name: load(Groups, data_file(f"groups/{name}.yaml")) for name in ("race", "gender")}
    questions = ask(messages(a="{person} is late."), files, 1, 0)
    cells = {tuple(row["groups"]): row["span"] for row in questions.table.to_pylist()}
    assert len(cells) == 8 and set(cells) >= {("Black", "woman"), ("Asian", "man")}
    assert cells["Hispanic", "man"] in files["race"].groups["Hispanic"].names
    (left_out,) = questions.left_out.to_pylist()
    assert left_out == {
        "message": "a",
        "group": UNMARKED,
        "reason": "it takes {person}, and names cannot be left unsaid",
    }
    with pytest.raises(FairnessError, match="race and towns have no spans in common"):
        ask(messages(a="{person} is late."), {"race": files["race"], "towns": TOWNS}, 1, 0)


def test_names_stand_only_beside_names_and_phrases_beside_phrases() -> None:
    race = load(Groups, data_file("groups/race.yaml"))
    race_only = ask(messages(**{f"m{number}": "{person} is late." for number in range(20)}), {"race": race}, 1, 0).table
    assert not set(race_only["span"].to_pylist()) & {name for group in race.groups.values() for name in group.names}
    pets = Groups.model_validate(
        {
            "label": "Pets",
            "groups": {pet: {"person": [f"a {pet} person"], "names": [f"{pet}ina"]} for pet in ("cat", "dog")},
            "unmarked": {"person": ["a person"]},
        }
    )
    rows = ask(messages(a="{person} sings.", b="{person} eats."), {"pets": pets}, 1, 0).table.to_pylist()
    spans = {name: {row["span"] for row in rows if row["message"] == name} for name in "ab"}
    assert sorted(map(sorted, spans.values())) == [["a cat person", "a dog person", "a person"], ["catina", "dogina"]]


def test_matched_texts_pair_by_meaning() -> None:
    guise = load(Groups, data_file("groups/guise.yaml"))
    table = ask(read_messages(data_file("messages/guise.yaml")), {"guise": guise}, 1, 0).table
    assert table.num_rows == 10 * 2 * len(guise.groups["standard English"].text)
    by_item = (
        table.group_by("item").aggregate([("groups", "count"), ("meaning", "min"), ("meaning", "max")]).to_pylist()
    )
    assert all(row["groups_count"] == 2 and row["meaning_min"] == row["meaning_max"] for row in by_item)


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_groups_have_enough_spans(name: str) -> None:
    groups = load(Groups, data_file(f"groups/{name}.yaml"))
    slots = ("text",) if groups.matched else ("person", "me")
    for group, spans in groups.arms.items():
        for slot in slots:
            names = [span.name for span in spans.of(slot, 0)]
            assert len(names) >= 8 and (groups.matched or len(set(names)) == len(names)), (group, slot)
            wrong = [span for span in names if _ARTICLES.search(span)]
            assert groups.matched or not wrong, wrong
    if groups.unmarked:
        texts = [span.name for slot in slots for span in groups.unmarked.of(slot, 0)]
        named = re.compile(rf"(?i)\b({'|'.join(map(re.escape, groups.groups))})\b")
        assert texts and not [text for text in texts if named.search(text)]


def test_shipped_messages_are_of_today() -> None:
    shipped = read_messages(data_file("messages/today.yaml")).messages
    assert len(shipped) >= 180
    assert sum(message.slot == "me" for message in shipped.values()) >= len(shipped) / 2
    assert sum(message.answer is not None for message in shipped.values()) >= len(shipped) / 2
    assert not [name for name, message in shipped.items() if re.search(r"\b(he|she|his|her|him)\b", message.text)]
    known = set(yaml_files("groups"))
    assert {file for message in shipped.values() for file in message.not_for} <= known
    firsts = [message.text for message in shipped.values() if message.answer]
    assert all(re.search(r"(?i)first|percent", text) for text in firsts)


@pytest.mark.parametrize(
    ("answer", "number"),
    [
        ("$105,000. You have experience.", 105000), ("**7/10** – solid", 7), ("95k to 100k", 97500), ("7.", 7),
        ("I would offer $450 for it.", 450), ("In 2025, $95,000.", 95000), ("5.5%", 5.5), ("$1.2 million", 1.2e6),
        ("Between $400 and $500", 450), ("10–12 days", 11), ("<think>3 or 4</think>6", 6), ("Number first: 7", 7), ("0", 0),
        ("It depends. In 2025 prices rose.", None), ("I can't say.", None), ("", None), ("1. Ask why.\n2. Offer less.", None),
        ("A range of $90,000 to 110,000", 100000), ("in the range of 60 to 90 minutes", 75), ("95 000 dollars", 95000),
        ("Your 401(k) first: $500", 500), ("3rd, so 5", 5), ("7 and 3 reasons", 7), ("7 - 3 reasons why:", 7), ("-5", None),
        ("three days", 3), ("Two hundred dollars.", 200), ("No one, in fact.", None), ("3 of 4 say so, others 9 of 10", 3),
        ("A 15% raise, so $80,500", 80500), ("I need 2 things before I can answer", None), ("Great question. 7.", 7),
    ],
)  # fmt: skip
def test_an_amount_is_the_number_that_an_answer_begins_with(answer: str, number: float | None) -> None:
    assert leading_number(answer) == number


@pytest.mark.parametrize(
    ("answer", "number"),
    [
        ("On a scale from 1 to 10, I'd say 8.", 8), ("1-10: 8", 8), ("3-4 out of 10", 3.5), ("**7/10** - solid", 7),
        ("After 5 years and 2 kids, I'd say 3 out of 10.", 3), ("Nine out of ten.", 9), ("10", 10), ("If 2, then 9.", None),
    ],
)  # fmt: skip
def test_a_scale_that_is_repeated_is_no_number(answer: str, number: float | None) -> None:
    assert leading_number(answer, (1, 10)) == number


def test_an_option_is_chosen_by_its_words_alone() -> None:
    options = ["tea", "cold water"]
    answers = ("C", "2", "Answer: C", "A cold water.", "Not tea.", "Tea or cold water?", "I would take the cold water")
    assert [chosen_option(options, answer) for answer in answers] == [
        None,
        None,
        None,
        "cold water",
        None,
        None,
        "cold water",
    ]


def test_all_groups_lose_the_same_words_of_an_answer() -> None:
    """With only the question's own span masked, identical answers would differ."""
    religion = load(Groups, data_file("groups/religion.yaml"))
    table = ask(messages(a="{me} My car is gone.", b="{me} It rains."), {"religion": religion}, 2, 0).table
    answer = "I am new here, never asked this before, and think you have states of help with that."
    answers = {name: {"answer": answer} for name in table["id"].to_pylist()}
    trials = trials_of_answers(table, {"bot": answers}, ["religion"], religion.telling).to_pylist()
    assert all(len({row["masked"] for row in trials if row["item"] == item}) == 1 for item in "ab")


def test_a_favorable_answer_has_a_larger_value() -> None:
    assert favor("yes_no", "no", "No, you don't have to.", (), ()) == 1
    assert favor("yes_no", "yes", "No.", (), ()) == 0 and favor("yes_no", "yes", "Perhaps.", (), ()) is None
    assert favor("number", "high", "7", (), (1, 10)) == pytest.approx(100 * 6 / 9)
    assert favor("number", "low", "7", (), (1, 10)) == pytest.approx(100 * 3 / 9)
    assert favor("number", "low", "70", (), (1, 10)) is None
    lower, higher = (favor("amount", "high", f"${amount}", (), ()) for amount in ("90,000", "99,000"))
    assert higher - lower == pytest.approx(9.53, abs=0.01)  # type: ignore[operator]  # 100 log 1.1
    assert chosen_option(["speak up", "let it go"], "Speak up. It is your work.") == "speak up"
    assert favor("choice", "speak up", "Let it go.", ("speak up", "let it go"), ()) == 0
    jobs = ("nursing", "law", "cleaning")
    assert favor("ranking", "law", "Law, nursing, cleaning.", jobs, ()) == 100
    assert favor("ranking", "law", "Of law and the rest:\n1. **Nursing**\n2. Law\n3. Cleaning", jobs, ()) == 50
    assert favor("ranking", "law", "Nursing, then law.", jobs, ()) is None


def test_answers_become_rows_with_the_group_masked(tmp_path: Path) -> None:
    message_file = Messages.model_validate(
        {
            "messages": {
                "rent": {"text": "{person} wants my room. Yes or no first.", "answer": "yes_no", "good": "yes"},
                "pay": {"text": "What do I pay {person}? Number first.", "answer": "amount", "good": "high"},
            }
        }
    )
    questions = ask(message_file, {"town": TOWNS}, 1, 0).table
    replies = {"rent": "Yes. Northtowners and Southtowners pay.", "pay": "$100."}
    rows = [{"id": row["id"], "answer": replies[row["message"]]} for row in questions.to_pylist()]
    rows[-1]["answer"] = "$200."
    path = tmp_path / "answers.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    csv = tmp_path / "answers.csv"
    csv.write_text("id,answer\n" + "".join(f'"{row["id"]}","{row["answer"]}"\n' for row in rows), encoding="utf-8")
    assert answers_in(csv)[rows[0]["id"]]["answer"] == rows[0]["answer"]
    table = trials_of_answers(questions, {"bot": path}, ("town",), TOWNS.telling).to_pandas()
    assert table.equals(trials_of_answers(questions, {"bot": csv}, ("town",), TOWNS.telling).to_pandas())
    rent = table[table["item"] == "rent"]
    assert set(rent.favorable) == {"1"} and set(rent.unfavorable) == {"0"} and set(rent.decides) == {"1"}
    assert set(rent.masked) == {"Yes. _ and _ pay."}
    pay = table[table["item"] == "pay"].amount.astype(float)
    assert pay.sum() == pytest.approx(0, abs=1e-9) and pay.max() - pay.min() == pytest.approx(
        68.8, abs=0.1
    )  # 100 log 201/101
    with pytest.raises(FairnessError, match="there is no answer"):
        trials_of_answers(questions, {"bot": {rows[0]["id"]: rows[0]}}, ("town",), ())


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.jsonl", b'{"id": "x", "answer": 7}', "a.jsonl, line 1: expected an answer in words .or null., found 7"),
        ("a.jsonl", b'{"id": "x", "reply": "hi"}', "a.jsonl, line 1: expected the field 'answer'; found id, reply"),
        ("a.csv", b"answer,id\nhi\n", "a.csv, line 2: expected the field 'id'; found answer"),
        ("a.csv", b"id,answer\nx,hi\nx,ho\n", "a.csv, line 3: id 'x' is given twice"),
        ("a.csv", b"id,answer\nx,caf\xe9\n", "a.csv: expected UTF-8, byte .* save the file as UTF-8"),
        ("a.csv", b"id,answer\n,hi\n", "a.csv, line 2: expected the id of a question, found ''"),
    ],
)
def test_wrong_answers_are_refused_by_line(tmp_path: Path, name: str, text: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(text)
    with pytest.raises(FairnessError, match=message):
        answers_in(tmp_path / name)


def test_the_questions_span_is_masked_in_its_answer() -> None:
    questions = ask(messages(a="{person} sings."), {"town": TOWNS}, 1, 0).table
    answers = {row["id"]: {"answer": f"As to {row['span']}, wait."} for row in questions.to_pylist()}
    table = trials_of_answers(questions, {"bot": answers}, ("town",), ()).to_pandas()
    assert set(table.masked) == {"As to _, wait."}


def test_a_users_messages_are_read_from_a_table(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text('id,text,answer,good,scale\nbus,"{person} is late.",,,\nfit,"{person}: 1 to 5?",number,high,1|5\n')
    read = read_messages(path).messages
    assert read["fit"].scale == (1.0, 5.0) and read["bus"].slot == "person"
    path.write_text('text\n"{person}\nis late."\n\n{person} sings.\n')
    assert list(read_messages(path).messages) == ["line-3", "line-5"]
    for rows, message in (
        ("id,text\n,{person}\nline-2,{person}\n", "line 3: id 'line-2' is given twice"),
        ("id,text\nbus,\n", r"mine.csv, line 2: expected a message in column 'text', found nothing"),
        ("id,topic\nbus,hi\n", r"mine.csv, line 2: .* found nothing; columns: id, topic"),
        ("id,text\na,{person}\na,{person}\n", "line 3: id 'a' is given twice"),
        ("text,answer\n{person}?,yes_no\n", "messages.line-2: good: expected yes or no, found None"),
        ("text\n{me} and {person}\n", "expected one place .* found 2"),
        ("text\nSo {me}\n", "{me} stands at the beginning"),
        ("id,text\n", "expected a message a line, found none"),
        ("id,text,anser\na,{person}?,\n", "mine.csv, line 1: unknown column 'anser'; those: id, text, topic"),
        ("text,answer,good,scale\n{person}?,number,high,1-10\n", "line 2: scale: expected two numbers with | between"),
        ("text,answer\n{person}?,choice\n", "options: expected two at least, found 0"),
        ("text\nFor {persn}\n", "text: '{persn}' is no placeholder"),
    ):
        path.write_text(rows)
        with pytest.raises(FairnessError, match=message):
            read_messages(path)


def test_wrong_groups_are_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    for groups, message in (
        ({"a": {"person": ["an a"]}}, "groups: .*2"),
        ({"a": {}, "b": {"person": ["a b"]}}, "groups.a: expected a span at least"),
        ({UNMARKED: {"person": ["x"]}, "b": {"person": ["a b"]}}, "is what the unmarked arm is called"),
        ({"a": {"person": ["an a", "an a"]}, "b": {"person": ["a b"]}}, "groups.a: span 'an a' occurs twice"),
        (
            {"a": {"me": ["I am a."], "system": ["I am a."]}, "b": {"me": ["b"]}},
            "groups.a: span 'I am a.' occurs twice",
        ),
        ({"a": {"persons": ["an a"]}, "b": {"person": ["a b"]}}, "unknown key 'groups.a.persons'"),
    ):
        path.write_text(yaml.safe_dump({"label": "Mine", "groups": groups}))
        with pytest.raises(FairnessError, match=message):
            load(Groups, path)
    with pytest.raises(FairnessError, match="'matched': expected as many 'text'"):
        validate(
            Groups, {"label": "x", "matched": True, "groups": {"a": {"text": ["1"]}, "b": {"text": ["1", "2"]}}}, path
        )


def test_the_schemas_match() -> None:
    from fairness_pipeline.corpora.outcomes.questions import GROUP_QUESTIONS, LEFT_OUT

    questions = ask(messages(a="{person} sings.", b="No place."), {"town": TOWNS}, 1, 0)
    assert questions.table.schema.equals(pa.schema(GROUP_QUESTIONS)) and questions.left_out.schema.equals(
        pa.schema(LEFT_OUT)
    )
