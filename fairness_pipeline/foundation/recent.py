"""Keeps the last results of costly functions of Arrow columns, which several measures of a partition read."""

from collections.abc import Callable
from hashlib import blake2b
from typing import Generic, TypeVar

import pyarrow as pa

R = TypeVar("R")


def content_key(*columns: pa.ChunkedArray) -> object:
    """A key of the content of columns: equal keys mean equal content."""
    return tuple(_chunk_key(chunk) for column in columns for chunk in column.chunks)


def _chunk_key(chunk: pa.Array) -> object:
    whole = (
        chunk.dictionary_decode() if pa.types.is_dictionary(chunk.type) else chunk
    )  # its buffers lack the dictionary
    digests = (None if buffer is None else blake2b(buffer, digest_size=16).digest() for buffer in whole.buffers())
    return str(whole.type), whole.offset, len(whole), *digests


class Recent(Generic[R]):
    """The last results, by key. Keys are compared, not hashed.

    Examples:
        >>> squares = Recent[int](1)
        >>> squares.get("a", lambda: 4), squares.get("a", lambda: 5)
        (4, 4)
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._kept: list[tuple[object, R]] = []

    def get(self, key: object, make: Callable[[], R]) -> R:
        """The result of `make`, or the one that is kept under the key."""
        for known, result in list(self._kept):
            if known == key:
                return result
        del self._kept[: max(0, len(self._kept) + 1 - self._size)]  # first, so that memory holds no more than are kept
        result = make()
        self._kept.append((key, result))
        return result
