"""Self-Debias: at decoding, words that a description of bias makes likelier are made less likely (Schick et al. 2021).

The model reads a context alone, and once more behind each description of unwanted text. With Delta(w) =
p(w | x) - max p(w | description, x), a word's probability is multiplied by 1 where Delta >= 0 and by exp(decay * Delta)
elsewhere (equations 2 and 3). The weights stay the base's. The method depends on how the model understands the
description: a model that never read such a sentence gains little.
"""

from pathlib import Path
from typing import Any

import numpy as np
import torch

from fairness_pipeline.debiasing.dialogue.settings import SelfDebias
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.models.batching import pad
from fairness_pipeline.models.dialogue.huggingface import HuggingFaceResponder
from fairness_pipeline.models.dialogue.seq2seq import Readings, Seq2SeqResponder
from fairness_pipeline.models.dialogue.specification import ModelSpecification
from fairness_pipeline.models.specification import given
from fairness_pipeline.workspace.distinct import Scorer


def responder(specification: ModelSpecification, folder: Path, work: Path, seed: int) -> Scorer:
    """Answers contexts with the base's weights, debiased by the model itself.

    Raises:
        FairnessError: the file asks for sampled answers.
    """
    settings = SelfDebias.model_validate(specification.settings or {})
    if specification.architecture == "seq2seq":
        return _Recurrent(specification, folder, settings)
    if specification.decoding.temperature:
        raise FairnessError(
            "decoding.temperature: 'self_debias' answers greedily, as it reads each context several times and must "
            f"write the same words in all; expected 0, found {specification.decoding.temperature:g}"
        )
    return _Causal(specification, folder, seed, settings)


def debiased_scores(scores: torch.Tensor, decay: float) -> torch.Tensor:
    """log of the debiased probabilities, up to a constant a row.

    Args:
        scores: Logits of the context alone, and behind each description (1 + descriptions, rows, words).
        decay: lambda of equation 3.
    """
    log_p = scores.float().log_softmax(dim=-1)
    plain, described = log_p[0].exp(), log_p[1:].exp().amax(dim=0)
    return log_p[0] + decay * (plain - described).clamp(max=0.0)


class _Recurrent(Seq2SeqResponder):
    def __init__(self, specification: ModelSpecification, folder: Path, settings: SelfDebias) -> None:
        super().__init__(specification, folder)
        self._settings = settings

    def answer(self, texts: list[str]) -> list[str]:
        model, vocabulary = self.model, self.vocabulary
        sizes = given(self.specification.seq2seq)
        prefixes = [vocabulary.encode(prefix, sizes.longest) for prefix in self._settings.prefixes]
        plain = vocabulary.turns(texts, sizes.longest)
        turns = [*plain, *(np.array([*prefix, *turn]) for prefix in prefixes for turn in plain)]
        lengths = torch.tensor([len(turn) for turn in turns])
        readings = Readings(1 + len(prefixes), lambda scores: debiased_scores(scores, self._settings.decay))
        answers = model.answer(pad(turns, model.output.weight.device), lengths, sizes.longest, readings)
        return [vocabulary.decode(words) for words in answers]


class _Causal(HuggingFaceResponder):
    def __init__(self, specification: ModelSpecification, folder: Path, seed: int, settings: SelfDebias) -> None:
        super().__init__(specification, folder, seed)
        self._settings = settings

    def answer(self, contexts: list[str]) -> list[str]:
        described = [f"{prefix} {context}" for prefix in self._settings.prefixes for context in contexts]
        return super().answer([*contexts, *described])[: len(contexts)]

    def generation_options(self) -> dict[str, Any]:
        from transformers import LogitsProcessorList

        readings, decay = 1 + len(self._settings.prefixes), self._settings.decay

        def process(tokens: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
            return debiased_scores(scores.unflatten(0, (readings, -1)), decay).repeat(readings, 1)

        return {"logits_processor": LogitsProcessorList([process])}
