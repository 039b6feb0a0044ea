"""Words as integers: texts that are tokenized together give the same words as each alone."""

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from fairness_pipeline.lexicons.text import encode_texts, tokenize

# Letters whose folding depends on their neighbours or gives two letters, joiners of words, separators of texts.
_LETTERS = st.sampled_from([*"aA_@-'’ .!\n\t", "Σ", "ς", "İ", "ß", "́", "‍", "😀", "\0", "\x1c", "\u2028"])


@given(st.lists(st.text(_LETTERS, max_size=8), max_size=6))
def test_each_text_keeps_its_own_words(texts: list[str]) -> None:
    encoded = encode_texts(pa.array(texts, pa.string()))
    words = [encoded.words[code] for code in encoded.codes]
    assert words == [word for text in texts for word in tokenize(text)]
    assert encoded.lengths.tolist() == [len(tokenize(text)) for text in texts]
    assert encoded.words == list(dict.fromkeys(words))
