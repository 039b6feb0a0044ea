"""Debiasing methods by name; torch is imported only when one is used."""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from fairness_pipeline.debiasing.dialogue import settings
from fairness_pipeline.debiasing.settings import NoSettings
from fairness_pipeline.foundation.files import replacing
from fairness_pipeline.foundation.progress import Progress
from fairness_pipeline.foundation.threads import use_threads
from fairness_pipeline.foundation.yaml_files import Specification
from fairness_pipeline.lexicons.contexts import PairSettings
from fairness_pipeline.lexicons.dimensions import Groups, Words
from fairness_pipeline.measures.dialogue.measure import Scorings, SignificanceSettings
from fairness_pipeline.models.dialogue import registry
from fairness_pipeline.models.dialogue.specification import ModelSpecification
from fairness_pipeline.workspace.distinct import Scorer

PROJECTION = "projection.parquet"
"""The file of a disentanglement model's folder that figure 3.2 is drawn from."""


class Method(NamedTuple):
    """A method: its module (with `debias`), the architectures that it is defined on, its settings and other needs.

    `starts_from_base`: it takes the base's weights; `trains`: it needs to know how; `disentangles`: it needs an
    autoencoder; `measures`: the classifiers and attribute lists that measure responses decide what it makes; `tested`:
    so do the margins, and the share from which answers count as all alike; `answers`: its module has its own
    `responder`, and may lack `debias`, which then copies the base; `options`: what its `debias` is called with;
    `controls`: the methods that do the same without the remedy.
    """

    module: str
    architectures: tuple[str, ...]
    settings: type[Specification] = NoSettings
    starts_from_base: bool = False
    trains: bool = True
    disentangles: bool = False
    measures: bool = False
    tested: bool = False
    answers: bool = False
    options: Mapping[str, Any] = {}
    controls: tuple[str, ...] = ()


_DEBIASED_CHAT = Method(
    "debiased_chat",
    ("seq2seq",),
    settings.DebiasedChat,
    starts_from_base=True,
    disentangles=True,
    measures=True,
    tested=True,
    controls=("mle", "placebo"),
)
_CONTINUED = Method(
    "maximum_likelihood", ("seq2seq",), settings.Continued, starts_from_base=True, measures=True, tested=True
)
_CDA = Method("counterpart_data_augmentation", ("seq2seq", "retrieval", "causal_lm"))
METHODS = {
    "cda": _CDA._replace(controls=("duplication",)),
    # As many updates on as many dialogues. The double weight of those that name a group may widen a gap.
    "duplication": _CDA._replace(options={"swap": False}),
    "wer": Method(
        "word_embedding_regularization", ("seq2seq", "retrieval", "causal_lm"), settings.WordEmbeddingRegularization
    ),
    "debiased_chat": _DEBIASED_CHAT,
    # The same game with groups drawn at random: a model that is pushed also forgets what it answered to whom.
    "placebo": _DEBIASED_CHAT._replace(options={"shuffled": True}, controls=()),
    "mle": _CONTINUED,
    # The filter of Liu 2022 (3.2.2.1) as a method of its own, without an adversary.
    "filtered_training": _CONTINUED._replace(options={"taught": "unbiased"}, controls=("mle", "random_filter")),
    # As many replies left out, whichever they are.
    "random_filter": _CONTINUED._replace(options={"taught": "random"}),
    "dropout": Method("dropout", ("seq2seq", "retrieval", "causal_lm"), settings.Dropout),
    "leace": Method("leace", ("seq2seq", "retrieval"), settings.Erasure, starts_from_base=True, trains=False),
    "self_debias": Method(
        "self_debias", ("seq2seq", "causal_lm"), settings.SelfDebias, starts_from_base=True, trains=False, answers=True
    ),
    "prompt": Method(
        "prompt",
        ("endpoint", "causal_lm", "encoder_decoder"),
        settings.Prompt,
        starts_from_base=True,
        trains=False,
        answers=True,
    ),
    "filtered": Method("filtered_candidates", ("retrieval",), starts_from_base=True, measures=True),
}


@dataclass(frozen=True)
class Task:
    """The inputs of a method.

    `pairs` says how `words` are swapped, `scorings` which texts are biased (for a method that `measures`),
    `significance` which differences matter (for one that is `tested`); `max_identical_share` is the share of one answer
    from which nothing can be judged, `profile_seed` the seed of the audit's own swaps, `groups` are their names for
    messages. `base` is the folder of the model that is debiased, `disentanglement` that of the autoencoder (for a
    method that `disentangles`); `folder` is where the debiased model goes, in the form its architecture's responder
    reads.
    """

    model: ModelSpecification
    words: Words
    groups: Groups
    pairs: PairSettings
    scorings: Scorings
    significance: SignificanceSettings | None
    max_identical_share: float | None
    dialogues: pa.Table
    base: Path
    folder: Path
    seed: int
    profile_seed: int
    progress: Progress | None = None
    disentanglement: Path | None = None

    @property
    def checkpoint_seconds(self) -> float:
        """Seconds between two checkpoints."""
        assert self.model.training is not None
        return self.model.training.checkpoint_seconds


def method_of(model: ModelSpecification) -> Method | None:
    """The method of a debiased model; None for one that is not."""
    return METHODS[model.debiasing] if model.debiasing else None


def is_control(model: ModelSpecification) -> bool:
    """Whether a model is a control: its method is another method without the debiasing term."""
    return any(model.debiasing in method.controls for method in METHODS.values())


def settings_of(model: ModelSpecification) -> dict[str, Any]:
    """Returns the settings of a debiased model's method with defaults; those of algorithm 1 are named as in `mle`."""
    method = method_of(model)
    method_settings = method.settings.model_validate(model.settings or {}) if method else NoSettings()
    if isinstance(method_settings, settings.DebiasedChat):
        of_autoencoder = method_settings.disentanglement.model_dump().items()
        return {
            **method_settings.adversarial.model_dump(),
            **{f"disentanglement.{name}": value for name, value in of_autoencoder},
        }
    return method_settings.model_dump()


def debias(task: Task) -> dict[str, Any]:
    """Makes the debiased model in the task's folder, resuming earlier work; returns its figures."""
    method = method_of(task.model)
    assert method is not None
    use_threads(task.model.threads)
    figures: dict[str, Any] = getattr(_module(method), "debias", copy_base)(task, **method.options)
    return figures


def responder(model: ModelSpecification, folder: Path, work: Path, seed: int) -> Scorer:
    """Returns the responder of a model, debiased or not; the arguments are those of every architecture's."""
    method = method_of(model)
    if method is None or not method.answers:
        return registry.responder(model, folder, work, seed)
    use_threads(model.threads)
    made: Scorer = _module(method).responder(model, folder, work, seed)
    return made


def copy_base(task: Task) -> dict[str, Any]:
    """Copies the base's files to the task's folder, for a method that keeps its weights; returns no figures."""
    for file in sorted(task.base.iterdir()):
        with replacing(task.folder / file.name) as path:
            shutil.copyfile(file, path)
    return {}


def _module(method: Method) -> Any:
    return import_module(f"fairness_pipeline.debiasing.dialogue.{method.module}")
