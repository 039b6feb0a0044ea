"""Scores each distinct text once, in chunks that survive a kill; used for responses, scores and similar tables."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fairness_pipeline.foundation.collector import collector_paused
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.files import replacing
from fairness_pipeline.foundation.parquet import read_parquet, write_parquet
from fairness_pipeline.foundation.progress import Progress, report
from fairness_pipeline.foundation.side_by_side import in_processes

Scorer = Callable[[pa.Table], pa.Table]
"""Takes a table with a column `text` and returns one row for each text, which depends on those texts alone.

It may have `CHUNK`, the number of texts that it takes at once; `check_allowed`, which gets all texts beforehand;
`SIDE_BY_SIDE`: it is small, computes on one core, and may be copied into several processes; and `set_report`, which
gets a callback for the number of texts scored so far within a chunk.
It keeps nothing from one chunk to the next that would change a result, as other processes may score other chunks.
"""

Check = Callable[[pa.Array, pa.Table], None]
"""Takes the texts of a chunk and their scores; raises a FairnessError to refuse the chunk."""


def _accept(texts: pa.Array, scored: pa.Table) -> None:
    """Refuses nothing."""


CHUNK = 2048
"""The number of distinct texts between two saves."""


class LazyScorer:
    """A scorer whose model is loaded at its first use, in the process that uses it.

    Args:
        load: Loads the scorer. Other processes get it pickled.
        processors: The threads that the model computes with.
        device: `cpu`, `cuda` or `auto`.
    """

    def __init__(self, load: Callable[[], Scorer], processors: int = 1, device: str = "auto") -> None:
        self.load = load
        self.processors = processors
        self.device = device

    def __getstate__(self) -> dict[str, Any]:
        return {"load": self.load, "processors": self.processors, "device": self.device}

    def __call__(self, texts: pa.Table) -> pa.Table:
        """Scores the texts."""
        return self._loaded(texts)

    def examination(self) -> dict[str, Any]:
        """The figures of the model's examination; empty if it has none."""
        examine: Callable[[], dict[str, Any]] = getattr(self._loaded, "examination", dict)
        return examine()

    @cached_property
    def _loaded(self) -> Scorer:
        return self.load()


@dataclass(frozen=True)
class Chunks:
    """Distinct texts, the short ones first, in chunks that are scored and saved one by one.

    Args:
        texts: The texts.
        scorer: Scores them.
        check: Refuses a chunk before it is saved.
        folder: Holds the scored chunks; None if nothing is kept.
        size: The number of texts in a chunk.
        first: The number of the first chunk.
    """

    texts: pa.Array
    scorer: Scorer
    check: Check
    folder: Path | None
    size: int = CHUNK
    first: int = 0

    def __len__(self) -> int:
        return max(1, -(-len(self.texts) // self.size))

    def texts_of(self, number: int) -> pa.Array:
        """The texts of one chunk."""
        return self.texts.slice((number - self.first) * self.size, self.size)

    def of(self, numbers: Sequence[int]) -> "Chunks":
        """The chunks from the first to the last of these numbers, without the texts of the others."""
        first, last = min(numbers), max(numbers)
        texts = self.texts.slice((first - self.first) * self.size, (last + 1 - first) * self.size)
        return replace(self, texts=pa.concat_arrays([texts]), first=first)

    def kept(self, number: int) -> pa.Table | None:
        """The chunk as it was saved; None if it is missing, damaged or of another size, and has to be scored again."""
        path = self._path(number)
        try:
            scored = read_parquet(path) if path and path.exists() else None
        except (pa.ArrowInvalid, OSError):
            return None
        return scored if scored is not None and scored.num_rows == len(self.texts_of(number)) else None

    def make(self, number: int) -> pa.Table:
        """Scores one chunk and saves it.

        Raises:
            FairnessError: the scorer's number of rows is wrong, or `check` refuses.
        """
        texts = self.texts_of(number)
        with collector_paused():
            scored = self.scorer(pa.table({"text": texts}))
        if scored.num_rows != len(texts):
            raise FairnessError(f"expected a row for each of {len(texts)} texts, found {scored.num_rows}")
        self.check(texts, scored)
        if path := self._path(number):
            with replacing(path) as temporary:
                write_parquet(scored, temporary)
        return scored

    def _path(self, number: int) -> Path | None:
        return self.folder / f"scored-{number:06d}.parquet" if self.folder else None


class Engine(Protocol):
    """Where chunks are scored: in this process, or on a cluster. The result is the same."""

    def score(
        self, chunks: Chunks, missing: Sequence[int], waiting: Callable[[str], None]
    ) -> Iterator[tuple[int, pa.Table]]:
        """Scores and saves the chunks with the numbers `missing`; yields each as it is made, in any order.

        `waiting` is called with the cause if no chunk can start for long.
        """

    def examine(self, scorer: LazyScorer) -> dict[str, Any]:
        """The figures of the scorer's `examination`."""


_TOGETHER = 8
"""The number of chunks that each of several processes gets at once."""
_LEAST = 4
"""Fewer parts of `_TOGETHER` chunks are scored in this process."""


def _make(part: tuple[Chunks, Sequence[int]]) -> list[tuple[int, pa.Table]]:
    chunks, numbers = part
    return [(number, chunks.make(number)) for number in numbers]


def _without_others(part: tuple[Chunks, Sequence[int]]) -> tuple[Chunks, Sequence[int]]:
    chunks, numbers = part
    return chunks.of(numbers), numbers


class _Here:
    """Scores in this process, and in others too if the scorer may be copied into them (`SIDE_BY_SIDE`)."""

    def score(
        self, chunks: Chunks, missing: Sequence[int], waiting: Callable[[str], None]
    ) -> Iterator[tuple[int, pa.Table]]:
        if not getattr(chunks.scorer, "SIDE_BY_SIDE", False):
            yield from ((number, chunks.make(number)) for number in missing)
            return
        parts = [missing[start : start + _TOGETHER] for start in range(0, len(missing), _TOGETHER)]
        for part in in_processes(_make, [(chunks, numbers) for numbers in parts], _LEAST, _without_others):
            yield from part

    def examine(self, scorer: LazyScorer) -> dict[str, Any]:
        return scorer.examination()


HERE: Engine = _Here()
"""Scores in this process."""


def each_distinct(
    texts: pa.Array | pa.ChunkedArray,
    scorer: Scorer,
    *,
    folder: Path | None = None,
    progress: Progress | None = None,
    note: str = "",
    check: Check = _accept,
    engine: Engine = HERE,
) -> pa.Table:
    """The scorer's result for each of the `texts`, in the same order.

    Args:
        texts: The texts, with repetitions.
        scorer: Called with distinct texts only, the short ones first (a batch of similar lengths has little padding).
        folder: Holds the chunks scored so far; a run that was killed continues with them. Without it nothing is kept.
        progress: Called with the number of distinct texts done.
        note: Passed on to `progress`.
        check: Raises a FairnessError to refuse a chunk before it is kept.
        engine: Where chunks are scored.

    Raises:
        FairnessError: the scorer's number of rows is wrong, or `check` or `check_allowed` refuses.
    """
    chunked = pa.chunked_array([texts] if isinstance(texts, pa.Array) else texts.chunks, pa.string())
    encoded = chunked.dictionary_encode().combine_chunks()
    indices, distinct = encoded.indices, encoded.dictionary
    if check_allowed := getattr(scorer, "check_allowed", None):
        check_allowed(distinct.to_pylist())
    order = pc.sort_indices(
        pa.table({"length": pc.utf8_length(distinct), "text": distinct}),
        sort_keys=[("length", "ascending"), ("text", "ascending")],
    )
    if folder:
        folder.mkdir(parents=True, exist_ok=True)
    chunks = Chunks(distinct.take(order), scorer, check, folder, getattr(scorer, "CHUNK", CHUNK))
    del encoded, distinct  # long texts are most of a partition's memory
    scored = _scored(chunks, engine, progress, note)
    row_of = np.empty(len(order), dtype=np.int64)
    row_of[np.asarray(order)] = np.arange(len(order))  # the row in which each distinct text was scored
    return scored.take(pa.array(row_of).take(indices))


def _scored(chunks: Chunks, engine: Engine, progress: Progress | None, note: str) -> pa.Table:
    """All chunks as one table; saved chunks are read."""
    parts = {number: kept for number in range(len(chunks)) if (kept := chunks.kept(number)) is not None}
    missing = [number for number in range(len(chunks)) if number not in parts]
    done = sum(part.num_rows for part in parts.values())
    if not missing:
        report(progress, done, len(chunks.texts), note)

    def waiting(cause: str) -> None:
        report(progress, done, len(chunks.texts), cause)

    if set_report := getattr(chunks.scorer, "set_report", None):
        set_report(lambda count: report(progress, done + count, len(chunks.texts), note))

    for number, part in engine.score(chunks, missing, waiting):
        parts[number] = part
        done += part.num_rows
        report(progress, done, len(chunks.texts), note)
    return pa.concat_tables([parts[number] for number in range(len(chunks))])
