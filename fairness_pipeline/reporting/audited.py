"""What a verdict is about, by hashes: the model as it was loaded or asked, its answers, their contexts, the margins."""

from collections.abc import Iterator

from pydantic import BaseModel

from fairness_pipeline.foundation.inputs import canonical
from fairness_pipeline.lineage.lineage import Lineage
from fairness_pipeline.project.study import AnyStudy, Subject
from fairness_pipeline.project.thresholds import judging
from fairness_pipeline.workspace.lake import Card, Key, Lake, fingerprint

_FOLDER, _IMPORTED = "folder", ("imported", "file", "logprobs")
"""Keys of what an asset is made from whose values are the SHA-256 of a model's folder, and of imported files."""

_ROUND = "round"
"""When it was asked, which says nothing of the model."""
_BEGINNING = 16


class Audited(BaseModel):
    """An audit, and the SHA-256 of each thing that its verdicts are about.

    Attributes:
        study: Whose.
        key: The partition of its verdicts.
        sha256: By what it is: `model` (all that decides its answers, and libraries' versions), `weights` (its folder)
            or `file` (what is kept of imported answers), `answers`, `contexts` (or whatever else it was asked with),
            `margins` (with levels and thresholds).
    """

    study: str
    key: Key
    sha256: dict[str, str]

    @property
    def name(self) -> str:
        """The partition for a reader."""
        return " × ".join(self.key.values())

    @property
    def line(self) -> str:
        """The beginning of each hash."""
        return f"{self.name}: " + ", ".join(f"{kind} {sha256[:_BEGINNING]}" for kind, sha256 in self.sha256.items())


def audited_by(lineage: Lineage, lake: Lake, study: AnyStudy, key: Key) -> Audited:
    """What the verdicts of a partition are about, as the cards of what they were made from say.

    Args:
        lineage: The profile's lineage.
        lake: Its lake.
        study: Whose verdicts.
        key: Their partition.
    """
    part = lineage.project.parts[study.name]
    hashes: dict[str, str] = {}
    for asked in lineage.upstream_keys(key, study.asked):
        hashes |= _asked(lineage, lake, study, asked)
    margins = {place: canonical(value) for place, value in judging(part.settings, part.thresholds).items()}
    return Audited(study=study.name, key=key, sha256={**hashes, "margins": fingerprint(margins)})


def _asked(lineage: Lineage, lake: Lake, study: AnyStudy, key: Key) -> Iterator[tuple[str, str]]:
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
        yield "weights", _together(trained)
    yield "answers", card.content
    if contexts := _upstream(lineage, card, "table"):
        yield "contexts", _together(contexts)


def _upstream(lineage: Lineage, card: Card, kind: str) -> list[str]:
    """The contents of what a partition was made from, of one kind of asset."""
    contents = card.inputs["upstream"].items()
    kinds = {name: asset.kind for name, asset in lineage.assets.items()}  # an older card may name others
    return [content for place, content in contents if content and kinds.get(place.partition("/")[0]) == kind]


def _is_trained(subject: Subject) -> bool:
    """Whether a subject was trained or debiased here: the checkpoint of another one says where it was found."""
    return any(getattr(subject, name, None) for name in ("trained", "debiasing", "gpt2"))


def _together(contents: list[str]) -> str:
    return contents[0] if len(contents) == 1 else fingerprint({"contents": contents})
