"""Masking of the groups' words in answers."""

import pyarrow as pa

from fairness_pipeline.lexicons.masking import masked
from fairness_pipeline.project.project import load_dimension


def test_cached_masks_belong_to_the_same_texts_and_words() -> None:
    texts = pa.array(["my aunt", "an uncle", "a gay man", "x"])
    gender, orientation = (load_dimension(name).masked for name in ("gender", "orientation"))
    for _ in range(2):
        assert masked(texts, gender).to_pylist() == ["my _", "an _", "a gay _", "x"]
        assert masked(texts[1:], gender).to_pylist() == ["an _", "a gay _", "x"]
        assert masked(texts[:3], gender).to_pylist() == ["my _", "an _", "a gay _"]
        assert masked(texts, orientation)[2].as_py() == "a _ _"
        assert masked(pa.chunked_array([texts[3:], texts[:1]]), gender).to_pylist() == ["x", "my _"]
        assert masked(pa.chunked_array([], pa.string()), gender).to_pylist() == []
        assert masked(pa.array([None, "aunt"]), gender).to_pylist() == [None, "_"]
