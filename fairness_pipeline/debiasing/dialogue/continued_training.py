"""Continues the training of a base until it is shown to be fair: Debiased-Chat and its controls."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, cast

import numpy as np
import pyarrow as pa
import torch
from safetensors.torch import save_file
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from fairness_pipeline.debiasing.dialogue.biased_text import BiasScorer
from fairness_pipeline.debiasing.dialogue.fairness_test import FairnessTest, Look
from fairness_pipeline.debiasing.dialogue.registry import Task
from fairness_pipeline.debiasing.dialogue.settings import Continued
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.files import replacing
from fairness_pipeline.foundation.progress import report
from fairness_pipeline.lexicons.swapping import Swapper
from fairness_pipeline.models.batching import Batch, EncodedDialogues
from fairness_pipeline.models.checkpoints import Due, load_training, save_training, weights_of
from fairness_pipeline.models.dialogue import seq2seq
from fairness_pipeline.models.dialogue.seq2seq import Seq2Seq
from fairness_pipeline.models.dialogue.training import turns_of
from fairness_pipeline.models.training import Trainer, perplexity
from fairness_pipeline.models.vocabulary import VOCABULARY, Vocabulary
from fairness_pipeline.models.watching import Watch

_CHECKPOINT = "training.safetensors"


@dataclass(frozen=True)
class GenderedBatch:
    """Dialogues whose message names one group only: (X, Y, g)."""

    dialogues: Batch
    groups: torch.Tensor

    def shuffled(self, random: np.random.Generator) -> "GenderedBatch":
        """The same dialogues with their groups permuted at random."""
        order = torch.from_numpy(random.permutation(len(self.groups))).to(self.groups.device)
        return GenderedBatch(self.dialogues, self.groups[order])


class Step(NamedTuple):
    """One update: the name of its loss, and the function that takes it and returns the loss."""

    name: str
    take: Callable[[], torch.Tensor]


class Course(ABC):
    """A course of continued training: modules and optimisers, and the steps of an iteration.

    Args:
        settings: Steps, rate, clipping.
        model: G, trained by maximum likelihood.
        beside: Parameters that are trained together with G.
    """

    def __init__(self, settings: Continued, model: Seq2Seq, beside: Iterable[nn.Parameter] = ()) -> None:
        self.settings, self.model = settings, model
        self.averaged = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(settings.averaging))
        self.modules: dict[str, nn.Module] = {"model": model, "averaged": self.averaged}
        self.optimisers = {"generator": torch.optim.Adam([*model.parameters(), *beside], settings.learning_rate)}

    @abstractmethod
    def steps(self, data: "Dialogues", random: np.random.Generator, iteration: int) -> list[Step]:
        """The updates of one iteration, in order."""

    def diagnose(self, data: "Dialogues", random: np.random.Generator) -> dict[str, float]:
        """Returns further figures of the state at a test; none by default. Uses no random numbers of the training."""
        return {}

    def set_rate(self, iteration: int) -> None:
        """Sets the generator's learning rate in an iteration."""
        left = 1 - iteration / self.settings.most if self.settings.falling else 1
        self.optimisers["generator"].param_groups[0]["lr"] = left * self.settings.learning_rate

    def teaching_step(self, batch: Batch, weight: float = 1.0) -> torch.Tensor:
        """An update of G on L_MLE alone, as it was trained before (algorithm 1, lines 16 to 18). Returns L_MLE."""
        loss = self.likelihood_loss(batch)
        self.update("generator", weight * loss, self.model)
        return loss.detach()

    def likelihood_loss(self, batch: Batch) -> torch.Tensor:
        """L_MLE: nats a word."""
        total, words = self.model(batch)
        return total / words

    def update(self, optimiser: str, loss: torch.Tensor, clipped: nn.Module) -> None:
        """One step of an optimiser, with the gradients of one module clipped."""
        self.optimisers[optimiser].zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(clipped.parameters(), self.settings.clipping)
        self.optimisers[optimiser].step()


Taught = Literal["all", "unbiased", "random"]
"""Which replies of D(g) are learnt: all of them, the unbiased ones, or as many drawn at random."""


class Dialogues:
    """The training dialogues, tokenised once: D(g), whose messages name one group only, and D(n), which name none.

    Attributes:
        share_taught: The share of D(g) whose replies are learnt.

    Raises:
        FairnessError: either is empty, or all replies of D(g) are biased.
    """

    def __init__(
        self, task: Task, vocabulary: Vocabulary, longest: int, device: torch.device, taught: Taught = "all"
    ) -> None:
        contexts, responses = turns_of(task.dialogues, "train")
        sides = _sides(task, contexts)
        self._encoded = EncodedDialogues.of_texts(contexts, responses, vocabulary, longest)
        self._device = device
        self._groups = np.array([{"a": 0, "b": 1}.get(side or "", -1) for side in sides])
        self._gendered = np.flatnonzero(self._groups >= 0)
        self._neutral = np.array([i for i, side in enumerate(sides) if side is None], dtype=np.int64)
        if not len(self._gendered) or not len(self._neutral):
            raise FairnessError(
                f"'{task.model.debiasing}' needs dialogues with a message that names one group "
                f"({len(self._gendered):,} found), and dialogues that name no group ({len(self._neutral):,} found)"
            )
        self._taught = self._gendered
        if taught != "all":
            replies = pa.array([responses[row] for row in self._gendered], pa.string())
            unbiased = ~BiasScorer(task.scorings).biased(replies, task.progress)
            if taught == "random":
                unbiased = np.random.default_rng(task.seed).permutation(unbiased)
            self._taught = self._gendered[unbiased]
        self.share_taught = len(self._taught) / len(self._gendered)
        if not len(self._taught):
            raise FairnessError(
                f"'{task.model.debiasing}' needs unbiased replies to messages that name one group; all of "
                f"{len(self._gendered):,} are offensive, clearly positive or negative, or hold an attribute word"
            )

    def gendered(self, random: np.random.Generator, size: int, *, again: bool = True) -> GenderedBatch:
        """A batch drawn from D(g); without `again` no dialogue is drawn twice, and no more than there are."""
        rows = random.choice(self._gendered, size if again else min(size, len(self._gendered)), replace=again)
        groups = torch.from_numpy(self._groups[rows]).to(self._device)
        return GenderedBatch(self._encoded.batch(rows, self._device), groups)

    def taught(self, random: np.random.Generator, size: int) -> Batch:
        """A batch drawn from the dialogues of D(g) whose replies are learnt."""
        return self._encoded.batch(random.choice(self._taught, size), self._device)

    def neutral(self, random: np.random.Generator, size: int) -> Batch:
        """A batch drawn from D(n)."""
        return self._encoded.batch(random.choice(self._neutral, size), self._device)


def _sides(task: Task, contexts: list[str]) -> list[str | None]:
    """The group that each context names: a, b, `both`; None if it names none."""
    swapper = Swapper(task.words, pronouns=task.pairs.pronouns)
    return [side for _, side in swapper.find_all(pa.array(contexts, pa.string()))]


def train_on(
    task: Task, settings: Continued, course: Callable[[Seq2Seq], Course], taught: Taught = "all"
) -> dict[str, Any]:
    """Continues the training of the base, also after a kill; tests fairness first and then every `every` iterations.

    It ends as `Continued` says. The model that passes is kept. If none passes, the tested model with the smallest sum
    of mean effect and harm is kept, except the base. A model whose answers are nearly all alike (`identical`) is kept
    only if all models are.

    Returns:
        Figures: iterations, updates of the kept model, the results of every test, what the kept model's test could
        detect, perplexity.

    Raises:
        FairnessError: no dialogues to train with, too few pairs to test, or a loss that is not a number.
    """
    assert task.model.seq2seq is not None
    longest = task.model.seq2seq.longest
    model, vocabulary = seq2seq.load(task.model, task.base)
    torch.manual_seed(task.seed)
    training = course(model)
    data = Dialogues(task, vocabulary, longest, model.output.weight.device, taught)
    test = FairnessTest(task, settings.pairs, settings.most // settings.every)
    contexts, responses = turns_of(task.dialogues, "valid")
    valid = EncodedDialogues.of_texts(contexts, responses, vocabulary, longest)
    neutral_rows = [i for i, side in enumerate(_sides(task, contexts)) if side is None] or list(range(len(contexts)))
    neutral = EncodedDialogues.of_texts(
        [contexts[i] for i in neutral_rows], [responses[i] for i in neutral_rows], vocabulary, longest
    )
    checkpoint = task.folder / _CHECKPOINT
    restored = load_training(checkpoint, training.modules, training.optimisers)
    best, state = (restored[0]["best"], State.restored(restored[1])) if restored else (weights_of(model), State())

    def look() -> None:
        nonlocal best
        tested = cast(Seq2Seq, training.averaged.module.eval())
        base = state.looks[0] if state.looks else None
        result, detectable = test.take(lambda contexts: seq2seq.answers(tested, vocabulary, contexts, longest), base)
        state.perplexities.append([perplexity(tested, held_out) for held_out in (valid, neutral)])
        tested.eval()
        random = np.random.default_rng([task.seed, state.iteration, 1])
        with torch.random.fork_rng():
            state.diagnoses.append(training.diagnose(data, random))
        if state.add(result):
            best, state.detectable = weights_of(tested), detectable
        save_training(checkpoint, training.modules, training.optimisers, {"best": best}, vars(state))

    if not state.looks:
        look()
    due, watches = Due(task.checkpoint_seconds), dict[str, Watch]()
    while not state.ended(settings):
        training.set_rate(state.iteration)
        for name, step in training.steps(data, np.random.default_rng([task.seed, state.iteration]), state.iteration):
            watch = watches.setdefault(name, Watch(f"loss of {name}", checkpoint))
            watch.add(step(), f"iteration {state.iteration + 1}")
        training.averaged.update_parameters(model)
        state.iteration += 1
        looks = state.iteration % settings.every == 0
        saves = not looks and due()
        if looks or saves:
            for watch in watches.values():
                watch.collect(f"iteration {state.iteration}")
        if looks:
            look()
        elif saves:
            save_training(checkpoint, training.modules, training.optimisers, {"best": best}, vars(state))
        report(
            task.progress,
            state.iteration,
            settings.most,
            f"{state.looks[state.best].open} of {test.measures} measures open",
        )
    model.load_state_dict(best)
    vocabulary.save(task.folder / VOCABULARY)
    kept = state.looks[state.best]
    figures = {
        "iterations": state.iteration,
        "kept_test": state.best,
        "kept_iteration": state.best * settings.every,
        "updates": state.best * settings.every * (settings.g_steps + settings.g_teach_steps),
        "share_taught": round(data.share_taught, 4),
        "measures_tested": test.measures,
        "held_out_pairs": test.pairs.num_rows,
        "base_open": state.looks[0].open,
        "base_effect": state.looks[0].effect,
        "kept_open": kept.open,
        "kept_effect": kept.effect,
        "kept_commonest": kept.commonest,
        "kept_harm": kept.harm,
        "kept_harmful": kept.harmful,
        "base_harmful": state.looks[0].harmful,
        "kept_passed": kept.passed,
        "effects_by_test": [entry.effect for entry in state.looks],
        "commonest_by_test": [entry.commonest for entry in state.looks],
        "harm_by_test": [entry.harm for entry in state.looks],
        "perplexity_by_test": [of_all for of_all, _ in state.perplexities],
        "neutral_perplexity_by_test": [of_neutral for _, of_neutral in state.perplexities],
        **{f"{name}_by_test": [diagnosis[name] for diagnosis in state.diagnoses] for name in state.diagnoses[0]},
        "detectable": state.detectable,
        "validation_perplexity": perplexity(model, valid),
    }
    with replacing(task.folder / Trainer.WEIGHTS) as path:
        save_file(best, path)
    checkpoint.unlink(missing_ok=True)
    return figures


@dataclass
class State:
    """The state of a training: iterations done, the result of every test (the first is the base's), and the best one.

    `perplexities` are, at each test, those of all held-out dialogues and of the ones that name no group.
    """

    iteration: int = 0
    looks: list[Look] = field(default_factory=list)
    best: int = 0
    detectable: dict[str, float] = field(default_factory=dict)
    perplexities: list[list[float]] = field(default_factory=list)
    diagnoses: list[dict[str, float]] = field(default_factory=list)

    @classmethod
    def restored(cls, position: dict[str, Any]) -> "State":
        """Returns the state that a checkpoint holds."""
        return cls(**{**position, "looks": [Look(*look) for look in position["looks"]]})

    def add(self, look: Look) -> bool:
        """Adds a test; returns whether its model is to be kept: the base is kept only until another one is tested."""
        self.looks.append(look)
        last = len(self.looks) - 1
        if last <= 1 or look.better_than(self.looks[self.best]):
            self.best = last
        return self.best == last

    def ended(self, settings: Continued) -> bool:
        """Whether training ends: enough is shown, or enough was tried."""
        if self.iteration < settings.least:
            return False
        last = len(self.looks) - 1
        stuck = last - self.best >= settings.patience
        return self.iteration >= settings.most or stuck or self.looks[last].passed
