"""DST: does the user state this value now? A model is tuned to answer this (Barikeri et al. 2021, section 3.2, table
4)."""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import torch
from sklearn.metrics import accuracy_score, f1_score
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits

from fairness_pipeline.measures.language.downstream import Given, StateTrackingSettings, rows_of
from fairness_pipeline.models.language import fine_tuning

_BATCH = 64


class Tracker(nn.Module):
    """Maps the hidden state of a text's last token through a feed-forward layer to one logit.

    Args:
        model: A causal language model. Training changes it.
    """

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.body = model.base_model
        width = model.get_output_embeddings().weight.shape[1]
        self.head = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1))

    @property
    def device(self) -> torch.device:
        """The device of the model."""
        return next(self.parameters()).device

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        """(texts,) logits."""
        hidden = self.body(input_ids=input_ids, attention_mask=attention_mask)[0]
        last = attention_mask.sum(1) - 1
        logits: torch.Tensor = self.head(hidden[torch.arange(len(last), device=hidden.device), last]).squeeze(1)
        return logits


def dialogue_state_tracking(
    given: Given, turns: pa.Table, settings: StateTrackingSettings, published: Mapping[str, float]
) -> pa.Table:
    """F1 and accuracy on the split `test`, after tuning on `train`.

    Args:
        given: The model. It is changed.
        turns: As `corpora.language.multiwoz.STATE_TURNS`.
        settings: How the model is tuned.
        published: The paper's values, by metric.
    """
    torch.manual_seed(given.seed)
    tracker = Tracker(given.model).to(given.model.device)
    longest = given.longest(settings.longest)

    def encoded(split: str) -> list[dict[str, Any]]:
        in_split = turns.filter(pc.equal(turns["split"], split))
        token_ids = given.tokenizer(in_split["text"].to_pylist())["input_ids"]
        return [
            {"input_ids": ids[-longest:], "right": float(right)}
            for ids, right in zip(token_ids, in_split["right"].to_pylist(), strict=True)
        ]

    recipe = fine_tuning.Recipe(settings.epochs, settings.batch, 1, settings.learning_rate)
    fine_tuning.train(
        tracker.train(), encoded("train"), recipe, given.folder, given.seed,
        loss=_loss, collate=_collate, progress=given.progress, note="state tracking",
    )  # fmt: skip
    test = encoded("test")
    order = sorted(range(len(test)), key=lambda index: len(test[index]["input_ids"]))
    predicted = [False] * len(test)
    tracker.eval()
    with torch.inference_mode():
        for start in range(0, len(order), _BATCH):
            indices = order[start : start + _BATCH]
            batch = _collate([test[index] for index in indices])
            logits = tracker(batch["input_ids"].to(tracker.device), batch["attention_mask"].to(tracker.device))
            for index, positive in zip(indices, (logits > 0).tolist(), strict=True):
                predicted[index] = positive
    truth = [bool(row["right"]) for row in test]
    note = f"scikit-learn|one wrong value per right one|{settings.epochs} epochs|batch {settings.batch}"
    return rows_of(
        [
            ("dst_f1", float(f1_score(truth, predicted)), "fraction", len(test), f"f1_score|{note}"),
            ("dst_accuracy", float(accuracy_score(truth, predicted)), "fraction", len(test), f"accuracy_score|{note}"),
            ("dst_always_right", sum(truth) / len(truth), "fraction", len(test), "share of right values"),
        ],
        published,
    )


def _loss(tracker: Any, batch: dict[str, torch.Tensor]) -> torch.Tensor:
    logits = tracker(batch["input_ids"], batch["attention_mask"])
    return binary_cross_entropy_with_logits(logits, batch["right"])


def _collate(examples: Sequence[dict[str, Any]]) -> dict[str, torch.Tensor]:
    batch = fine_tuning.padded([{"input_ids": example["input_ids"]} for example in examples])
    return {
        "input_ids": batch["input_ids"],
        "attention_mask": batch["attention_mask"],
        "right": torch.tensor([example["right"] for example in examples]),
    }
