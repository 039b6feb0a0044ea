"""The models: plain ones, and those debiased for a dimension (Liu et al. 2020, section 4; Liu 2022, chapter 3)."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from fairness_pipeline.corpora.dialogue.dialogues import SCHEMA
from fairness_pipeline.debiasing.dialogue.registry import PROJECTION, Task, debias, method_of
from fairness_pipeline.foundation.inputs import DataFile, File, optional, unhashed
from fairness_pipeline.foundation.libraries import library_versions
from fairness_pipeline.foundation.parquet import read_parquet
from fairness_pipeline.lexicons import dictionary, lemmas, stop_words
from fairness_pipeline.lexicons.contexts import PairSettings
from fairness_pipeline.lexicons.dimensions import ExchangedWords, Groups, Pronouns, WordPair
from fairness_pipeline.lexicons.senses import CLASSES, Senses
from fairness_pipeline.lexicons.swapping import PronounRule
from fairness_pipeline.lineage.assets import Assets, Glance, Result, of_base, of_shared, one_of
from fairness_pipeline.lineage.run import Run
from fairness_pipeline.measures.dialogue.measure import Scorings, SignificanceSettings
from fairness_pipeline.measures.dialogue.registry import harmful, marking, scorings
from fairness_pipeline.models.dialogue import registry
from fairness_pipeline.models.dialogue.specification import ModelSpecification
from fairness_pipeline.models.folders import model_folder
from fairness_pipeline.models.specification import Decoding
from fairness_pipeline.studies.dialogue_fairness.lineage.corpora import DIALOGUES
from fairness_pipeline.studies.dialogue_fairness.models import NAME
from fairness_pipeline.studies.dialogue_fairness.plots import projection_plot
from fairness_pipeline.studies.dialogue_fairness.profile import DialoguePart
from fairness_pipeline.studies.dialogue_fairness.study import STUDY
from fairness_pipeline.workspace.lake import Key

asset = Assets(DialoguePart, stage="models")


@dataclass(frozen=True, kw_only=True)
class Model:
    """A model, the folder of its weights if it has one, the query epoch of a model that may change, the libraries that
    run it, and the number format of its training if it is queried in another one.

    The names and the nesting of the fields are part of the fingerprint of every training: renaming one trains anew.
    """

    model: ModelSpecification
    folder: File | None
    round: str | None
    versions: Mapping[str, str]
    trained_in: str | None = optional()
    max_tokens: int | None = optional()


def model_of(part: DialoguePart, key: Key) -> Model:
    """A model, with what its training or download depends on."""
    model = part.models[key["model"]]
    source, max_tokens = model.huggingface, model.decoding.max_tokens
    return Model(
        model=model.without("studies", "published_as", "dimensions", "seeds"),
        folder=model_folder(source.name) if source else None,
        round=part.project.query_epochs.get((NAME, key["model"])),
        versions=library_versions(*model.libraries),
        trained_in="float32" if source and model.training and source.dtype != "float32" else None,
        # Fine-tuning cuts its answers there. The default is not hashed, so that older fingerprints hold.
        max_tokens=max_tokens if source and model.training and max_tokens != Decoding().max_tokens else None,
    )


@asset(
    kind="checkpoint",
    axes=("model",),
    covers=lambda part, key: part.models[key["model"]].debiasing is None,
    inputs=model_of,
    reads={"dialogues": one_of(*DIALOGUES)},
    code_version="1",
)
def dialogue_models(inputs: Model, dialogues: pa.Table, run: Run) -> Result:
    """Dialogue models before debiasing (Liu et al. 2020, section 3.1): trained here, or found by id, folder or address.

    Training that was killed goes on where it stopped.
    """
    texts = dialogues if inputs.model.trained else SCHEMA.empty_table()
    return Result(run.folder, registry.prepare(inputs.model, texts, run.folder, run.seed, run.progress))


@dataclass(frozen=True, kw_only=True)
class Debiasing(Model):
    """A model that is debiased, the words of its dimension, and what counts as biased.

    `pronouns` are the rule, the pronouns that the list lacks, and the index of nouns if they are used. The settings of
    the fairness test that ends training are None for a method without such a test.
    """

    pairs: tuple[WordPair, ...]
    pronouns: tuple[PronounRule | Pronouns | str | None, ...]
    articles: str
    bias: Scorings | None
    senses: Senses | None = optional()
    files: tuple[DataFile, ...] | None = optional()
    significance: SignificanceSettings | None = optional()
    alike: float | None = optional()
    harmful: tuple[str, ...] | None = optional()
    nouns: tuple[DataFile, ...] = unhashed(())  # their hash is in `pronouns`
    groups: Groups = unhashed()  # for messages

    @property
    def words(self) -> ExchangedWords:
        """The words that are exchanged."""
        rule, extra = self.pronouns[:2]
        assert extra is None or isinstance(extra, Pronouns)
        listed = len(extra.pairs) if extra and rule == "extended" else 0
        return ExchangedWords(self.pairs[: len(self.pairs) - listed], extra, (), self.senses, self.files or ())

    def task(self, dialogues: pa.Table, base: Path, run: Run, disentanglement: Path | None = None) -> Task:
        """The task of a debiasing method."""
        rule: Any = self.pronouns[0]
        settings = {"pronouns": rule, "articles": self.articles, "senses": "rules" if self.senses else "list"}
        return Task(
            model=self.model,
            words=self.words,
            groups=self.groups,
            pairs=PairSettings(**settings),
            scorings=self.bias or {},
            significance=self.significance,
            max_identical_share=self.alike,
            dialogues=dialogues,
            base=base,
            folder=run.folder,
            seed=run.seed,
            profile_seed=run.profile_seed,
            progress=run.progress,
            disentanglement=disentanglement,
        )


def _with_words(part: DialoguePart, key: Key) -> dict[str, Any]:
    """A model, the words of its dimension, and the scorers that its method reads."""
    method, settings = method_of(part.models[key["model"]]), part.settings
    dimension, rule = part.dimensions[key["dimension"]], settings.pairs.pronouns
    extended = rule == "extended"
    return {
        **vars(model_of(part, key)),
        "pairs": dimension.all_pairs(rule),
        "pronouns": (rule, dimension.pronouns, *([lemmas.version()] if extended else ())),
        "bias": scorings(marking(), settings.measures, dimension) if method and method.measures else None,
        "nouns": lemmas.files() if extended else (),
        "groups": dimension.groups,
    }


def _debiasing(part: DialoguePart, key: Key) -> Debiasing:
    method, settings = method_of(part.models[key["model"]]), part.settings
    dimension = part.dimensions[key["dimension"]]
    senses = dimension.senses if method and method.tested and settings.pairs.senses == "rules" else None
    tested: dict[str, Any] = (
        {
            "senses": senses,
            "files": tuple(map(DataFile.of, (CLASSES, *dictionary.FILES))) if senses else None,
            "significance": settings.significance,
            "alike": settings.max_identical_share,
            "harmful": tuple(harmful()),
        }
        if method and method.tested
        else {}
    )
    return Debiasing(**_with_words(part, key), articles=settings.pairs.articles, **tested)


def is_debiased(part: DialoguePart, key: Key) -> bool:
    """Whether a partition belongs to a debiased model that answers in it."""
    return part.answers(key) and part.models[key["model"]].debiasing is not None


def _disentangles(part: DialoguePart, key: Key) -> bool:
    method = method_of(part.models[key["model"]])
    return bool(method and method.disentangles and part.answers(key) and part.shared_with(key) == key)


def _features(part: DialoguePart, key: Key, result: Result) -> Glance:
    points = read_parquet(Path(result.content) / PROJECTION)
    return Glance(pictures={"features": projection_plot(points, STUDY.groups(part, key))})


@dataclass(frozen=True, kw_only=True)
class Disentangling(Debiasing):
    """A model's autoencoder, the words of its dimension, and the stop words."""

    stop_words: tuple[DataFile, ...]


def _disentangling(part: DialoguePart, key: Key) -> Disentangling:
    autoencoder = {"model": part.autoencoder_of(key["model"]), "max_tokens": None}
    return Disentangling(
        **{**_with_words(part, key), **autoencoder},
        articles="adapt",  # no text is exchanged
        stop_words=(DataFile.of(stop_words.FILE),),
    )


@asset(
    kind="checkpoint",
    axes=("dimension", "model"),
    covers=_disentangles,
    inputs=_disentangling,
    reads={"dialogues": one_of(*DIALOGUES), "base": of_base(dialogue_models)},
    code_version="1",
    show=_features,
)
def disentanglement(inputs: Disentangling, dialogues: pa.Table, base: Path, run: Run) -> Result:
    """Debiased-Chat's autoencoder, its corpus of unbiased utterances, and what its features give away (Liu 2022, 3.2).

    There is one per base and dimension: its words are those of the dialogue model that it will judge. Debiased models
    of one base with the same settings of the autoencoder share it; so does the placebo.
    """
    from fairness_pipeline.debiasing.dialogue import disentanglement as autoencoder

    return Result(run.folder, autoencoder.train(inputs.task(dialogues, base, run)))


@asset(
    kind="checkpoint",
    axes=("dimension", "model"),
    covers=is_debiased,
    inputs=_debiasing,
    reads={
        "dialogues": one_of(*DIALOGUES),
        "base": of_base(dialogue_models),
        "autoencoder": of_shared(disentanglement),
    },
    code_version="4",
)
def debiased_dialogue_models(
    inputs: Debiasing, dialogues: pa.Table, base: Path, autoencoder: Path | None, run: Run
) -> Result:
    """Models debiased for a dimension by a method of `debiasing/` (Liu et al. 2020, section 4; Liu 2022, chapter 3).

    Training that was killed goes on where it stopped.
    """
    return Result(run.folder, debias(inputs.task(dialogues, base, run, autoencoder)))
