"""The Transformer of "Does Gender Matter?" (section 3.1.2), which answers with the best of many candidates."""

import math
from hashlib import blake2b
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from safetensors.torch import save_file
from torch import nn
from torch.nn.functional import cross_entropy

from fairness_pipeline.foundation.files import replacing
from fairness_pipeline.foundation.parquet import read_parquet, write_parquet
from fairness_pipeline.foundation.progress import Progress, report
from fairness_pipeline.models.batching import Batch, cut, pad
from fairness_pipeline.models.checkpoints import load_weights
from fairness_pipeline.models.devices import roomy, to_device
from fairness_pipeline.models.dialogue.specification import ModelSpecification, RetrievalSizes
from fairness_pipeline.models.dialogue.training import PenaltyOf, train_on_dialogues
from fairness_pipeline.models.erasure import Erasure, restore
from fairness_pipeline.models.specification import given
from fairness_pipeline.models.training import Trainer
from fairness_pipeline.models.vocabulary import END, PAD, START, VOCABULARY, Vocabulary
from fairness_pipeline.workspace.distinct import Scorer

VECTORS = "candidates.safetensors"
CANDIDATES = "candidates.parquet"
_QUERIES = 512
_CHUNK = 4096
"""The number of candidates scored at once; their scores for a batch of queries take 8 MiB, and more is slower."""
_ENCODING_TOKENS = 8192


class Ranker(nn.Module):
    """A Transformer that encodes contexts and candidates the same way; the score is their dot product.

    It adds sinusoidal positions to word embeddings, applies encoder layers, and takes the mean over the words.
    Responses have start and end marks, which distinguish them from contexts.
    """

    SPLITS = False
    """The loss of a batch is no sum over its parts: each response is ranked among those of its batch."""

    def __init__(self, sizes: RetrievalSizes, words: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, sizes.embedding, padding_idx=PAD)
        layer = nn.TransformerEncoderLayer(
            sizes.embedding, sizes.heads, sizes.feed_forward, sizes.dropout, batch_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, sizes.layers, enable_nested_tensor=False)
        self.dropout = nn.Dropout(sizes.dropout)
        self.positions: torch.Tensor
        self.register_buffer("positions", _sinusoids(sizes.longest + 2, sizes.embedding), persistent=False)
        self.erasure: Erasure | None = None

    def encode(self, turns: torch.Tensor) -> torch.Tensor:
        """Turns (batch, words) as vectors (batch, embedding)."""
        padding = turns == PAD
        words = self.embedding(turns) * math.sqrt(self.embedding.embedding_dim)
        hidden = self.encoder(self.dropout(words + self.positions[: turns.shape[1]]), src_key_padding_mask=padding)
        present = (~padding).unsqueeze(2)
        return (hidden * present).sum(dim=1) / present.sum(dim=1)

    def forward(self, batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
        """The summed cross-entropy (in nats) of each response against the others in its batch, and their number.

        Scores are divided by the root of the width. This does not change the ranking, and it keeps an untrained model
        from being certain. A response that equals the true one does not count as a negative.
        """
        contexts, responses = self.encode(batch.contexts), self.encode(batch.responses)
        scores = contexts @ responses.T / math.sqrt(contexts.shape[1])
        same = (batch.responses.unsqueeze(0) == batch.responses.unsqueeze(1)).all(dim=2)
        same.fill_diagonal_(False)
        targets = torch.arange(len(scores), device=scores.device)
        loss = cross_entropy(scores.masked_fill(same, -torch.inf), targets, reduction="sum")
        return loss, torch.tensor(len(scores))


def best_candidates(queries: torch.Tensor, candidates: torch.Tensor) -> torch.Tensor:
    """The number of the candidate (candidates, width) with the largest dot product, for each query (queries, width).

    The search is exact: every score is computed, but only the largest so far is kept, and nothing is sorted. Among
    equal scores the first wins.
    """
    # Pieces of nearly one size: a last piece of one candidate would be computed by other instructions.
    pieces = candidates.tensor_split(-(-len(candidates) // roomy(_CHUNK, candidates.device)))
    best = torch.empty(len(queries), dtype=torch.int64, device=queries.device)
    for start in range(0, len(queries), _QUERIES):
        part = queries[start : start + _QUERIES]
        top = torch.full((len(part),), -torch.inf, dtype=queries.dtype, device=queries.device)
        winners = torch.zeros(len(part), dtype=torch.int64, device=queries.device)
        first = 0
        for piece in pieces:
            score, index = (part @ piece.T).max(dim=1)
            better = score > top
            top = torch.where(better, score, top)
            winners = torch.where(better, index + first, winners)
            first += len(piece)
        best[start : start + len(part)] = winners
    return best


@torch.inference_mode()
def encode_turns(model: Ranker, turns: list[np.ndarray], progress: Progress | None = None) -> torch.Tensor:
    """Turns as vectors (turns, width), encoded in batches of similar length."""
    device = next(model.parameters()).device
    vectors = torch.empty(len(turns), model.embedding.embedding_dim, device=device)
    lengths = np.array([len(turn) for turn in turns])
    done = 0
    for batch in cut(np.argsort(lengths, kind="stable"), lengths, _ENCODING_TOKENS):
        vectors[torch.from_numpy(batch).to(device)] = model.encode(pad([turns[i] for i in batch], device))
        done += len(batch)
        report(progress, done, len(turns), "candidates encoded")
    return vectors


def prepare(
    specification: ModelSpecification,
    dialogues: pa.Table,
    folder: Path,
    seed: int,
    progress: Progress | None = None,
    penalty: PenaltyOf | None = None,
) -> dict[str, object]:
    """Trains the model in `folder`, then encodes its candidates. A killed run is resumed.

    Arguments and errors are those of `train_on_dialogues`; the seed also draws the candidates.

    Returns:
        The model's figures (a perplexity of 1 means always right; one of the batch's size means guessing) and the
        number of candidates.
    """
    sizes = given(specification.retrieval)
    vocabulary, figures = train_on_dialogues(
        lambda words: Ranker(sizes, words), specification, sizes, dialogues, folder, seed, progress, penalty
    )
    training = dialogues.filter(pc.equal(dialogues["split"], "train"))
    candidates = draw_candidates(training["response"], sizes.candidates, seed)
    if not (folder / VECTORS).exists():
        turns = vocabulary.turns(candidates, sizes.longest)
        marked = [np.concatenate(([START], turn, [END])) for turn in turns]
        vectors = encode_turns(_ranker(specification, vocabulary, folder), marked, progress)
        with replacing(folder / CANDIDATES) as path:
            write_parquet(pa.table({"response": candidates}), path)
        with replacing(folder / VECTORS) as path:
            save_file({"vectors": vectors.cpu()}, path)
    return {**figures, "candidates": len(candidates)}


def responder(specification: ModelSpecification, folder: Path, work: Path, seed: int) -> Scorer:
    """Answers contexts with their best candidates: a table with a column `text` in, one with `response` out.

    It is the model that `prepare` left in `folder`. Each response depends on its own context alone; nothing is drawn.
    """
    vocabulary = Vocabulary.load(folder / VOCABULARY)
    model = _ranker(specification, vocabulary, folder)
    vectors = load_weights(folder / VECTORS)["vectors"].to(next(model.parameters()).device)
    candidates = read_parquet(folder / CANDIDATES)["response"]

    def answer(contexts: pa.Table) -> pa.Table:
        turns = vocabulary.turns(contexts["text"].to_pylist(), given(specification.retrieval).longest)
        queries = encode_turns(model, turns)
        if model.erasure:
            queries = model.erasure(queries)
        return pa.table({"response": candidates.take(pa.array(best_candidates(queries, vectors).cpu().numpy()))})

    return answer


def context_vectors(specification: ModelSpecification, folder: Path, contexts: list[str]) -> torch.Tensor:
    """The vectors (contexts, width) of the `contexts`, which candidates are compared with."""
    vocabulary = Vocabulary.load(folder / VOCABULARY)
    model = _ranker(specification, vocabulary, folder)
    return encode_turns(model, vocabulary.turns(contexts, given(specification.retrieval).longest))


def draw_candidates(responses: pa.ChunkedArray, most: int, seed: int) -> list[str]:
    """At most `most` distinct responses. The text of each and the seed decide, so their order does not matter."""
    distinct = pc.unique(responses).to_pylist()
    if len(distinct) <= most:
        return distinct
    ranks = np.array([int.from_bytes(blake2b(f"{seed}\x1f{t}".encode(), digest_size=8).digest()) for t in distinct])
    return [distinct[i] for i in np.sort(np.argsort(ranks, kind="stable")[:most])]


def _ranker(specification: ModelSpecification, vocabulary: Vocabulary, folder: Path) -> Ranker:
    model = Ranker(given(specification.retrieval), len(vocabulary))
    restore(model, load_weights(folder / Trainer.WEIGHTS))
    return to_device(model, specification.device).eval()


def _sinusoids(length: int, width: int) -> torch.Tensor:
    """The position encodings of Vaswani et al. (2017), section 3.5: (length, width)."""
    position = torch.arange(length).unsqueeze(1)
    rate = torch.exp(torch.arange(0, width, 2) * (-math.log(10_000.0) / width))
    return torch.stack([torch.sin(position * rate), torch.cos(position * rate)], dim=2).flatten(1)
