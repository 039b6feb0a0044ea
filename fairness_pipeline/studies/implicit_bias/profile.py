"""The profile's section for this study: texts by authors of groups, classifiers, and how these are judged."""

from pathlib import Path
from typing import Annotated, Any

import pydantic

from fairness_pipeline.cli.given import check_free
from fairness_pipeline.corpora.classifiers.authored_corpus import AuthoredCorpus
from fairness_pipeline.corpora.classifiers.authored_texts import AuthoredShares, parts_of
from fairness_pipeline.debiasing.classifiers.registry import METHODS
from fairness_pipeline.explanation.settings import ExplainerSettings
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.yaml_files import Positive, Specification, load, read_yaml, validate
from fairness_pipeline.measures.classifiers.group_rates import RATES, GroupRatesSettings
from fairness_pipeline.models.classifiers.prediction_files import FORMS, OfClass
from fairness_pipeline.models.classifiers.specification import ClassifierSpecification
from fairness_pipeline.project.project import Project, changed, check_settings, find, merged, method_named
from fairness_pipeline.project.study import Part
from fairness_pipeline.workspace.imports import imported_files
from fairness_pipeline.workspace.lake import Key

NAME = "implicit_bias"


def _rate(text: str) -> str:
    try:
        parts_of(text)
    except FairnessError:
        raise ValueError("expected positive:negative texts of group a, both 1 or more, such as '4:1'") from None
    return text


Rate = Annotated[str, pydantic.AfterValidator(_rate)]


class ImplicitBias(Specification):
    """The section of a profile. Classifiers given to `audit`, and imported predictions, are added to its own."""

    corpora: Annotated[tuple[str, ...], pydantic.Field(min_length=1)]
    """Files of data/corpora. One with more than two classes is audited once for each against the rest."""
    classifiers: dict[str, dict[str, Any]] = {}
    """A classifier's key, and what the profile changes in its file."""
    splits: AuthoredShares = AuthoredShares()
    """Share of authors in each split."""
    maximum: Positive | None = None
    """The most texts of a label and group; by default the corpus decides."""
    balance_rate: Rate = "4:1"
    """Positive to negative texts of group a that classifiers are trained on; of group b the other way round."""
    balance_rates: tuple[Rate, ...] = ("4:1", "3:1", "2:1", "1:1", "1:2", "1:3", "1:4")
    """The balance rates of figure 4.2."""
    swept: str | None = None
    """The classifier that is trained at each balance rate; nothing is trained if left out."""
    explain: tuple[str, ...] = ()
    """The classifiers whose words are explained."""
    explainer: ExplainerSettings = ExplainerSettings()
    """How they are explained."""
    significance: GroupRatesSettings = GroupRatesSettings()
    """How rates are judged."""
    examples: Positive = 6
    """Texts whose words are highlighted, for each classifier that is explained."""


class ImplicitBiasPart(Part[ImplicitBias]):
    """The section with its files, read and checked.

    Raises:
        FairnessError: a corpus or a classifier that the profile names is missing or wrong.
    """

    subject = "classifier"
    project: Project

    def __init__(self, project: Project, settings: ImplicitBias) -> None:
        super().__init__(project, settings)
        self.corpora: dict[str, AuthoredCorpus] = {}
        self.folders: dict[str, Path] = {}
        self.classes: dict[str, tuple[str, ...]] = {}
        for key in settings.corpora:
            path = find("corpora", key, project.path, f"{NAME}.corpora")
            try:
                loaded = load(AuthoredCorpus, path)
                views = loaded.views(key)
            except FairnessError as error:
                raise error if str(path) in str(error) else FairnessError(f"{path}: {error}") from None
            self.corpora |= views
            self.folders |= dict.fromkeys(views, path.parent)
            self.classes |= dict.fromkeys(views, tuple(loaded.labels.classes))
        self.classifiers: dict[str, ClassifierSpecification] = {}
        for key in settings.classifiers:
            self._add(key)
        for file in sorted((project.workspace / "classifiers").glob("*.yaml")):
            check_free(file, self.classifiers, project.name)
            self.classifiers[file.stem] = load(ClassifierSpecification, file)
        self.predictions: dict[tuple[str, str], Path] = {}
        for key in self.corpora:
            for file in imported_files(project.workspace / "predictions" / key):
                self._add_predictions(key, file)
        for field, names in (("swept", [settings.swept] if settings.swept else []), ("explain", settings.explain)):
            for key in names:
                if key not in self.classifiers or not self.classifiers[key].trained:
                    trained = [name for name, classifier in self.classifiers.items() if classifier.trained]
                    raise FairnessError(
                        f"{project.path}: {NAME}.{field}: '{key}' is not a classifier trained here; trained here: "
                        f"{', '.join(trained) or 'none'}"
                    )
        self.subjects = self.classifiers
        swept = settings.balance_rates if settings.swept else ()
        self.rates = {rate.replace(":", "-"): rate for rate in dict.fromkeys([settings.balance_rate, *swept])}
        if any(classifier.trained for classifier in self.classifiers.values()) and not (
            settings.splits.train and settings.splits.valid
        ):
            raise FairnessError(
                f"{project.path}: {NAME}.splits: expected shares for 'train' and 'valid' above 0, as classifiers are "
                "trained here"
            )
        self.axes = {"corpus": list(self.corpora), "classifier": list(self.classifiers), "rate": list(self.rates)}

    # For the shared code

    @property
    def level(self) -> float:
        """The significance level of the tests."""
        return self.settings.significance.alpha

    def expected(self) -> list[Key]:
        """Every corpus with every classifier; an imported classifier needs predictions for the corpus."""
        keys = ({"corpus": corpus, "classifier": name} for corpus in self.corpora for name in self.classifiers)
        return [key for key in keys if self.predicts(key)]

    def implied(self, key: Key) -> Key:
        """A classifier is trained at one balance rate."""
        return {"rate": self.settings.balance_rate.replace(":", "-"), **key} if "classifier" in key else key

    def shared_with(self, key: Key) -> Key | None:
        """At the balance rate of all classifiers, the classifier of figure 4.2 is trained and explained already."""
        rate, swept = self.settings.balance_rate.replace(":", "-"), self.settings.swept
        is_known = key.get("rate") == rate and swept in self.settings.explain
        return {"corpus": key["corpus"], "classifier": swept} if swept and is_known else None

    def measures(self) -> list[str]:
        """The rates."""
        return list(RATES)

    @property
    def given(self) -> dict[str, Path]:
        """Imported predictions, and classifiers given to `audit`."""
        classifiers = sorted((self.project.workspace / "classifiers").glob("*.yaml"))
        imported = {name: path for (_, name), path in self.predictions.items()}
        return imported | {path.stem: path for path in classifiers}

    # For the study itself

    def predicts(self, key: Key) -> bool:
        """Whether there can be predictions: those of an imported classifier must have been imported."""
        imported = self.classifiers[key["classifier"]].architecture == "predictions"
        return not imported or (key["corpus"], key["classifier"]) in self.predictions

    def of_class(self, corpus: str) -> OfClass | None:
        """The class that a view of a corpus with several classes is about; None for two classes."""
        classes = self.classes[corpus]
        return OfClass(self.corpora[corpus].labels.names[0], classes) if classes else None

    def two_groups(self, key: Key) -> bool:
        """Whether a corpus has two groups, as the thesis knows them."""
        return len(self.corpora[key["corpus"]].groups.names) == 2

    def given_classifier(self, classifier: str) -> Path:
        """The path of the file of a classifier that was given to `audit`."""
        return self.project.workspace / "classifiers" / f"{classifier}.yaml"

    def prediction_file(self, corpus: str, classifier: str, form: str) -> Path:
        """The path of imported predictions."""
        return self.project.workspace / "predictions" / corpus / f"{classifier}{form}"

    def _add(self, key: str) -> None:
        """Reads a classifier, and its base before it."""
        if key in self.classifiers:
            return
        profile = self.project.path
        path, changes = find("classifiers", key, profile, f"{NAME}.classifiers"), self.settings.classifiers[key]
        declared = read_yaml(path)
        if declared.get("architecture") == "predictions":
            raise FairnessError(
                f"{path}: architecture: 'predictions' needs no file here: give them to fairness-pipeline import"
            )
        effective = merged(declared, changes)
        inherited: dict[str, Any] = {}
        if "base" in effective or "debiasing" in effective:
            method = method_named(METHODS, effective.get("debiasing"), profile if "debiasing" in changes else path)
            base = effective.get("base")
            if not isinstance(base, str) or base not in self.settings.classifiers:
                raise FairnessError(
                    f"{path}: base: '{base}' is no classifier of {profile}; '{key}' is made from it, so list both "
                    f"under '{NAME}.classifiers'; listed: {', '.join(self.settings.classifiers)}"
                )
            self._add(base)
            if self.classifiers[base].base:
                raise FairnessError(f"{path}: base: '{base}' is itself debiased; name its base instead")
            inherited = self.classifiers[base].model_dump(exclude_unset=True)
            under = (NAME, "classifiers", key)
            check_settings(method.settings, effective.get("settings"), declared, changes, path, profile, under)
        content = merged(inherited, declared)
        validate(ClassifierSpecification, content, path)
        self.classifiers[key] = changed(
            ClassifierSpecification, (NAME, "classifiers", key), content, changes, path, profile
        ).located(path.parent)

    def _add_predictions(self, corpus: str, file: Path) -> None:
        if file.suffix not in FORMS:
            return
        classifier = self.classifiers.setdefault(file.stem, ClassifierSpecification(architecture="predictions"))
        if classifier.architecture != "predictions":
            raise FairnessError(
                f"{file}: predictions of '{file.stem}' were imported, and the profile has a classifier of this name; "
                "rename the file"
            )
        self.predictions[corpus, file.stem] = file
