"""The LSTM encoder-decoder of "Does Gender Matter?" (section 3.1.1)."""

import math
from collections.abc import Callable, Collection
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch.nn.utils.rnn import pack_padded_sequence

from fairness_pipeline.foundation.progress import Progress
from fairness_pipeline.models.batching import Batch, EncodedDialogues, pad
from fairness_pipeline.models.checkpoints import load_weights
from fairness_pipeline.models.devices import in_batches, roomy, to_device
from fairness_pipeline.models.dialogue.specification import ModelSpecification, Seq2SeqSizes
from fairness_pipeline.models.dialogue.training import PenaltyOf, train_on_dialogues
from fairness_pipeline.models.erasure import Erasure, restore
from fairness_pipeline.models.specification import given
from fairness_pipeline.models.training import Trainer, exp_mean
from fairness_pipeline.models.vocabulary import END, PAD, START, UNKNOWN, VOCABULARY, Vocabulary

State = tuple[torch.Tensor, torch.Tensor]
_BATCH = 512
_TOGETHER = 8
_TARGETS = 4096
"""The number of padded words in a batch whose probabilities are computed at once."""


class Readings(NamedTuple):
    """Settings for reading each context several times: how often, and how to combine the scores of all readings.

    `combine` takes (readings, rows, words) and returns (rows, words).
    """

    times: int
    combine: Callable[[torch.Tensor], torch.Tensor]


class Seq2Seq(nn.Module):
    """An LSTM reads the context; its last state starts a second LSTM that writes the response word by word.

    Context and response share a vocabulary of `words` words.
    """

    def __init__(self, sizes: Seq2SeqSizes, words: int) -> None:
        super().__init__()
        between_layers = sizes.dropout if sizes.layers > 1 else 0.0
        self.embedding = nn.Embedding(words, sizes.embedding, padding_idx=PAD)
        self.encoder = nn.LSTM(sizes.embedding, sizes.hidden, sizes.layers, batch_first=True, dropout=between_layers)
        self.decoder = nn.LSTM(sizes.embedding, sizes.hidden, sizes.layers, batch_first=True, dropout=between_layers)
        self.dropout = nn.Dropout(sizes.dropout)
        self.output = nn.Linear(sizes.hidden, words)
        self.erasure: Erasure | None = None

    def encode(self, contexts: torch.Tensor, lengths: torch.Tensor) -> State:
        """Encodes contexts (batch, words) as the last state: hidden and cell, (layers, batch, hidden) each."""
        embedded = self.dropout(self.embedding(contexts))
        packed = pack_padded_sequence(embedded, lengths, batch_first=True, enforce_sorted=False)
        _, (hidden, cell) = self.encoder(packed)
        if self.erasure is None:
            return hidden, cell
        layers, rows, width = hidden.shape
        erased = self.erasure(flat((hidden, cell))).view(rows, 2, layers, width).permute(1, 2, 0, 3).contiguous()
        return erased[0], erased[1]

    def forward(self, batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
        """The summed cross-entropy (in nats) of the responses' words, and their number. Padding adds nothing."""
        state = self.encode(batch.contexts, batch.lengths)
        hidden, _ = self.decoder(self.dropout(self.embedding(batch.responses[:, :-1])), state)
        targets = batch.responses[:, 1:]
        present = targets != PAD
        if not targets.is_cuda:  # on a GPU, selecting these words would make the CPU wait
            hidden, targets = hidden[present], targets[present]
        scores = self.output(self.dropout(hidden)).flatten(0, -2)
        return cross_entropy(scores, targets.flatten(), ignore_index=PAD, reduction="sum"), present.sum()

    @torch.inference_mode()
    def answer(
        self, contexts: torch.Tensor, lengths: torch.Tensor, longest: int, readings: Readings | None = None
    ) -> list[list[int]]:
        """Greedy responses of at most `longest` words, without start and end marks.

        A response is never empty and never holds `UNKNOWN`: the best allowed word is taken instead. Rows that have
        ended leave the batch. With `readings`, the contexts of the first reading come first, then those of the second,
        and so on.
        """
        hidden, cell = self.encode(contexts, lengths)
        times = readings.times if readings else 1
        responses: list[list[int]] = [[] for _ in range(len(contexts) // times)]
        rows = np.arange(len(responses))
        word = torch.full((len(responses), 1), START, device=contexts.device)
        written: list[torch.Tensor] = []
        for step in range(longest):
            output, (hidden, cell) = self.decoder(self.embedding(word.repeat(times, 1)), (hidden, cell))
            scores = self.output(output[:, 0])
            if readings:
                scores = readings.combine(scores.unflatten(0, (times, -1)))
            scores[:, [PAD, UNKNOWN, START]] = -torch.inf
            if step == 0:
                scores[:, END] = -torch.inf
            written.append(scores.argmax(dim=1))
            word = written[-1].unsqueeze(1)
            if len(written) < self.together and step + 1 < longest:
                continue
            words = torch.stack(written, dim=1).cpu().numpy()
            unfinished = (words != END).all(axis=1)
            for row, row_words in zip(rows, words.tolist(), strict=True):
                responses[row] += row_words[: row_words.index(END)] if END in row_words else row_words
            if not unfinished.any():
                break
            kept = torch.from_numpy(unfinished).to(word.device)
            rows, word, written = rows[unfinished], word[kept], []
            kept = kept.repeat(times)
            hidden, cell = hidden[:, kept].contiguous(), cell[:, kept].contiguous()
        return responses

    @property
    def together(self) -> int:
        """The number of words written between two checks for ended rows: each check waits for the GPU."""
        return 1 if self.output.weight.device.type == "cpu" else _TOGETHER


def flat(state: State) -> torch.Tensor:
    """Joins hidden states and cells (layers, rows, hidden each) to one vector for each row (rows, 2 layers hidden)."""
    hidden, cell = state
    return torch.stack([hidden, cell]).permute(2, 0, 1, 3).flatten(1)


class Seq2SeqResponder:
    """Answers contexts with a trained model: a table with a column `text` in, one with `response` out."""

    def __init__(self, specification: ModelSpecification, folder: Path) -> None:
        self.specification = specification
        self.model, self.vocabulary = load(specification, folder)
        self.model.eval()

    def __call__(self, contexts: pa.Table) -> pa.Table:
        """The responses, in the order of the rows; each depends on its own context alone."""
        texts = contexts["text"].to_pylist()
        size = self.specification.decoding.batch or roomy(_BATCH, self.model.output.weight.device)
        parts = in_batches(lambda start, end: self.answer(texts[start:end]), len(texts), size, self.model)
        responses = [response for part in parts for response in part]
        return pa.table({"response": pa.array(responses, pa.string())})

    def answer(self, texts: list[str]) -> list[str]:
        """The responses to some contexts, in one batch."""
        longest = given(self.specification.seq2seq).longest
        return answers(self.model, self.vocabulary, texts, longest, len(texts))


def answers(model: Seq2Seq, vocabulary: Vocabulary, contexts: list[str], longest: int, size: int = _BATCH) -> list[str]:
    """Greedy responses of at most `longest` words, `size` contexts at a time. The model must be in evaluation mode."""
    device = next(model.parameters()).device
    responses = []
    for start in range(0, len(contexts), size):
        turns = vocabulary.turns(contexts[start : start + size], longest)
        lengths = torch.tensor([len(turn) for turn in turns])
        responses += [vocabulary.decode(words) for words in model.answer(pad(turns, device), lengths, longest)]
    return responses


@torch.inference_mode()
def perplexity(
    specification: ModelSpecification, folder: Path, dialogues: pa.Table, known: Vocabulary, left_out: Collection[str]
) -> float:
    """exp of the mean cross-entropy (nats) of the responses' words, on the vocabulary of another model.

    Perplexities on different vocabularies cannot be compared: a model that knows more words has more to guess. So all
    words that `known` lacks count here as one unknown word, whose probability is the sum of theirs.

    Args:
        specification: The model's file.
        folder: Holds what `prepare` wrote.
        dialogues: Columns `context` and `response`.
        known: The vocabulary to compute it on: that of the base, for a debiased model.
        left_out: Words that do not count as targets.

    Returns:
        The perplexity; NaN if nothing is left to predict.
    """
    model, vocabulary = load(specification, folder)
    model.eval()
    device = next(model.parameters()).device
    longest = given(specification.seq2seq).longest
    turns = EncodedDialogues.of_texts(
        dialogues["context"].to_pylist(), dialogues["response"].to_pylist(), vocabulary, longest
    )
    numbers = {word: number for number, word in enumerate(vocabulary.words)}
    unknown = [number for word, number in numbers.items() if word not in set(known.words)]
    merged = torch.tensor(sorted({UNKNOWN, *unknown}), device=device)
    skipped = torch.tensor([PAD, *(numbers[word] for word in left_out if word in numbers)], device=device)
    total, count = 0.0, 0
    for indices in turns.batches(_TARGETS, None):
        batch = turns.batch(indices, device)
        hidden, _ = model.decoder(
            model.embedding(batch.responses[:, :-1]), model.encode(batch.contexts.to(device), batch.lengths)
        )
        targets = batch.responses[:, 1:]
        present = ~torch.isin(targets, skipped)
        log_p = model.output(hidden[present]).log_softmax(dim=1)
        kept = targets[present]
        log_p_of_word = log_p.gather(1, kept[:, None])[:, 0]
        log_p_of_unknown = log_p[:, merged].logsumexp(dim=1)
        total -= float(torch.where(torch.isin(kept, merged), log_p_of_unknown, log_p_of_word).sum())
        count += len(kept)
    return exp_mean(total, count) if count else math.nan


@torch.inference_mode()
def context_vectors(specification: ModelSpecification, folder: Path, contexts: list[str]) -> torch.Tensor:
    """The encoder's last state for each of the `contexts`, in the form of `flat`: (contexts, 2 layers hidden)."""
    model, vocabulary = load(specification, folder)
    model.eval()
    states = []
    for start in range(0, len(contexts), _BATCH):
        turns = vocabulary.turns(contexts[start : start + _BATCH], given(specification.seq2seq).longest)
        lengths = torch.tensor([len(turn) for turn in turns])
        states.append(flat(model.encode(pad(turns, model.output.weight.device), lengths)))
    return torch.cat(states)


def responder(specification: ModelSpecification, folder: Path, work: Path, seed: int) -> Seq2SeqResponder:
    """The responder of the model that `prepare` left in `folder`; it answers greedily, so nothing is drawn."""
    return Seq2SeqResponder(specification, folder)


def prepare(
    specification: ModelSpecification,
    dialogues: pa.Table,
    folder: Path,
    seed: int,
    progress: Progress | None = None,
    penalty: PenaltyOf | None = None,
) -> dict[str, object]:
    """Trains the model in `folder`; arguments, figures and errors are those of `train_on_dialogues`."""
    sizes = given(specification.seq2seq)
    _, figures = train_on_dialogues(
        lambda words: Seq2Seq(sizes, words), specification, sizes, dialogues, folder, seed, progress, penalty
    )
    return figures


def load(specification: ModelSpecification, folder: Path) -> tuple[Seq2Seq, Vocabulary]:
    """The trained model in `folder`, on its device, and its vocabulary."""
    vocabulary = Vocabulary.load(folder / VOCABULARY)
    model = Seq2Seq(given(specification.seq2seq), len(vocabulary))
    restore(model, load_weights(folder / Trainer.WEIGHTS))
    return to_device(model, specification.device), vocabulary
