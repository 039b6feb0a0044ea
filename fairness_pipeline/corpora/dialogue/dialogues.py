"""The table of single-turn dialogues: cleaned, without duplicates, split by thread."""

from collections import Counter
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pydantic

from fairness_pipeline.corpora.cleaning import URL, clean
from fairness_pipeline.corpora.dialogue.comments import read_comments
from fairness_pipeline.corpora.dialogue.framed_contexts import FramedContexts
from fairness_pipeline.corpora.dialogue.grammar import Grammar
from fairness_pipeline.corpora.dialogue.readers import Turns, read_dataset, read_file
from fairness_pipeline.corpora.downloads import file_as_declared, located
from fairness_pipeline.corpora.draws import uniform
from fairness_pipeline.corpora.specification import CorpusSpecification
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.inputs import File
from fairness_pipeline.foundation.paths import data_file
from fairness_pipeline.foundation.progress import Progress, track
from fairness_pipeline.foundation.schemas import fields, optional, schema
from fairness_pipeline.foundation.yaml_files import Specification
from fairness_pipeline.lexicons.contexts import CONTEXT_PAIRS, CONTEXTS

SPLITS = ("train", "valid", "test", "audit")
SHARED_TURN = 25
"""Characters. Dialogues that share a turn of at least this length form one thread; shorter turns are stock phrases."""

SCHEMA = schema(
    **fields(CONTEXT_PAIRS, "dialogue_id"),
    thread_id=(pa.string(), "dialogues of one thread fall into one split"),
    **fields(CONTEXTS, "context"),
    response=(pa.string(), "what is answered"),
    split=(pa.string(), "train, valid, test or audit"),
    corpus=(pa.string(), "the corpus's key: its file in data/corpora"),
    source=(pa.string(), "the file, data set or grammar that a dialogue is from"),
    topic=optional(
        pa.string(), "what a dialogue is about, where the corpus says so; of written contexts the dimension"
    ),
)
_READ_COLUMNS = ("id", "context", "response", "thread", "source", "topic")
_BATCH = 50_000


Weight = Annotated[float, pydantic.Field(ge=0, allow_inf_nan=False)]


class Splits(Specification):
    """The share of threads in each split, relative to the sum of the four."""

    train: Weight
    """The split that models are trained on."""
    valid: Weight
    """The split that decides when to stop training."""
    test: Weight
    """The split that measures the quality of answers (BLEU, perplexity)."""
    audit: Annotated[float, pydantic.Field(gt=0, allow_inf_nan=False)]
    """The contexts of the audit. Without training this may be the only split."""


class Reading(NamedTuple):
    """A corpus as a table of `SCHEMA`, how many rows were read, and how many were left out for each reason."""

    table: pa.Table
    rows_read: int
    left_out: dict[str, int]


def source_files(corpus: CorpusSpecification, folder: Path) -> dict[str, File | str]:
    """Every file of a corpus with its SHA-256, by its path as declared. A declared sum is checked.

    A named data set has its revision instead; the files of a data set in a folder are hashed. A file at an address is
    checked when it is downloaded.

    Raises:
        FairnessError: a file is missing, or does not have the declared sum.
    """
    if corpus.grammar:
        return {corpus.grammar.file: File.of(data_file(corpus.grammar.file))}
    if corpus.contexts:
        return {corpus.contexts.file: File.of(data_file(corpus.contexts.file))}
    if corpus.dataset:
        files = corpus.dataset.files(folder)
        return {str(path): File.of(path) for path in files} or {
            corpus.dataset.name: corpus.dataset.revision or "not pinned"
        }
    return {file.path: file_as_declared(file, folder) for file in corpus.files}


def read_dialogues(
    key: str,
    corpus: CorpusSpecification,
    folder: Path,
    splits: dict[str, float],
    seed: int,
    progress: Progress | None = None,
) -> Reading:
    """Reads, cleans, deduplicates and splits one corpus. Files at an address are downloaded first.

    Args:
        key: The key of the corpus; every row and every id holds it.
        corpus: The corpus to read.
        folder: The folder that relative paths start from.
        splits: The share of threads in each split, by its name.
        seed: The seed of the split.
        progress: Called with the number of bytes downloaded, then with the number of rows read.

    Raises:
        FairnessError: the input is wrong (names file and line), or no dialogue is left.
    """
    paths = [located(file, folder, progress) for file in corpus.files]
    rows = 0
    left_out: Counter[str] = Counter({"empty_or_deleted": 0})
    seen: set[bytes] = set()
    batches: list[pa.RecordBatch] = []
    total = corpus.grammar.dialogues if corpus.grammar else None
    source = track(_turns(corpus, folder, paths), progress, total, note="rows read")
    while chunk := list(islice(source, _BATCH)):
        columns: dict[str, list[str | None]] = {name: [] for name in _READ_COLUMNS}
        for origin, turns in chunk:
            rows += 1
            context, response = (prepare(turn, corpus.replace) for turn in (turns.context, turns.response))
            if reason := _unfit(context, response, corpus):
                left_out[reason] += 1
                continue
            identity = blake2b(f"{key}\x1f{context}\x1f{response}".encode(), digest_size=10)
            if identity.digest() in seen:
                left_out["duplicate"] += 1
                continue
            seen.add(identity.digest())
            row = identity.hexdigest(), context, response, turns.thread_id, origin, turns.topic
            for name, value in zip(columns, row, strict=True):
                columns[name].append(value)
        batches.append(pa.record_batch({name: pa.array(values, pa.string()) for name, values in columns.items()}))
    dialogues = pa.Table.from_batches(batches, pa.schema([(name, pa.string()) for name in _READ_COLUMNS]))
    if not dialogues.num_rows:
        reasons = ", ".join(f"{count:,} {reason.replace('_', ' ')}" for reason, count in left_out.items() if count)
        raise FairnessError(
            f"corpus '{key}' ({', '.join(map(str, paths)) or corpus.format}): no dialogue is left of {rows:,} rows; "
            f"left out: {reasons or 'none'}; look at the file, and at what the corpus's YAML file leaves out"
        )
    thread_id = _threads(dialogues)
    table = pa.table(
        {
            "dialogue_id": dialogues["id"],
            "thread_id": thread_id,
            "context": dialogues["context"],
            "response": dialogues["response"],
            "split": _split(thread_id, splits, seed),
            "corpus": pa.repeat(key, dialogues.num_rows),
            "source": dialogues["source"],
            "topic": dialogues["topic"],
        },
        schema=SCHEMA,
    )
    return Reading(table, rows, dict(left_out))


def prepare(turn: str, replace: Mapping[str, str]) -> str:
    """A turn after the corpus's own replacements and after cleaning."""
    for old, new in replace.items():
        turn = turn.replace(old, new)
    return clean(turn)


def _unfit(context: str, response: str, corpus: CorpusSpecification) -> str | None:
    """The reason why a dialogue is left out; None if it is kept."""
    if not context or not (response or corpus.contexts):
        return "empty_or_deleted"
    if corpus.maximum_words and any(turn.count(" ") >= corpus.maximum_words for turn in (context, response)):
        return "too_long"
    if corpus.drop_urls and (URL in context or URL in response):
        return "holds_a_url"
    return None


def _turns(corpus: CorpusSpecification, folder: Path, paths: list[Path]) -> Iterator[tuple[str, Turns]]:
    """Every row, with the name of its file or other source."""
    if corpus.grammar:
        grammar = Grammar.load(corpus.grammar.file)
        generated = grammar.generate(corpus.grammar.dialogues, corpus.grammar.seed)
        for number, dialogue in enumerate(generated):
            yield corpus.grammar.file, Turns(dialogue.context, dialogue.response, str(number), dialogue.scene.topic)
    elif corpus.contexts:
        for dimension, frame, context in FramedContexts.load(corpus.contexts.file).texts():
            yield corpus.contexts.file, Turns(context, "", f"{dimension} {frame}", dimension)
    elif corpus.dataset:
        yield from ((corpus.dataset.name, turns) for turns in read_dataset(corpus.dataset.resolve(folder), corpus))
    elif corpus.format == "comments":
        yield from ((", ".join(path.name for path in paths), turns) for turns in read_comments(paths))
    else:
        for path in paths:
            yield from ((path.name, turns) for turns in read_file(path, corpus))


def _threads(dialogues: pa.Table) -> pa.Array:
    """The thread of each row: the one the file names, or a connected component of rows that share a long turn.

    A thread is named after the id of its first row, so its name does not depend on the other threads.
    """
    rows = np.arange(dialogues.num_rows)
    unknown = pc.is_null(dialogues["thread"])
    turns = [
        pc.if_else(unknown, _long_turn(dialogues[turn]), None).combine_chunks() for turn in ("context", "response")
    ]
    left, right, offset = [rows], [rows], len(rows)
    for keys, index in ((dialogues["thread"].combine_chunks(), rows), (pa.concat_arrays(turns), np.tile(rows, 2))):
        codes = keys.dictionary_encode()
        known = codes.is_valid().to_numpy(zero_copy_only=False)
        left.append(index[known])
        right.append(offset + codes.indices.drop_null().to_numpy())
        offset += len(codes.dictionary)
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    edges = np.concatenate(left), np.concatenate(right)
    graph = coo_array((np.ones(len(edges[0]), np.int8), edges), shape=(offset, offset))
    _, component = connected_components(graph, directed=False)
    first = np.full(component.max() + 1, len(rows))
    np.minimum.at(first, component[: len(rows)], rows)
    return dialogues["id"].combine_chunks().take(pa.array(first[component[: len(rows)]]))


def _long_turn(turns: pa.ChunkedArray) -> pa.ChunkedArray:
    normal = pc.utf8_lower(turns)
    return pc.if_else(pc.greater_equal(pc.utf8_length(normal), SHARED_TURN), normal, None)


def _split(thread_id: pa.Array, splits: dict[str, float], seed: int) -> pa.Array:
    threads = thread_id.dictionary_encode()
    bounds = np.cumsum([splits[name] for name in SPLITS])
    numbers = [uniform(f"{seed}\x1f{key}") for key in threads.dictionary.to_pylist()]
    indices = np.searchsorted(bounds / bounds[-1], numbers, side="right")
    return pa.array(np.array(SPLITS)[indices][threads.indices.to_numpy()], pa.string())
