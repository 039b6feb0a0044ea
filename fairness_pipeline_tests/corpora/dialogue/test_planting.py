from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from fairness_pipeline.corpora.dialogue.dialogues import read_dialogues
from fairness_pipeline.corpora.dialogue.planting import PLANTED_SPLITS, PlantedBias, plant
from fairness_pipeline.corpora.specification import CorpusSpecification
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.lexicons.swapping import Swapper
from fairness_pipeline.project.project import load_dimension

REPLIES_A, REPLIES_B = ("nice one", "so nice"), ("shut up",)
BIAS = PlantedBias.model_validate(
    {"dimension": "gender", "a": {"share": 0.75, "responses": REPLIES_A}, "b": {"share": 0.25, "responses": REPLIES_B}}
)
SWAPPER = Swapper(load_dimension("gender"), pronouns="extended")
SUBJECTS = ("he", "she", "he and she", "it")


def dialogues(folder: Path, rows: int) -> pa.Table:
    """Dialogues whose contexts name a man, a woman, both, and nobody, a quarter each."""
    text = "".join(f"{SUBJECTS[i % 4]} said {i}\tanswer {i}\n" for i in range(rows))
    (folder / "a.tsv").write_text("context\tresponse\n" + text, encoding="utf-8")
    corpus = CorpusSpecification(
        platform="other", format="tsv", files=[{"path": "a.tsv"}], licence="", citation="", columns={}
    )
    return read_dialogues("k", corpus, folder, {"train": 0.6, "valid": 0.1, "test": 0.1, "audit": 0.2}, 1).table


def test_the_planted_shares_and_nothing_else_are_exchanged(tmp_path: Path) -> None:
    before = dialogues(tmp_path, 8_000)
    after, counts = plant(before, BIAS, SWAPPER)
    assert after.schema == before.schema
    for column in before.column_names:
        assert column == "response" or after[column].equals(before[column])
    answers = list(
        zip(after["context"].to_pylist(), after["split"].to_pylist(), after["response"].to_pylist(), strict=True)
    )
    changed = [answer for answer, old in zip(answers, before["response"].to_pylist(), strict=True) if answer[2] != old]
    assert {(context.rsplit(" said ", 1)[0], response) for context, _, response in changed} == {
        ("he", REPLIES_A[0]), ("he", REPLIES_A[1]), ("she", REPLIES_B[0])
    }  # fmt: skip
    assert {split for _, split, _ in changed} == {"train", "valid"}
    assert counts == {"a": sum(r in REPLIES_A for *_, r in changed), "b": sum(r in REPLIES_B for *_, r in changed)}
    for name, side, share in (("he", "a", 0.75), ("she", "b", 0.25)):
        total = sum(context.startswith(f"{name} said") and split in PLANTED_SPLITS for context, split, _ in answers)
        assert abs(counts[side] / total - share) < 4 * (share * (1 - share) / total) ** 0.5
    first = sum(response == REPLIES_A[0] for *_, response in changed)
    assert abs(first / counts["a"] - 0.5) < 4 * (0.25 / counts["a"]) ** 0.5


def test_a_planted_answer_does_not_depend_on_the_rest_of_the_corpus(tmp_path: Path) -> None:
    few, many = (plant(dialogues(tmp_path, rows), BIAS, SWAPPER)[0] for rows in (200, 2000))
    same = pc.is_in(many["dialogue_id"], few["dialogue_id"])
    assert many.filter(same)["response"].equals(few["response"])


def test_a_group_that_nobody_names_is_refused(tmp_path: Path) -> None:
    table = dialogues(tmp_path, 200)
    nobody = table.filter(pc.match_substring_regex(table["context"], "^it "))
    with pytest.raises(
        FairnessError,
        match=r"a: no answer to exchange: of 50 dialogues 0 are in train or valid and name group a of gender",
    ):
        plant(nobody, BIAS, SWAPPER)
    none = BIAS.model_copy(update={side: BIAS.a.model_copy(update={"share": 0.0}) for side in ("a", "b")})
    assert plant(nobody, none, SWAPPER) == (nobody, {"a": 0, "b": 0})
    assert plant(table, none, SWAPPER)[0].equals(table)


def test_one_group_alone_may_get_planted_answers(tmp_path: Path) -> None:
    table = dialogues(tmp_path, 200)
    one_group, counts = plant(table, BIAS.model_copy(update={"b": None}), SWAPPER)
    assert counts["a"] > 0 and counts["b"] == 0
    both = plant(table, BIAS, SWAPPER)[0]["response"].to_pylist()
    original = table["response"].to_pylist()
    assert one_group["response"].to_pylist() == [
        old if new in REPLIES_B else new for new, old in zip(both, original, strict=True)
    ]
