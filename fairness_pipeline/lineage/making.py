"""Makes one partition of an asset: locks, makes, checks, and writes all or nothing. Independent of Dagster."""

import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from fairness_pipeline.engines.settings import ray_of
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.files import write_text
from fairness_pipeline.foundation.guard import only
from fairness_pipeline.foundation.inputs import files_of
from fairness_pipeline.foundation.threads import one_thread
from fairness_pipeline.foundation.turns import turns_end
from fairness_pipeline.lineage.assets import Asset, Glance, Read, Result
from fairness_pipeline.lineage.lineage import Lineage
from fairness_pipeline.lineage.listener import Listener
from fairness_pipeline.lineage.query_epochs import renew_query_epoch
from fairness_pipeline.lineage.run import Run
from fairness_pipeline.lineage.shelf import Shelf
from fairness_pipeline.lineage.state import State
from fairness_pipeline.models.usage import note_in
from fairness_pipeline.workspace.distinct import HERE
from fairness_pipeline.workspace.lake import Card, Key, Lake, fingerprint


@dataclass(frozen=True)
class Made:
    """A partition that was made, or that was left alone because it is up to date: then it has no `result`."""

    card: Card
    result: Result | None = None
    glance: Glance = Glance()
    seconds: float = 0.0


def make(
    lineage: Lineage,
    name: str,
    key: Key,
    listener: Listener,
    *,
    only_if_stale: bool = False,
    beginning: Callable[[str], None] = lambda fingerprint: None,
    checked: Callable[[str, str | None], None] = lambda check, wrong: None,
) -> Made:
    """Makes a partition while holding its lock.

    Args:
        lineage: The lineage of a profile.
        name: The asset.
        key: The partition.
        listener: Receives waiting notices and progress.
        only_if_stale: Whether a partition that is up to date is left alone.
        beginning: Called with the fingerprint, before anything is made.
        checked: Called with the name of each check, and what is wrong.

    Raises:
        FairnessError: the partition cannot be made, or a check fails; the lake is as it was.
    """
    lake, asset = Lake(lineage.project.workspace), lineage.assets[name]
    with one_thread(), lake.lock(name, key, lambda holder: listener.waiting(name, key, holder)):
        state = State(lineage, lake)
        card = lake.card(name, key)
        if card and state.too_old(name, key, card):
            renew_query_epoch(lineage, name, key)
        given = state.given(name, key)
        described = state.described(name, key, given)
        if card and only_if_stale and state.made_from(name, key, card, described):
            beginning(card.fingerprint)
            return Made(card)
        stamp = fingerprint(described)
        beginning(stamp)
        folder = work = lake.folder(name, key, stamp)
        if (card and card.fingerprint == stamp) or lake.was_finished(name, key, stamp):
            # Forced, or damaged. Others may read the old version until the new one is complete, so this one is
            # written to another folder.
            work = folder.with_name(f"{folder.name}-again")
        progress, started = listener.progress(name, key), time.monotonic()
        profile = lineage.project.profile
        note_in(lake.root)
        engine = HERE
        if ray := ray_of(profile.engine):
            from fairness_pipeline.engines.ray_rows import RayRows

            engine = RayRows(ray, lake.root)
        run = Run(name, key, profile.seed, progress, engine, work)
        arguments = _arguments(asset, lineage, lake, key, run)
        if asset.kind != "document" and State(lineage, lake).described(name, key, given) != described:
            raise FairnessError(f"{name}: an upstream table was replaced while it was read; run again")
        with turns_end(progress), only([*files_of(given)]):
            result = asset.function(given, **arguments)
        later = State(lineage, lake)
        if later.settings(name, later.given(name, key)) != described["settings"]:
            raise FairnessError(f"{name}: its inputs changed while it was made; run again")
        glance = asset.show(lineage.part(name), key, result)
        still_ours = lake.still_ours(name, key)
        if asset.kind == "checkpoint" and work != folder:
            still_ours()
            _clear(folder)
            work.rename(folder)
        result.before_it_counts()
        _save(lake, asset, key, result, Card(stamp, described, result.figures), checked)
        if asset.kind != "checkpoint":
            still_ours()
            _clear(folder.parent)  # with what stopped runs have left under other settings
        made = lake.card(name, key)
        if made is None:
            raise FairnessError(f"{asset.path(lake, key)}: was written, and cannot be read again; run again")
        return Made(made, result, glance, time.monotonic() - started)


def _arguments(asset: Asset, lineage: Lineage, lake: Lake, key: Key, run: Run) -> dict[str, Any]:
    """Returns the function's arguments besides its inputs."""
    if asset.kind == "document":
        return {"shelf": Shelf(asset, lineage, lake)}
    arguments = {name: _content(read, asset, lineage, lake, key) for name, read in asset.reads.items()}
    return {**arguments, "run": run} if asset.runs else arguments


def _content(read: Read, asset: Asset, lineage: Lineage, lake: Lake, key: Key) -> Any:
    """Returns the value of an argument for a partition."""
    subject, subject_keys = lineage.study(asset.name).subject, read.subjects(lineage.part(asset.name), key)
    contents = {
        subject_key.get(subject, ""): _read_partition(read, lineage, lake, subject_key) for subject_key in subject_keys
    }
    return contents if read.of in ("seeds", "baselines") else next(iter(contents.values()), None)


def _read_partition(read: Read, lineage: Lineage, lake: Lake, key: Key) -> Any:
    partitions = [(asset, upstream) for asset in read.assets for upstream in lineage.upstream_keys(key, asset.name)]
    if read.each:
        return {asset.name: _load(asset, lake, upstream, figures=read.figures) for asset, upstream in partitions}
    return next((_load(asset, lake, upstream, figures=read.figures) for asset, upstream in partitions), None)


def _load(asset: Asset, lake: Lake, key: Key, *, figures: bool) -> Any:
    if figures:
        return lake.figures(asset.name, key)
    return lake.read(asset.name, key) if asset.kind == "table" else lake.sound_folder(asset.name, key)


def _save(
    lake: Lake, asset: Asset, key: Key, result: Result, card: Card, checked: Callable[[str, str | None], None]
) -> None:
    if isinstance(result.content, pa.Table):
        assert asset.schema is not None
        with lake.writing(asset.name, key, result.content, asset.schema, card) as table:
            for check in asset.checks:
                problem = check(table)
                checked(check.__name__, problem)
                if problem:
                    raise FairnessError(f"{asset.name}: {problem}; the table was not written")
        return
    if isinstance(result.content, str):
        write_text(lake.document_path(asset.name), result.content, lake.still_ours(asset.name, key))
    lake.write_card(asset.name, key, card)


def _clear(folder: Path) -> None:
    """Removes a folder with its content."""
    if folder.exists():
        shutil.rmtree(folder)
