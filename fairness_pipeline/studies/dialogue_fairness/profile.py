"""The profile's section for this study: corpora, dialogue models, their debiasing, and how answers are judged."""

from collections.abc import Collection
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import pydantic

from fairness_pipeline.corpora.dialogue.dialogues import Splits
from fairness_pipeline.corpora.dialogue.planting import PlantedBias
from fairness_pipeline.corpora.specification import CorpusSpecification
from fairness_pipeline.debiasing.dialogue.registry import method_of, settings_of
from fairness_pipeline.foundation.errors import FairnessError, unknown
from fairness_pipeline.foundation.files import replacing
from fairness_pipeline.foundation.yaml_files import Positive, Specification, load
from fairness_pipeline.lexicons.contexts import PairSettings
from fairness_pipeline.measures.dialogue import answer_changes, distinguishable, naming
from fairness_pipeline.measures.dialogue.measure import MARGINS, MASKED, SignificanceSettings
from fairness_pipeline.measures.dialogue.registry import measures
from fairness_pipeline.measures.dialogue.settings import MeasureSettings
from fairness_pipeline.models.dialogue.specification import ModelSpecification, Seq2SeqSizes
from fairness_pipeline.models.specification import TrainingSettings
from fairness_pipeline.project.project import Project, check_known, each_once, find
from fairness_pipeline.project.study import Part
from fairness_pipeline.studies.dialogue_fairness.controls import Controls
from fairness_pipeline.studies.dialogue_fairness.models import (
    NAME,
    answers_in,
    dialogue_models,
    first_seed,
    is_seed,
    seed_name,
)
from fairness_pipeline.workspace.imports import is_imported
from fairness_pipeline.workspace.lake import Key


class DialogueFairness(Specification):
    """The section of a profile. Imported responses and models given to `audit` are added to its models."""

    renamed = {"alike": "max_identical_share"}

    corpora: Annotated[tuple[str, ...], pydantic.AfterValidator(each_once)]
    """The corpora whose contexts are asked; one file each in data/corpora."""
    debias: tuple[str, ...] | None = None
    """Dimensions in which debiased models are made by default; all dimensions if left out."""
    on_request: tuple[str, ...] = ()
    """Models that are made only on request."""
    splits: Splits = Splits(train=0, valid=0, test=0, audit=1)
    """The shares of each corpus's threads in the splits."""
    planted: dict[str, PlantedBias] = {}
    """By corpus: a bias that is planted in its splits `train` and `valid`, as a positive control."""
    pairs: PairSettings = PairSettings()
    """How context pairs are made."""
    measures: MeasureSettings = MeasureSettings()
    """How answers are scored."""
    significance: SignificanceSettings = SignificanceSettings()
    """How differences are judged."""
    max_identical_share: Annotated[float, pydantic.Field(gt=0, le=1)] = 0.75
    """From this share of identical answers on, a model is not judged and passes no fairness test."""
    examples: Positive = 8
    """Pairs of answers shown for each audit."""


class Source(NamedTuple):
    """A corpus's specification, and the folder that its relative paths start from."""

    specification: CorpusSpecification
    folder: Path


class DialoguePart(Part[DialogueFairness]):
    """The section, resolved.

    Raises:
        FairnessError: a corpus or a model that the profile names is missing or wrong.
    """

    subject = "model"
    project: Project

    def __init__(self, project: Project, settings: DialogueFairness) -> None:
        path = project.path
        super().__init__(project, settings.model_copy(update={"measures": settings.measures.located(path.parent)}))
        if self.asked_pairs().exists():  # `audit --pairs` overrides the profile
            pairs = self.settings.pairs.model_copy(update={"maximum": int(self.asked_pairs().read_text("utf-8"))})
            self.settings = self.settings.model_copy(update={"pairs": pairs})
        settings = self.settings
        self.corpora = {key: _corpus(find("corpora", key, path, f"{NAME}.corpora")) for key in settings.corpora}
        self.dimensions = project.dimensions
        self.models = dialogue_models(project, self.corpora)
        self.controls = Controls(self.models)
        self.subjects = self.models
        self.axes = {
            "corpus": list(self.corpora), "dimension": list(self.dimensions), "model": list(self.models)
        }  # fmt: skip
        self._check_names()

    def _check_names(self) -> None:
        path, settings = self.project.path, self.settings
        for key in settings.debias or ():
            check_known(key, self.dimensions, f"{path}: {NAME}.debias", "the profile's dimensions")
        for key in settings.on_request:
            check_known(key, self.models, f"{path}: {NAME}.on_request", "the study's models")
        for key, bias in settings.planted.items():
            check_known(key, self.corpora, f"{path}: {NAME}.planted", "the profile's corpora")
            if self.corpora[key].specification.contexts:
                raise FairnessError(f"{path}: {NAME}.planted: corpus '{key}' has no responses to exchange")
            if not (settings.splits.train or settings.splits.valid):
                raise FairnessError(f"{path}: {NAME}.planted: nothing to plant in: splits.train and splits.valid are 0")
            source = f"{path}: {NAME}.planted.{key}.dimension"
            check_known(bias.dimension, self.dimensions, source, "the profile's dimensions")
        known = [n for n in self.measures() if n not in distinguishable.OUTCOMES | naming.OUTCOMES]  # without margin
        for margin in settings.significance.margins:
            if margin not in (*MARGINS, *known):
                problem = unknown("measure", margin, (*MARGINS, *known))
                raise FairnessError(f"{path}: {NAME}.significance.margins: {problem}")
        for measure in measures(settings.measures.further):
            for name in {name for dimension in self.dimensions.values() for name in measure.names(dimension)}:
                try:
                    settings.significance.margin(name, measure.kind(name))
                except FairnessError as error:
                    raise FairnessError(f"{path}: {NAME}.significance.{error}") from None
        for key, model in self.models.items():
            if model.corpus not in self.corpora:
                raise FairnessError(
                    f"{path}: model '{key}' belongs to corpus '{model.corpus}', which the profile does not list; "
                    f"its corpora: {', '.join(self.corpora)}"
                )
            if model.trained and self.corpora[model.corpus].specification.contexts:
                raise FairnessError(
                    f"{path}: model '{key}' is trained, and its corpus '{model.corpus}' has no responses, so nothing "
                    "can be trained on it; give it another corpus"
                )
            for dimension in self.dimensions:
                for method in self.controls.methods(key):
                    self.controls.check(key, method, dimension, path)

    # For the shared code

    @property
    def level(self) -> float:
        """The significance level of its tests."""
        return self.settings.significance.alpha

    def expected(self) -> list[Key]:
        """Every dimension with each model that answers in it."""
        return [
            {"dimension": dimension, "model": model}
            for dimension in self.dimensions
            for model in self.models
            if answers_in(self.models[model], dimension)
        ]

    def by_default(self, key: Key, named: Collection[str] = ()) -> bool:
        """Whether a partition is made by default.

        Debiased models are made only in the dimensions of `debias` or a named one, `on_request` models only if they are
        named, and imported models only in the imported dimensions.
        """
        if {"model", "dimension"} <= key.keys() and not self.answers(key):
            return False
        if "model" in key and first_seed(key["model"]) in self.settings.on_request and "model" not in named:
            return False
        debias = self.settings.debias
        in_dimension = debias is None or "dimension" not in key or key["dimension"] in debias or "dimension" in named
        return in_dimension or not self.base_of(key)

    def implied(self, key: Key) -> Key:
        """A key, extended by its model's corpus."""
        return {"corpus": self.models[key["model"]].corpus, **key} if "model" in key else key

    def measures(self) -> list[str]:
        """The row names of every measure, in all dimensions."""
        names = [
            n for d in self.dimensions.values() for m in measures(self.settings.measures.further) for n in m.names(d)
        ]
        return list(dict.fromkeys([*distinguishable.OUTCOMES, *names, *answer_changes.OUTCOMES, *naming.OUTCOMES]))

    def readings(self) -> list[str]:
        """The masked readings of the measures that score single responses."""
        single = [m for m in measures() if m.scorer and m.has_neutral_reading]
        return list(dict.fromkeys(n + MASKED for d in self.dimensions.values() for m in single for n in m.names(d)))

    def trained_as(self, model: str) -> str:
        """The asset that holds a model."""
        return "debiased_dialogue_models" if self.models[model].debiasing else "dialogue_models"

    @property
    def given(self) -> dict[str, Path]:
        """Imported responses, and models given to `audit`."""
        imports = [path for path in (self.project.workspace / "imports").glob("*") if path.is_dir()]
        models = sorted((self.project.workspace / "models").glob("*.yaml"))
        return {path.name: path for path in sorted(imports)} | {path.stem: path for path in models}

    def seeds_of(self, key: Key) -> list[Key]:
        """The model itself, then `<model>.seed2` and so on; empty for a model with one seed."""
        count = self.models[key["model"]].seeds if "model" in key and not is_seed(key["model"]) else 1
        numbers = range(1, count + 1) if count > 1 else ()
        return [{**key, "model": seed_name(key["model"], number)} for number in numbers]

    def baselines_of(self, key: Key) -> list[Key]:
        """Every seed of a debiased model's base and of its controls."""
        baselines = [self.base_of(key), *self.controls.of(key).values()]
        return [seed for baseline in baselines if baseline for seed in self.seeds_of(baseline) or [baseline]]

    def shared_with(self, key: Key) -> Key:
        """The first model that needs the same autoencoder: with the same base, device and settings."""
        autoencoder = self._autoencoder(key["model"])
        shared = (
            name
            for name in self.models
            if autoencoder and self._autoencoder(name) == autoencoder and self.answers({**key, "model": name})
        )
        return {**key, "model": next(shared, key["model"])}

    def _autoencoder(self, name: str) -> tuple[object, ...] | None:
        """What the training of a model's autoencoder depends on; None for a model without one."""
        model = self.models[name]
        method = method_of(model)
        if method is None or not method.disentangles:
            return None
        settings = settings_of(model)
        chosen = tuple((key, settings[key]) for key in settings if key.startswith("disentanglement."))
        return model.base, model.device, chosen

    # For the study itself

    def autoencoder_of(self, model: str) -> ModelSpecification:
        """The part of a model's specification that the training of its autoencoder depends on."""
        specification = self.models[model]
        assert specification.seq2seq and specification.training
        settings = {"disentanglement": (specification.settings or {}).get("disentanglement") or {}}
        kept = {"architecture", "corpus", "device", "threads"}
        sizes = specification.seq2seq.without(*{*Seq2SeqSizes.model_fields} - {"longest"})
        training = specification.training.without(*{*TrainingSettings.model_fields} - {"checkpoint_seconds"})
        narrow = specification.without(*{*ModelSpecification.model_fields} - kept)
        return narrow.model_copy(update={"settings": settings, "seq2seq": sizes, "training": training})

    def asked_pairs(self) -> Path:
        """The file with the number of pairs that `audit --pairs` asked for."""
        return self.project.workspace / "pairs.txt"

    def ask_pairs(self, pairs: int) -> None:
        """Stores the number of context pairs per dimension for all later runs."""
        path = self.asked_pairs()
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as temporary:
            temporary.write_text(f"{pairs}\n", encoding="utf-8")

    def pairing(self, corpus: str) -> dict[str, Any]:
        """How a corpus's contexts are exchanged. Contexts made of frames and persons always follow the rules of sense,
        and name the groups in further ways."""
        written = self.corpora[corpus].specification.contexts is not None
        overrides = {"senses": "rules"} if written else {}
        return {**self.settings.pairs.model_dump(exclude={"no_effect"}), **overrides, "further": written}

    def dialogues_of(self, corpus: str) -> str:
        """The dialogue table of a corpus's platform."""
        return f"{self.corpora[corpus].specification.platform}_dialogues"

    def pairs_of(self, key: Key) -> Key:
        """The partition of the context pairs that a model answers."""
        return {"corpus": self.models[key["model"]].corpus, "dimension": key["dimension"]}

    def answers(self, key: Key) -> bool:
        """Whether a model can have responses in a dimension; an imported model has only those that were imported."""
        if self.models[key["model"]].architecture == "imported":
            return is_imported(self.imported_responses(key["model"], key["dimension"]))
        return answers_in(self.models[key["model"]], key["dimension"])

    def imported_responses(self, model: str, dimension: str) -> Path:
        """The file of a model's imported responses."""
        return self.project.workspace / "imports" / model / f"{dimension}.parquet"

    def given_model(self, model: str) -> Path:
        """The file of a model that was given to `audit`."""
        return self.project.workspace / "models" / f"{model}.yaml"


def _corpus(path: Path) -> Source:
    return Source(load(CorpusSpecification, path), path.parent)
