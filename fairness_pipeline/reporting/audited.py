"""What a verdict is about, by hashes: the model as it was loaded or asked, its answers, their contexts, the margins."""

from collections.abc import Iterator

from pydantic import BaseModel

from fairness_pipeline.foundation.inputs import canonical
from fairness_pipeline.lineage.lineage import Lineage
from fairness_pipeline.project.study import AnyStudy
from fairness_pipeline.project.thresholds import thresholds
from fairness_pipeline.workspace.lake import Key, Lake, fingerprint

_FILES = {"folder": "weights", "imported": "file", "file": "file", "logprobs": "file"}
"""Keys of what an asset is made from whose values are the SHA-256 of files, and what these are to a reader."""

_ROUND = "round"
"""When it was asked, which says nothing of the model."""
_BEGINNING = 16


class Audited(BaseModel):
    """An audit, and the SHA-256 of each thing that its verdicts are about.

    Attributes:
        study: Whose.
        key: The partition of its verdicts.
        sha256: By what it is: `model` (all that decides its answers, and libraries' versions), `weights` (its folder)
            or `file` (imported answers), `answers`, `contexts` (or whatever else it was asked with), `margins` (and the
            level).
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
        return f"{self.name}: " + ", ".join(f"{what} {sha256[:_BEGINNING]}" for what, sha256 in self.sha256.items())


def audited_by(lineage: Lineage, lake: Lake, study: AnyStudy, key: Key) -> Audited:
    """What the verdicts of a partition are about, as the cards of what they were made from say.

    Args:
        lineage: The profile's lineage.
        lake: Its lake.
        study: Whose verdicts.
        key: Their partition.
    """
    part = lineage.project.parts[study.name]
    found: dict[str, str] = {}
    for asked in lineage.upstream_keys(key, study.asked):
        found |= _asked(lineage, lake, study, asked)
    margins = {place: canonical(threshold) for place, threshold in thresholds(part.settings).items()}
    return Audited(study=study.name, key=key, sha256={**found, "margins": fingerprint(margins)})


def _asked(lineage: Lineage, lake: Lake, study: AnyStudy, key: Key) -> Iterator[tuple[str, str]]:
    card = lake.card(study.asked, key)
    if card is None:
        return
    settings = card.inputs["settings"]
    yield "model", fingerprint({name: own for name, own in settings.items() if name not in (*_FILES, _ROUND)})
    upstream = {"table": list[str](), "checkpoint": list[str]()}
    for place, content in card.inputs["upstream"].items():
        upstream[lineage.assets[place.partition("/")[0]].kind] += [content]
    if upstream["checkpoint"] and not getattr(lineage.subject(study.asked, key), "endpoint", None):
        yield "weights", _together(upstream["checkpoint"])  # as trained, or as found where they were published
    yield from ((said, settings[name]) for name, said in _FILES.items() if settings.get(name))
    yield "answers", card.content
    if upstream["table"]:
        yield "contexts", _together(upstream["table"])


def _together(contents: list[str]) -> str:
    return contents[0] if len(contents) == 1 else fingerprint({"contents": contents})
