"""Results kept by the content of columns."""

import pyarrow as pa

from fairness_pipeline.foundation.recent import Recent, content_key


def test_equal_content_has_one_key_and_other_content_another() -> None:
    whole = pa.chunked_array([["a", "b", None]])
    assert content_key(whole) == content_key(pa.chunked_array([["a", "b", None]]))
    others = (
        pa.chunked_array([["a", "b", ""]]),
        pa.chunked_array([["a", "bc", None]]),
        pa.chunked_array([["a", "b"]]),
        whole.slice(1),
        whole.slice(0, 2),
        whole.cast(pa.large_string()),
    )
    assert len({content_key(column) for column in (whole, *others)}) == 1 + len(others)
    encoded = [pa.chunked_array([pa.array(texts).dictionary_encode()]) for texts in (["a", "b"], ["a", "c"])]
    assert content_key(encoded[0]) != content_key(encoded[1])


def test_the_last_results_are_kept_and_no_more() -> None:
    made: list[str] = []
    recent = Recent[str](2)
    for key in "aabbacab":
        recent.get(key, lambda key=key: made.append(key) or key)  # type: ignore[func-returns-value, misc]
    assert made == ["a", "b", "c", "a", "b"]
    three = Recent[str](5)
    assert [three.get(key, key.upper) for key in "abcdab"] == list("ABCDAB")
    assert [three.get(key, str) for key in "abcd"] == list("ABCD")
