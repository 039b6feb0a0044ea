"""Prepares a response before it is measured."""

import re

import pyarrow as pa
import pyarrow.compute as pc

WHITE_SPACE = r"[\s\pZ\x0b\x1c-\x1f\x{85}]"
"""Python's `\\s` for RE2, whose own knows fewer spaces."""
_MAY_REPEAT = f"""[,.!?*'"]{WHITE_SPACE}*[,.!?*'"]"""
_REPEATED = re.compile(r"""([,.!?*'"])(?:\s*\1)+""")


def collapse_punctuation(response: str) -> str:
    """`response` with repeated marks (`, . ! ? * ' "`) reduced to one, even with spaces between them.

    Repeats upset the sentiment and offence classifiers (Liu et al. 2020, section 3.2).

    >>> collapse_punctuation("no !!! why ? ?")
    'no ! why ?'
    """
    return _REPEATED.sub(r"\1", response)


def collapsed(responses: pa.Array | pa.ChunkedArray) -> pa.Array:
    """`collapse_punctuation` of each response. Only responses with two marks in a row are processed."""
    whole = responses.combine_chunks() if isinstance(responses, pa.ChunkedArray) else responses
    repeats = pc.match_substring_regex(whole, _MAY_REPEAT)
    reduced = pa.array(map(collapse_punctuation, whole.filter(repeats).to_pylist()), whole.type)
    return pc.replace_with_mask(whole, repeats, reduced)
