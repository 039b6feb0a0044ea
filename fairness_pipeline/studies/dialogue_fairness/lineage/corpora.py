"""The corpora: single-turn dialogues, cleaned, each once, split by thread so that the audit sees new ones."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from fairness_pipeline.corpora.dialogue.dialogues import SCHEMA, Splits, read_dialogues, source_files
from fairness_pipeline.corpora.dialogue.planting import VERSION, PlantedBias, plant
from fairness_pipeline.corpora.specification import CorpusSpecification
from fairness_pipeline.foundation import checks
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.inputs import File, unhashed
from fairness_pipeline.lexicons.dimensions import ExchangedWords
from fairness_pipeline.lexicons.swapping import PronounRule, Swapper
from fairness_pipeline.lineage.assets import Asset, Assets, Result
from fairness_pipeline.lineage.run import Run
from fairness_pipeline.studies.dialogue_fairness.models import NAME
from fairness_pipeline.studies.dialogue_fairness.profile import DialoguePart
from fairness_pipeline.workspace.lake import Key

asset = Assets(DialoguePart)


@dataclass(frozen=True)
class Planted:
    """A planted bias, and the words by which contexts name a group."""

    bias: PlantedBias
    words: ExchangedWords
    pronouns: PronounRule
    version: int


@dataclass(frozen=True)
class Source:
    """A corpus, its files, and the shares of its splits."""

    key: str
    specification: CorpusSpecification
    files: Mapping[str, File | str]
    splits: Splits
    planted: Planted | None
    folder: Path = unhashed()
    profile: str = unhashed()


def _source(part: DialoguePart, key: Key) -> Source:
    name = key["corpus"]
    specification, folder = part.corpora[name]
    bias, pronouns = part.settings.planted.get(name), part.settings.pairs.pronouns
    return Source(
        name,
        specification.without("licence", "citation"),
        source_files(specification, folder),
        part.settings.splits,
        Planted(bias, part.dimensions[bias.dimension].named, pronouns, VERSION) if bias else None,
        folder,
        str(part.project.path),
    )


def _of_platform(platform: str, origin: str) -> Asset:
    return asset(
        name=f"{platform}_dialogues",
        description=f"Single-turn dialogues from {origin}",
        stage="corpora",
        axes=("corpus",),
        covers=lambda part, key: part.dialogues_of(key["corpus"]) == f"{platform}_dialogues",
        inputs=_source,
        code_version="4",  # a null topic is none
        libraries=("scipy",),
        schema=SCHEMA,
        checks=(checks.not_empty, checks.some_to_audit),
    )(_read)


def _read(source: Source, run: Run) -> Result:
    splits = source.splits.model_dump()
    reading = read_dialogues(
        source.key, source.specification, source.folder, splits, run.profile_seed, progress=run.progress
    )
    table = reading.table
    split_sizes = {str(row["values"]): row["counts"] for row in pc.value_counts(table["split"]).to_pylist()}
    figures = {"rows_read": reading.rows_read, "left_out": reading.left_out, "dialogues_by_split": split_sizes}
    if planted := source.planted:
        swapper = Swapper(planted.words, pronouns=planted.pronouns)
        try:
            table, figures["planted"] = plant(table, planted.bias, swapper)
        except FairnessError as error:
            raise FairnessError(f"{source.profile}: {NAME}.planted.{source.key}.{error}") from None
    return Result(table, figures, tables={"sample": table.slice(0, 5)})


DIALOGUES = [
    _of_platform("twitter", "Twitter: cleaned, each once, split by thread so that the audit sees new ones."),
    _of_platform("reddit", "Reddit: a comment and the answer to it; cleaned, each once, split by thread."),
    _of_platform("other", "anywhere else: cleaned, each once, split by thread."),
]
"""One table per platform, with a partition per corpus."""


def topic_of(part: DialoguePart, corpus: str, dimension: str) -> str | None:
    """The topic of a dimension's dialogues: the dimension in a corpus of written contexts; None (all) in any other."""
    return dimension if part.corpora[corpus].specification.contexts else None


def about(dialogues: pa.Table, topic: str | None) -> pa.Table:
    """The dialogues with a topic; all of them for None."""
    return dialogues.filter(pc.equal(dialogues["topic"], topic)) if topic else dialogues
