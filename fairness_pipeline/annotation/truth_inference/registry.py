"""Every truth inference method by name. A new one needs one file, an import in the package, and one entry here."""

import inspect
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import pydantic

from fairness_pipeline.annotation import truth_inference as kinds
from fairness_pipeline.annotation.truth_inference.base import Classifier, TruthInference
from fairness_pipeline.foundation.yaml_files import Specification

if TYPE_CHECKING:
    import pandas as pd


class Method(NamedTuple):
    """A method; its title in the papers' tables; whether it learns a classifier of the items itself; whether it models
    groups of annotators; whether it returns probabilities (not shares or scores); whether it infers one truth per
    item."""

    kind: type[TruthInference]
    title: str
    learns: bool = False
    of_groups: bool = False
    probabilistic: bool = True
    infers: bool = True


METHODS: dict[str, Method] = {
    "mv": Method(kinds.MajorityVote, "MV", probabilistic=False),
    "zencrowd": Method(kinds.ZenCrowd, "ZenCrowd"),
    "minimax": Method(kinds.Minimax, "Minimax"),
    "lfc_binary": Method(kinds.LFCBinary, "LFC-binary", learns=True),
    "catd": Method(kinds.CATD, "CATD", probabilistic=False),
    "pm_crh": Method(kinds.PMCRH, "PM-CRH", probabilistic=False),
    "kos": Method(kinds.KOS, "KOS", probabilistic=False),
    "vi_mf": Method(kinds.VIMF, "VI-MF"),
    "dawid_skene": Method(kinds.DawidSkene, "Dawid-Skene"),
    "glad": Method(kinds.GLAD, "GLAD"),
    "mace": Method(kinds.MACE, "MACE"),
    "soft_labels": Method(kinds.SoftLabels, "Soft labels", probabilistic=False, infers=False),
    "group_anno": Method(kinds.GroupAnno, "GroupAnno", learns=True, of_groups=True),
    "group_beta": Method(kinds.GroupBeta, "GroupBeta", of_groups=True),
}
"""In the order of table 5.5. Methods that the table lacks come before GroupAnno; the one that reports use is last."""

_CORPUS_ARGUMENTS = ("annotators", "classifier")
"""Arguments that come from the corpus, not from a profile."""


@cache
def settings_of(name: str) -> type[Specification]:
    """The settings of the method `name` in a profile: the arguments of its class that have a default."""
    parameters = inspect.signature(METHODS[name].kind.__init__).parameters.values()
    fields = {p.name: (p.annotation, p.default) for p in parameters if p.name not in ("self", *_CORPUS_ARGUMENTS)}
    fields = {key: field for key, field in fields.items() if field[1] is not inspect.Parameter.empty}
    model: type[Specification] = pydantic.create_model(  # type: ignore[call-overload]
        f"{METHODS[name].title}Settings", __base__=Specification, **fields
    )
    return model


def method(
    name: str, settings: Mapping[str, Any], annotators: "pd.DataFrame", classifier: Classifier | None = None
) -> TruthInference:
    """The method `name`, ready to fit.

    Args:
        name: One of `METHODS`.
        settings: Arguments that differ from the method's defaults.
        annotators: One row per worker, one column per category. Used by methods that model groups.
        classifier: A classifier of the items, for a method that `learns`.
    """
    kind = METHODS[name].kind
    parameters = inspect.signature(kind.__init__).parameters
    corpus_arguments = {"annotators": annotators, "classifier": classifier}
    arguments: dict[str, Any] = settings_of(name).model_validate(settings).model_dump(exclude_unset=True)
    return kind(**arguments, **{key: value for key, value in corpus_arguments.items() if key in parameters})
