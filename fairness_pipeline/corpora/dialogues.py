"""The table of single-turn dialogues: cleaned, without duplicates, split by thread."""

from collections.abc import Iterable, Iterator
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from fairness_pipeline.corpora.cleaning import clean
from fairness_pipeline.corpora.grammar import Grammar
from fairness_pipeline.corpora.readers import Turns, read_tsv, verify_checksum
from fairness_pipeline.corpora.specification import CorpusSpecification
from fairness_pipeline.errors import FairnessError
from fairness_pipeline.paths import data_file
from fairness_pipeline.progress import Progress, track
from fairness_pipeline.tables import schema

SPLITS = ("train", "valid", "test", "audit")
SHARED_TURN = 25
"""Characters. Dialogues that share a turn at least this long belong to one thread; shorter ones are stock phrases."""

SCHEMA = schema(
    dialogue_id=pa.string(),
    thread_id=pa.string(),
    context=pa.string(),
    response=pa.string(),
    split=pa.string(),
    corpus=pa.string(),
)
_BATCH = 50_000


class Reading(NamedTuple):
    """A corpus as a table of `SCHEMA`, and what was left out of it."""

    table: pa.Table
    rows_read: int
    empty: int
    duplicates: int


def source_versions(corpus: CorpusSpecification, folder: Path) -> dict[str, str]:
    """SHA-256 of every file a corpus is made from, by path as declared; a file's declared sum is checked.

    Raises:
        FairnessError: a file is missing or is not the declared one.
    """
    if corpus.grammar:
        return {corpus.grammar.file: verify_checksum(data_file(corpus.grammar.file), None)}
    return {file.path: verify_checksum(file.resolve(folder), file.sha256) for file in corpus.files}


def read_dialogues(
    key: str,
    corpus: CorpusSpecification,
    folder: Path,
    splits: dict[str, float],
    seed: int,
    progress: Progress | None = None,
) -> Reading:
    """Reads, cleans, deduplicates and splits one corpus.

    Args:
        key: The corpus's key; it stands in every row and in every id.
        corpus: What to read.
        folder: Where relative paths start.
        splits: Share of threads by split.
        seed: Of the split.
        progress: Told how many rows have been read.

    Raises:
        FairnessError: bad input, by file and line; or no dialogue is left.
    """
    rows = empty = 0
    seen: set[str] = set()
    batches: list[pa.RecordBatch] = []
    source = track(_turns(corpus, folder), progress, total=corpus.grammar.dialogues if corpus.grammar else None)
    while chunk := list(islice(source, _BATCH)):
        columns: dict[str, list[str | None]] = {"id": [], "context": [], "response": [], "thread": []}
        for turns in chunk:
            rows += 1
            context, response = clean(turns.context), clean(turns.response)
            if not context or not response:
                empty += 1
                continue
            identity = blake2b(f"{key}\x1f{context}\x1f{response}".encode(), digest_size=10).hexdigest()
            if identity in seen:
                continue
            seen.add(identity)
            for name, value in zip(columns, (identity, context, response, turns.thread_id), strict=True):
                columns[name].append(value)
        batches.append(pa.record_batch({name: pa.array(values, pa.string()) for name, values in columns.items()}))
    read = pa.Table.from_batches(batches)
    if not read.num_rows:
        raise FairnessError(f"corpus '{key}': no dialogue is left: of {rows:,} rows {empty:,} are empty on one side")
    thread_id = _threads(read)
    table = pa.table(
        {
            "dialogue_id": read["id"],
            "thread_id": thread_id,
            "context": read["context"],
            "response": read["response"],
            "split": _split(thread_id, splits, seed),
            "corpus": pa.repeat(key, read.num_rows),
        },
        schema=SCHEMA,
    )
    return Reading(table, rows, empty, rows - empty - table.num_rows)


def _turns(corpus: CorpusSpecification, folder: Path) -> Iterator[Turns]:
    if corpus.grammar:
        grammar = Grammar.load(corpus.grammar.file)
        generated = grammar.generate(corpus.grammar.dialogues, corpus.grammar.seed)
        for number, dialogue in enumerate(generated):
            yield Turns(dialogue.context, dialogue.response, str(number))
    for file in corpus.files:
        for turns in read_tsv(file.resolve(folder), header=corpus.header, columns=corpus.columns):
            # Thread ids are a file's own: two files may use the same.
            yield turns._replace(thread_id=turns.thread_id and f"{file.path}\x1f{turns.thread_id}")


def _threads(read: pa.Table) -> pa.Array:
    """The thread of each row: as the file names it, else a component of rows that share a long turn.

    A thread is named by its first row's id, so that it does not move when other threads come or go.
    """
    rows = np.arange(read.num_rows)
    unknown = pc.is_null(read["thread"])
    turns = [pc.if_else(unknown, _long_turn(read[turn]), None).combine_chunks() for turn in ("context", "response")]
    left, right, offset = [rows], [rows], len(rows)
    for keys, index in ((read["thread"].combine_chunks(), rows), (pa.concat_arrays(turns), np.tile(rows, 2))):
        codes = keys.dictionary_encode()
        known = codes.is_valid().to_numpy(zero_copy_only=False)
        left.append(index[known])
        right.append(offset + codes.indices.drop_null().to_numpy())
        offset += len(codes.dictionary)
    edges = np.concatenate(left), np.concatenate(right)
    graph = coo_array((np.ones(len(edges[0]), np.int8), edges), shape=(offset, offset))
    _, component = connected_components(graph, directed=False)
    first = np.full(component.max() + 1, len(rows))
    np.minimum.at(first, component[: len(rows)], rows)
    return read["id"].combine_chunks().take(pa.array(first[component[: len(rows)]]))


def _long_turn(turns: pa.ChunkedArray) -> pa.ChunkedArray:
    normal = pc.utf8_lower(turns)
    return pc.if_else(pc.greater_equal(pc.utf8_length(normal), SHARED_TURN), normal, None)


def _split(thread_id: pa.Array, splits: dict[str, float], seed: int) -> pa.Array:
    threads = thread_id.dictionary_encode()
    bounds = np.cumsum([splits[name] for name in SPLITS])
    places = np.searchsorted(bounds / bounds[-1], _uniform(threads.dictionary.to_pylist(), seed), side="right")
    return pa.array(np.array(SPLITS)[places][threads.indices.to_numpy()], pa.string())


def _uniform(keys: Iterable[str], seed: int) -> np.ndarray:
    """A number in [0, 1) for each key, fixed by the key and the seed alone."""
    digests = (blake2b(f"{seed}\x1f{key}".encode(), digest_size=8).digest() for key in keys)
    return np.array([int.from_bytes(digest) for digest in digests], dtype=np.float64) / 2.0**64
