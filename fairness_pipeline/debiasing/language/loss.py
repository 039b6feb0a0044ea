"""A debiasing loss beside that of language modelling: total = lambda_LM * L_LM + lambda_D * L_D, phrase by phrase."""

from collections.abc import Sequence
from typing import Any, Protocol

import torch
from torch.nn.functional import cross_entropy

from fairness_pipeline.debiasing.language.terms import Places, TermVectors
from fairness_pipeline.models.language.fine_tuning import IGNORED, padded


class DebiasingLoss(Protocol):
    """A method's loss; each method has its own file."""

    attributes: bool
    """Whether the loss is computed at attributes; otherwise it is computed at targets."""

    def __call__(self, hidden: torch.Tensor, place: Any, vectors: torch.Tensor, pairs: torch.Tensor) -> torch.Tensor:
        """The loss at one place.

        Args:
            hidden: (tokens, width) of the phrase.
            place: As in `Places`.
            vectors: (terms, width) of the output layer.
            pairs: (pairs, 2) rows of `vectors`.
        """


class Weighted:
    """The loss that a `Trainer` minimises.

    A phrase without a listed term costs L_LM unweighted (Barikeri et al. 2021, section 4).

    Args:
        debiasing_loss: The method's loss.
        terms: The terms of the dimension.
        lambda_lm: The weight of L_LM in phrases with a listed term.
        lambda_d: The weight of the method's loss, which is the mean over the places of a phrase.
    """

    def __init__(self, debiasing_loss: DebiasingLoss, terms: TermVectors, lambda_lm: float, lambda_d: float) -> None:
        self._debiasing_loss = debiasing_loss
        self._terms = terms
        self._lambda_lm = lambda_lm
        self._lambda_d = lambda_d

    def __call__(self, model: Any, batch: dict[str, Any]) -> torch.Tensor:
        """The mean cost of the batch's phrases."""
        out = model(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"], output_hidden_states=True)
        targets = batch["labels"][:, 1:]
        is_target = targets != IGNORED
        losses = cross_entropy(out.logits[:, :-1].transpose(1, 2).float(), targets, reduction="none")
        lm = (losses * is_target).sum(1) / is_target.sum(1).clamp(min=1)
        hidden = out.hidden_states[-1]
        vectors, pairs = self._terms.vectors(model), self._terms.pairs.to(model.device)
        costs = []
        for row, places in enumerate(batch["places"]):
            term_places: Sequence[Any] = places.attributes if self._debiasing_loss.attributes else places.targets
            if not term_places:
                costs.append(lm[row])
                continue
            cost = self._lambda_lm * lm[row]
            # The first token of a phrase is predicted from nothing: there is nothing to make equal.
            if scored_places := [place for place in term_places if self._debiasing_loss.attributes or place[0] > 0]:
                debiasing_cost = torch.stack(
                    [self._debiasing_loss(hidden[row], place, vectors, pairs) for place in scored_places]
                ).mean()
                cost = cost + self._lambda_d * debiasing_cost
            costs.append(cost)
        return torch.stack(costs).mean()


def collate(examples: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Phrases as a batch, with the places of their terms."""
    return {**padded(examples), "places": [example["places"] for example in examples]}


def examples_of(places: Sequence[Places]) -> list[dict[str, Any]]:
    """Phrases as a `Trainer` reads them. A phrase of a single token is left out: it teaches nothing."""
    return [{"input_ids": place.input_ids, "places": place} for place in places if len(place.input_ids) > 1]
