"""Identifies what a verdict is about by hashes: of the model as loaded or asked, its answers, contexts and margins."""

from collections.abc import Iterator

from pydantic import BaseModel

from fairness_pipeline.foundation.inputs import canonical
from fairness_pipeline.lineage.lineage import Lineage
from fairness_pipeline.project.study import AnyStudy, Subject
from fairness_pipeline.project.thresholds import judging
from fairness_pipeline.workspace.lake import Card, Key, Lake, fingerprint

_FOLDER, _IMPORTED = "folder", ("imported", "file", "logprobs")
"""Keys of an asset's settings that hold the SHA-256 of a model's folder, and of imported files."""

_ROUND = "round"
"""The key of the query round, which does not identify the model."""
_DIGITS = 16


class Audited(BaseModel):
    """An audit, and the SHA-256 of each thing that its verdicts are about.

    Attributes:
        study: The study's name.
        key: The partition of its verdicts.
        sha256: By kind: `model` (all that decides its answers, and libraries' versions), `weights` (its folder)
            or `file` (what is kept of imported answers), `answers`, `contexts` (or whatever else it was asked with),
            `margins` (with levels and thresholds).
    """

    study: str
    key: Key
    sha256: dict[str, str]

    @property
    def name(self) -> str:
        """The partition, for readers."""
        return " × ".join(self.key.values())

    @property
    def line(self) -> str:
        """The beginning of each hash."""
        return f"{self.name}: " + ", ".join(f"{kind} {sha256[:_DIGITS]}" for kind, sha256 in self.sha256.items())


def audited_by(lineage: Lineage, lake: Lake, study: AnyStudy, key: Key) -> Audited:
    """Returns the hashes of what the verdicts of a partition are about, from the cards of their inputs."""
    part = lineage.project.parts[study.name]
    hashes: dict[str, str] = {}
    for asked_key in lineage.upstream_keys(key, study.asked):
        hashes |= _hashes(lineage, lake, study, asked_key)
    margins = {setting: canonical(value) for setting, value in judging(part.settings, part.thresholds).items()}
    return Audited(study=study.name, key=key, sha256={**hashes, "margins": fingerprint(margins)})


def _hashes(lineage: Lineage, lake: Lake, study: AnyStudy, key: Key) -> Iterator[tuple[str, str]]:
    card = lake.card(study.asked, key)
    if card is None:
        return
    settings = card.inputs["settings"]
    file = next((settings[name] for name in _IMPORTED if settings.get(name)), None)
    if file:
        yield "file", file
    else:
        yield "model", fingerprint({name: value for name, value in settings.items() if name not in (_FOLDER, _ROUND)})
    if settings.get(_FOLDER):
        yield "weights", settings[_FOLDER]
    elif (trained := _upstream(lineage, card, "checkpoint")) and _is_trained(lineage.subject(study.asked, key)):
        yield "weights", _combined(trained)
    yield "answers", card.content
    if contexts := _upstream(lineage, card, "table"):
        yield "contexts", _combined(contexts)


def _upstream(lineage: Lineage, card: Card, kind: str) -> list[str]:
    """Returns the content hashes of a partition's inputs of one kind of asset."""
    contents = card.inputs["upstream"].items()
    kinds = {name: asset.kind for name, asset in lineage.assets.items()}  # an older card may name other assets
    return [content for source, content in contents if content and kinds.get(source.partition("/")[0]) == kind]


def _is_trained(subject: Subject) -> bool:
    """Whether a subject was trained or debiased here; the checkpoint of any other only says where it was found."""
    return any(getattr(subject, name, None) for name in ("trained", "debiasing", "gpt2"))


def _combined(contents: list[str]) -> str:
    return contents[0] if len(contents) == 1 else fingerprint({"contents": contents})
