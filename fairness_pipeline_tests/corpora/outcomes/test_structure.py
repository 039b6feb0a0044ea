"""The doctor: the roles of columns by structure, on tables whose column names say nothing."""

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from fairness_pipeline.corpora.outcomes.specification import Outcome
from fairness_pipeline.corpora.outcomes.structure import Guess, as_document, guess
from fairness_pipeline.corpora.outcomes.table_files import read_table, text_columns
from fairness_pipeline_tests.measures.outcomes.planted import sample_table


def _guess(frame: pd.DataFrame, **roles: list[str]) -> Guess:
    return guess(text_columns(pa.Table.from_pandas(frame, preserve_index=False)), roles)


@pytest.fixture
def frame(tmp_path: Path) -> pd.DataFrame:
    """The sample's table with groups of people instead of towns, and with row numbers as the first column."""
    path = tmp_path / "sample.csv"
    path.write_text(sample_table())
    table = pd.read_csv(path)
    towns = {"Northtown": "white", "Southtown": "Black", "Easttown": "Asian"}
    table["town"] = table["town"].map(towns)
    table.insert(0, "doc_id", np.arange(len(table)))
    return table


def test_names_that_say_nothing(frame: pd.DataFrame) -> None:
    blind = frame.rename(columns={name: f"v{number}" for number, name in enumerate(frame.columns)})
    guessed = _guess(blind)
    # doc_id, topic, request, town, age, prompt, draw, approved, words
    assert guessed.roles["item"] == ("v2",) and guessed.roles["cluster"] == ("v1",)
    assert guessed.roles["group"] == ("v3", "v4")
    assert {outcome.column: outcome.kind for outcome in guessed.outcomes.values()}["v7"] == "yes_no"
    # A prompt and a draw have the same structure, so the user is asked.
    assert guessed.unsure["condition"].startswith("v5, v6: varies within an item and a group")
    assert "row numbers, another value in each row: v0" in guessed.notes
    settled = _guess(blind, condition=["v5"], draw=["v6"])
    assert "condition" not in settled.unsure


def test_names_that_help(frame: pd.DataFrame) -> None:
    guessed = _guess(frame)
    assert not {"item", "condition"} & guessed.unsure.keys()
    assert guessed.roles == {
        "group": ("town", "age"), "condition": ("prompt",), "draw": ("draw",), "item": ("request",), "cluster": ("topic",)
    }  # fmt: skip
    document = as_document(guessed, text_columns(pa.Table.from_pandas(frame, preserve_index=False)))
    assert document["outcomes"]["approved"]["kind"] == "yes_no"


def test_the_row_number_is_not_the_item(frame: pd.DataFrame) -> None:
    """A column named `item` that holds row numbers."""
    named = frame.rename(columns={"doc_id": "item", "request": "what"})
    assert _guess(named).roles["item"] == ("what",)


def test_first_names_are_nested_in_their_group() -> None:
    names = {"female": ["Ann", "Eve", "Ida", "Joy"], "male": ["Bob", "Jim", "Max", "Tom"]}
    rows = [
        (job, group, name, (len(job) * len(name)) % 7)
        for job in ("cook", "nurse", "pilot", "clerk", "judge", "tailor", "farmer", "teacher", "miner", "smith")
        for group, first_names in names.items()
        for name in first_names
    ]
    guessed = _guess(pd.DataFrame(rows, columns=["k1", "k2", "k3", "k4"]))
    assert guessed.roles["group"] == ("k2",) and guessed.roles["name"] == ("k3",) and guessed.roles["item"] == ("k1",)
    assert "draw" not in guessed.roles


def test_what_is_wrong_with_texts_and_columns() -> None:
    random = np.random.default_rng(1)
    answers = [
        f"This is a long answer of number {n} about the request that was made"
        + (" and it goes on and on without an end" * 3 if n % 3 else ".")
        + ("</s><unk>" if n % 2 else "")
        for n in range(200)
    ]
    frame = pd.DataFrame(
        {
            "item": np.repeat(np.arange(50), 4),
            "who": ["gay", "straight", "lesbian", "bisexual"] * 50,
            "same": "x",
            "answer": answers,
            "agrees": random.integers(-1, 2, 200),
        }
    )
    guessed = _guess(frame)
    notes = "; ".join(guessed.notes)
    assert "constant: same" in notes
    assert "debris: 50% of the texts in answer end in a mark such as </s>" in notes
    assert guessed.unsure["outcome"].startswith("agrees has the values")
    assert guessed.roles["answer"] == ("answer",)
    frame["answer"] = [text.removesuffix("</s><unk>") for text in answers]
    assert any(note.startswith("truncated: ") for note in _guess(frame).notes)


def test_ranks_and_unpaired_tables() -> None:
    ranks = pd.DataFrame(
        {
            "list": np.repeat(np.arange(20), 3),
            "who": ["Muslim", "Christian", "Hindu"] * 20,
            "place": np.concatenate([np.random.default_rng(n).permutation(3) + 1 for n in range(20)]),
        }
    )
    assert _guess(ranks).outcomes == {"place": Outcome(kind="rank", column="place")}
    hired = pd.DataFrame({"person": range(60), "sex": ["m", "f", "f"] * 20, "hired": [1, 0, 0, 1, 1, 0] * 10})
    guessed = _guess(hired)
    assert "item" not in guessed.roles and guessed.roles["group"] == ("sex",)
    assert "no column meets the groups within its values: not paired, so only rates can be shown" in guessed.notes


def test_published_files(corpora: Path) -> None:
    folder = corpora / "model_outputs"
    table = read_table(folder / "discrim_eval" / "gpt-4.1.csv.gz")
    blind = table.rename_columns([f"c{number}" for number in range(table.num_columns)])
    for candidate, names in ((table, table.column_names), (blind, blind.column_names)):
        guessed = guess(candidate)
        assert guessed.roles["item"] == (names[0],) and guessed.roles["group"] == (names[1], names[2])
        assert guessed.unsure["outcome"].startswith("7 columns could be")
    assert guess(table).roles["condition"] == ("prompt_format",)
    answers = read_table(folder / "decodingtrust" / "vicuna-7b-v1.3_benign.csv.gz")
    guessed = guess(answers)
    assert {role: guessed.one(role) for role in ("item", "group", "cluster", "draw")} == {
        "item": "template", "group": "group", "cluster": "topic", "draw": "generation"
    }  # fmt: skip
    assert any(note.startswith("debris: 9") for note in guessed.notes)
