"""A profile with everything it names, read and checked: what runs, with which settings, in which workspace."""

import os
import re
from collections.abc import Iterable, Mapping
from functools import cache, cached_property
from pathlib import Path
from typing import Any, TypeVar

import pydantic

from fairness_pipeline.engines.settings import EngineSettings
from fairness_pipeline.foundation import paths
from fairness_pipeline.foundation.errors import FairnessError, unknown
from fairness_pipeline.foundation.notifications import NotifySettings
from fairness_pipeline.foundation.yaml_files import Age, Positive, S, Specification, load, read_yaml, validate
from fairness_pipeline.lexicons.dimensions import Dimension
from fairness_pipeline.project.study import AnyPart, AnyStudy, studies
from fairness_pipeline.workspace.query_epochs import read_query_epochs

PROFILE = "FAIRNESS_PROFILE"
DEFAULT_PROFILE = "sample"


class RecordsSettings(Specification):
    """How much history is kept. The current content of the tables is always kept, whatever its age."""

    runs: Positive = 2000
    """How many of Dagster's newest runs are kept; the last run of each partition is kept in any case."""
    days: Positive = 90
    """For how many days they are kept."""
    history: Positive = 300
    """How many of the newest entries of `history/` are kept; of each study at least the last two."""


class EvidenceSettings(Specification):
    """Entries of an evidence pack that the pipeline cannot know."""

    purpose: str = ""
    """What the audited system is for."""
    responsible: str = ""
    """The person who is responsible for the audit."""
    data_period: str = ""
    """The period that the audited data are from."""


class Profile(Specification):
    """A file of `data/profiles`. It holds what its studies share, and a section for each study that the profile takes
    part in."""

    description: str
    """A description for readers of the reports."""
    seed: int
    """The seed of every draw."""
    dimensions: tuple[str, ...] = ()
    """The dimensions to audit; each has a file in data/dimensions. Studies without dimensions need none."""
    models: dict[str, dict[str, Any]] = {}
    """The key of each model, with the profile's changes to the model's file. The studies listed in the file's `studies`
    audit the model; if it lists none, all studies that can."""
    records: RecordsSettings = RecordsSettings()
    """How much history is kept."""
    max_answer_age: Age | None = None
    """Answers of endpoints and unpinned models that are older are stale, and queried again: `12h`, `7d`."""
    engine: EngineSettings = EngineSettings()
    """Where the work is done. It changes no result, so a change of it makes nothing stale."""
    owners: tuple[str, ...] = ()
    """Who owns the assets in Dagster: e-mail addresses, or `team:` and a name."""
    notify: NotifySettings | None = None
    """Who is notified of a verdict that changes and of a run that fails."""
    evidence: EvidenceSettings = EvidenceSettings()
    """Entries of an evidence pack that the pipeline cannot know."""

    @pydantic.field_validator("owners")
    @classmethod
    def _are_owners(cls, owners: tuple[str, ...]) -> tuple[str, ...]:
        for owner in owners:
            if not re.fullmatch(r"team:\S+|[^@\s]+@[^@\s]+\.[^@\s]+", owner):
                raise ValueError(f"expected an e-mail address, or `team:` and a name, found '{owner}'")
        return owners

    @pydantic.field_validator("dimensions")
    @classmethod
    def _each_once(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        return each_once(names) if names else names


def each_once(names: tuple[str, ...]) -> tuple[str, ...]:
    """Checks that no name of a profile is repeated; raises ValueError for pydantic otherwise."""
    if not names:
        raise ValueError("expected at least one, found none")
    doubled = [name for name in names if names.count(name) > 1]
    if doubled:
        raise ValueError(f"'{doubled[0]}' is listed twice; keep one")
    return names


def profile_of_environment() -> str:
    """The profile that `FAIRNESS_PROFILE` names; `sample` if it is not set."""
    return os.environ.get(PROFILE) or DEFAULT_PROFILE


class Project:
    """A profile with everything that it refers to.

    Attributes:
        parts: The profile's part of each study that it takes part in, by the study's name.

    Raises:
        FairnessError: the profile, or a file that it names, is missing or wrong.
    """

    def __init__(self, profile: str) -> None:
        self.name = profile
        self.path = find("profiles", profile)
        self.profile: Profile = validate(whole_profile(), _with_empty_sections(read_yaml(self.path)), self.path)
        self.dimensions = {
            key: load(Dimension, find("dimensions", key, self.path, "dimensions")) for key in self.profile.dimensions
        }
        self.parts: dict[str, AnyPart] = {}
        for study in self.studies:
            if "dimension" in study.axes and not self.profile.dimensions:
                raise FairnessError(
                    f"{self.path}: key 'dimensions' is missing: the study '{study.name}' compares the groups of some; "
                    "expected a list, such as [gender]"
                )
            self.parts[study.name] = study.part(self, getattr(self.profile, study.name))
        if not self.parts:
            raise FairnessError(f"{self.path}: expected a section for one study at least: {', '.join(_study_names())}")
        for key in self.profile.models:
            if not any(key in part.subjects for part in self.parts.values()):
                raise FairnessError(
                    f"{self.path}: models: '{key}' is audited by none of the profile's studies "
                    f"({', '.join(self.parts)}); name one in its file under 'studies', or leave it out here"
                )

    @property
    def studies(self) -> list[AnyStudy]:
        """The studies that the profile takes part in."""
        return [study for study in studies() if getattr(self.profile, study.name) is not None]

    def studies_of(self, subject: str) -> list[AnyStudy]:
        """The studies that audit a subject of this name."""
        return [study for study in self.studies if subject in self.parts[study.name].subjects]

    def named_studies(self, model: str, made: tuple[str, ...] = ()) -> tuple[str, ...] | None:
        """The studies that a model's file names, or else those that its base's file names; None if neither names any.

        `made` are the models that are made from it, directly or indirectly.

        Raises:
            FairnessError: the file does not exist, names an unknown study, or the model is made from itself.
        """
        path = find("models", model, self.path, "models")
        declared = {**read_yaml(path), **self.profile.models.get(model, {})}
        named, base = declared.get("studies"), declared.get("base")
        if base in made:
            raise FairnessError(f"{path}: base: {' -> '.join([*made, model, base])} goes in a circle")
        if named is None and isinstance(base, str) and base in self.profile.models and base != model:
            return self.named_studies(base, (*made, model))
        if named is not None and not (isinstance(named, list) and all(isinstance(name, str) for name in named)):
            raise FairnessError(f"{path}: studies: expected a list, such as [{_study_names()[0]}], found {named!r}")
        check_studies(tuple(named) if named is not None else None, path)
        return tuple(named) if named is not None else None

    def base_named(self, model: str, path: Path) -> str:
        """The model of the profile that a debiased one is made from.

        Raises:
            FairnessError: the file names no base, or one that the profile does not list.
        """
        models = self.profile.models
        base = merged(read_yaml(path), models[model]).get("base")
        path = self.path if "base" in models[model] else path
        if base is None:
            raise FairnessError(f"{path}: key 'base' is missing: the model that '{model}' is made from")
        if base == model:
            raise FairnessError(f"{path}: base: '{model}' cannot be made from itself; name another model")
        if not isinstance(base, str) or base not in models:
            if isinstance(base, str):
                find("models", base, path, "base")  # raises if the base exists nowhere
            raise FairnessError(
                f"{path}: base: '{base}' is no model of {self.path}; '{model}' is made from it, so list both under "
                f"'models'; listed: {', '.join(models)}"
            )
        return base

    @cached_property
    def workspace(self) -> Path:
        """The folder for everything that this profile makes."""
        return paths.workspace_folder(self.name)

    @cached_property
    def query_epochs(self) -> dict[tuple[str, str], str]:
        """The start of the current query epoch, by study and subject."""
        return read_query_epochs(self.workspace)


P = TypeVar("P", bound=AnyPart)
M = TypeVar("M")


def part_of(profile: str, study: str, kind: type[P]) -> P:
    """A study's part of a profile, in the study's own type.

    Raises:
        FairnessError: the profile does not take part in the study.
    """
    project = Project(profile)
    part = project.parts.get(study)
    if not isinstance(part, kind):
        raise FairnessError(f"profile '{profile}' has no section {study}; add one")
    return part


def check_known(key: str, known: Iterable[str], source: str, kind: str) -> None:
    """Checks that a key which a file names is one of a kind; raises FairnessError, which names the `source`."""
    if key not in known:
        raise FairnessError(f"{source}: '{key}' is none of {kind}: {', '.join(known)}")


def check_studies(names: tuple[str, ...] | None, path: Path) -> None:
    """Checks that the names under `studies` in a file are studies.

    Raises:
        FairnessError: names the file and the known studies.
    """
    for name in names or ():
        if name not in _study_names():
            raise FairnessError(f"{path}: studies: {unknown('study', name, _study_names())}")


def load_dimension(key: str) -> Dimension:
    """The dimension `key`; raises FairnessError if it does not exist or its file is wrong."""
    return load(Dimension, find("dimensions", key))


def changed(
    schema: type[S],
    under: tuple[str, ...],
    declared: dict[str, Any],
    changes: dict[str, Any],
    path: Path,
    profile: Path,
) -> S:
    """The content of a file with a profile's changes to it, which are `under` these keys of the profile.

    Raises:
        FairnessError: the result is not valid; names both files.
    """
    try:
        return validate(schema, merged(declared, changes), profile, under)
    except FairnessError as error:
        raise FairnessError(f"{error}\n  (in what {profile} changes of {path})") from None


def method_named(methods: Mapping[str, M], name: Any, path: Path) -> M:
    """The debiasing method that a file names; raises FairnessError, which names the file, if there is none."""
    if not isinstance(name, str) or name not in methods:
        raise FairnessError(f"{path}: debiasing: expected one of {', '.join(methods)}, found {name!r}")
    return methods[name]


def check_settings(
    schema: type[Specification],
    settings: dict[str, Any] | None,
    declared: dict[str, Any],
    changes: dict[str, Any],
    path: Path,
    profile: Path,
    under: tuple[str, ...],
) -> None:
    """Checks a method's `settings`, which a file declares and a profile may change `under` these of its keys.

    Raises:
        FairnessError: the settings are not valid; names the file's key, or the profile's if that changes the setting.
    """
    in_file = "settings" in declared and "settings" not in changes
    source, prefix = (path, ()) if in_file else (profile, under)
    validate(schema, settings or {}, source, under=(*prefix, "settings"))


def merged(base: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """`base` with `changes` applied; nested mappings are merged."""
    result = dict(base)
    for key, value in changes.items():
        result[key] = merged(base[key], value) if isinstance(value, dict) and isinstance(base.get(key), dict) else value
    return result


def find(kind: str, key: str, named_in: Path | None = None, field: str = "") -> Path:
    """The YAML file of `kind` (a data folder) with the stem `key`.

    Raises:
        FairnessError: there is none; names the file and field that ask for it, and the existing ones.
    """
    known = paths.yaml_files(kind)
    if key not in known:
        source = f"{named_in}: {field}: " if named_in else ""
        problem = unknown(kind.removesuffix("s").replace("corpora", "corpus"), key, known)
        folders = " or ".join(dict.fromkeys(map(str, paths.data_folders())))
        raise FairnessError(f"{source}{problem} (one YAML file each in {kind}/ of {folders})")
    return known[key]


def whole_profile() -> type[Profile]:
    """`Profile` with an optional section for each study."""
    return _with_sections(*_study_names())


@cache
def _with_sections(*_: str) -> type[Profile]:
    sections: dict[str, Any] = {
        study.name: (study.section | None, pydantic.Field(None, description=f"The study: {study.title.lower()}."))
        for study in studies()
    }
    return pydantic.create_model("WholeProfile", __base__=Profile, **sections)


def _with_empty_sections(content: dict[str, Any]) -> dict[str, Any]:
    """Replaces an empty section of a study by an empty mapping, so that the study runs with all defaults."""
    return {key: {} if value is None and key in _study_names() else value for key, value in content.items()}


def _study_names() -> list[str]:
    return [study.name for study in studies()]
