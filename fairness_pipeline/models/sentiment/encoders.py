"""CNN and GRU regressors over word embeddings, one output for each affect."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import torch
from torch import nn

from fairness_pipeline.foundation.progress import Progress
from fairness_pipeline.models.batching import EncodedDialogues, pad
from fairness_pipeline.models.checkpoints import load_weights
from fairness_pipeline.models.devices import in_batches, to_device
from fairness_pipeline.models.sentiment.linear_svm import of_affect
from fairness_pipeline.models.sentiment.specification import EncoderSettings, SystemSpecification
from fairness_pipeline.models.text_encoder import TextEncoder
from fairness_pipeline.models.training import Trainer
from fairness_pipeline.models.vocabulary import VOCABULARY, Vocabulary
from fairness_pipeline.workspace.distinct import Scorer

_BATCH = 512


class TweetBatch(NamedTuple):
    """Padded tweets (batch, words), their lengths on the CPU, and for each tweet an intensity and its affect."""

    texts: torch.Tensor
    lengths: torch.Tensor
    goals: torch.Tensor
    affects: torch.Tensor


class ScoredTweets(EncodedDialogues):
    """Tweets in the form that the shared training loop takes: each has a goal in 0..1 for one affect (its number)."""

    def __init__(self, turns: list[np.ndarray], goals: np.ndarray, affects: np.ndarray) -> None:
        super().__init__(turns, [()] * len(turns))
        self._goals, self._affects = goals, affects

    def batch(self, indices: np.ndarray, device: torch.device) -> TweetBatch:  # type: ignore[override]
        """The tweets at `indices`, padded."""
        goals = torch.tensor(self._goals[indices], dtype=torch.float32, device=device)
        affects = torch.from_numpy(self._affects[indices]).to(device)
        return TweetBatch(*_batch([self.context(i) for i in indices], device), goals, affects)


class Regressor(nn.Module):
    """Gives a text a score in 0..1 for each affect."""

    def __init__(self, architecture: str, settings: EncoderSettings, words: int, affects: int) -> None:
        super().__init__()
        self.encoder = TextEncoder(architecture, words, settings)
        self.dropout = nn.Dropout(settings.dropout)
        self.output = nn.Linear(self.encoder.width, affects)

    def forward(self, batch: TweetBatch) -> tuple[torch.Tensor, torch.Tensor]:
        """The summed squared error of the tweets' intensities, and the number of tweets."""
        rows = torch.arange(len(batch.goals), device=batch.goals.device)
        of_its_affect = self.scores(batch.texts, batch.lengths)[rows, batch.affects]
        loss = torch.nn.functional.mse_loss(of_its_affect, batch.goals, reduction="sum")
        return loss, torch.tensor(len(batch.goals))

    def scores(self, texts: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        """The scores (batch, affects) of texts (batch, words) with these lengths. Padding has no effect."""
        embedded = self.dropout(self.encoder.embedding(texts))
        return torch.sigmoid(self.output(self.dropout(self.encoder(embedded, lengths))))


def prepare(
    specification: SystemSpecification, tweets: pa.Table, folder: Path, seed: int, progress: Progress | None = None
) -> dict[str, Any]:
    """Trains the network on all affects at once. The loss is the mean squared error of the tweets' intensities.

    A killed training is resumed.

    Raises:
        FairnessError: an affect has no tweets, or a loss is not a finite number.
    """
    settings = _settings(specification)
    parts = [of_affect(tweets, affect) for affect in specification.affects]
    texts = [text for part in parts for text in part["tweet"].to_pylist()]
    vocabulary = Vocabulary.build(texts, settings.vocabulary)
    vocabulary.save(folder / VOCABULARY)
    goals = np.concatenate([part["score"].to_numpy() for part in parts])
    affects = np.repeat(np.arange(len(parts)), [part.num_rows for part in parts])
    torch.manual_seed(seed)
    model = Regressor(specification.architecture, settings, len(vocabulary), len(specification.affects))
    trainer = Trainer(to_device(model, specification.device), settings.training, folder, seed)
    losses = trainer.fit(ScoredTweets(vocabulary.turns(texts, settings.longest), goals, affects), None, progress)
    return {"tweets": len(texts), "vocabulary": len(vocabulary), "epochs": len(losses), "loss": losses[-1]}


def scorer(specification: SystemSpecification, folder: Path, work: Path, seed: int) -> Scorer:
    """The network that `prepare` trained in `folder`, with one column for each affect; a score depends on its sentence
    alone."""
    settings, vocabulary = _settings(specification), Vocabulary.load(folder / VOCABULARY)
    model = Regressor(specification.architecture, settings, len(vocabulary), len(specification.affects))
    model.load_state_dict(load_weights(folder / Trainer.WEIGHTS))
    device = next(to_device(model, specification.device).eval().parameters()).device

    @torch.inference_mode()
    def score(sentences: pa.Table) -> pa.Table:
        turns = vocabulary.turns(sentences["text"].to_pylist(), settings.longest)

        def scores_of(start: int, end: int) -> np.ndarray:
            scores: np.ndarray = model.scores(*_batch(turns[start:end], device)).double().cpu().numpy()
            return scores

        parts = list(in_batches(scores_of, len(turns), _BATCH, model))
        return pa.table(list(np.concatenate(parts).T), names=list(specification.affects))

    return score


def _settings(specification: SystemSpecification) -> EncoderSettings:
    return specification.encoder or EncoderSettings()


def _batch(turns: list[np.ndarray], device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    return pad(turns, device), torch.tensor([len(turn) for turn in turns])
