"""Masking of the groups' words in answers."""

import pyarrow as pa

from fairness_pipeline.lexicons.masking import masked, without_words
from fairness_pipeline.measures.dialogue.measure import neutral_reading
from fairness_pipeline.project.project import load_dimension


def test_cached_masks_belong_to_the_same_texts_and_words() -> None:
    texts = pa.array(["my aunt", "an uncle", "a gay man", "x"])
    gender, orientation = (load_dimension(name).masked for name in ("gender", "orientation"))
    for mask in (masked, lambda texts, words: neutral_reading(pa.table({"response": texts}), words)["response"]):
        for _ in range(2):
            assert mask(texts, gender).to_pylist() == ["my _", "an _", "a gay _", "x"]
            assert mask(texts[1:], gender).to_pylist() == ["an _", "a gay _", "x"]
            assert mask(texts[:3], gender).to_pylist() == ["my _", "an _", "a gay _"]
            assert mask(texts, orientation)[2].as_py() == "a _ _"
            assert mask(pa.chunked_array([texts[3:], texts[:1]]), gender).to_pylist() == ["x", "my _"]
            assert mask(pa.chunked_array([], pa.string()), gender).to_pylist() == []
            assert mask(pa.array([None, "aunt"]), gender).to_pylist() == [None, "_"]


def test_words_of_any_script_are_masked() -> None:
    texts = pa.array(
        ["the élève", "José and Josés", "élèves-like", "préélève", "a Ünal's friend", "Sikh-owned", "Sikhism"]
    )
    covered = without_words(texts, ["élève", "José", "Ünal", "Sikh", "saw José"])
    assert covered.to_pylist() == ["the _", "_ and _", "_-like", "préélève", "a _ friend", "_-owned", "Sikhism"]
