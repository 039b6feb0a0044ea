"""Brings a profile up to date: what is missing or stale, in lineage order, each step a recorded Dagster run."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

import dagster as dg

from fairness_pipeline.corpora.equity_sentences import equity_sentences
from fairness_pipeline.defs import partitions
from fairness_pipeline.defs.lineage import (
    LEFT_ALONE,
    ONLY_IF_STALE,
    RECIPES,
    State,
    keys,
    recipe,
    sources,
    upstream_keys,
)
from fairness_pipeline.errors import FairnessError
from fairness_pipeline.lake import Key, Lake, partition_name
from fairness_pipeline.models.responding import distinct_contexts
from fairness_pipeline.project import MODELS_STUDY, SYSTEMS_STUDY, Project

_FORCED = "asked for with --force"


@dataclass(frozen=True)
class Selection:
    """Which part of a profile to bring up to date; None takes all. Whatever it needs upstream comes along."""

    study: str | None = None
    dimension: str | None = None
    model: str | None = None
    asset: str | None = None
    all_dimensions: bool = False
    """Whether to debias also in dimensions that the profile does not `debias` by default."""


@dataclass(frozen=True)
class Step:
    """One partition of one asset, and why it must be made (None where it is up to date)."""

    name: str
    key: Key
    reason: str | None

    @property
    def label(self) -> str:
        """For a reader."""
        return " ".join([self.name, *self.key.values()])


@dataclass(frozen=True)
class Outcome:
    """What became of a step; the error or the reason; how long it took.

    One that is `unchanged` is up to date after all: what it is made from was made again and came out as before.
    """

    step: Step
    state: Literal["made", "unchanged", "failed", "skipped"]
    detail: str = ""
    seconds: float = 0.0


class Walk:
    """The steps of a selection.

    Args:
        project: The profile.
        definitions: Its Dagster definitions.
        selection: The part asked for.
        force: Whether to make also what is up to date.

    Raises:
        FairnessError: the selection names something that the profile does not have.
    """

    def __init__(
        self, project: Project, definitions: dg.Definitions, selection: Selection, *, force: bool = False
    ) -> None:
        self.project = project
        self.lake = Lake(project.workspace)
        self._repository = definitions.get_repository_def()
        self._force = force
        self._state = State(project, self.lake)
        self.steps: list[Step] = []
        waiting: set[tuple[str, str]] = set()
        for name, key in self._partitions(selection):
            self.steps.append(Step(name, key, self._reason(name, key, waiting)))
            if self.steps[-1].reason:
                waiting.add((name, partition_name(key)))

    @property
    def out_of_date(self) -> list[Step]:
        """The steps that must run whether or not they are forced to."""
        return [step for step in self.steps if step.reason not in (None, _FORCED)]

    @property
    def stale(self) -> list[Step]:
        """The steps that must run."""
        return [step for step in self.steps if step.reason]

    def endpoint_requests(self) -> tuple[int, int]:
        """Requests that the stale steps would make of endpoints, and partitions for which that cannot be told yet."""
        stale = {(step.name, partition_name(step.key)) for step in self.stale}
        known = unknown = 0
        systems = [self.project.systems[step.key["system"]] for step in self.stale if step.name == "equity_scores"]
        if any(system.endpoint for system in systems):
            sentences = len(equity_sentences())
            known += sum(system.requests(sentences) for system in systems)
        for step in self.stale:
            if step.name != "responses" or not self.project.models[step.key["model"]].endpoint:
                continue
            (key,) = upstream_keys(self.project, step.key, "context_pairs")
            if ("context_pairs", partition_name(key)) in stale:
                unknown += 1
            else:
                known += len(distinct_contexts(self.lake.read("context_pairs", key)))
        return known, unknown

    def run(self, instance: dg.DagsterInstance, starting: Callable[[Step], None]) -> Iterator[Outcome]:
        """Makes every stale step; a step that fails takes with it only what depends on it.

        Args:
            instance: Where Dagster records the runs.
            starting: Told of each step just before it is made.
        """
        lost: set[tuple[str, str]] = set()
        for _, group in groupby(self.stale, key=lambda step: recipe(step.name).axes):
            by_partition: dict[str, list[Step]] = {}
            for step in group:
                by_partition.setdefault(partition_name(step.key), []).append(step)
            bases_first = sorted(
                by_partition.values(), key=lambda steps: self.project.base_of(steps[0].key) is not None
            )
            for steps in bases_first:
                for outcome in self._run_partition(steps, instance, starting, lost):
                    if outcome.state in ("failed", "skipped"):
                        lost.add((outcome.step.name, partition_name(outcome.step.key)))
                    yield outcome

    def _run_partition(
        self,
        steps: list[Step],
        instance: dg.DagsterInstance,
        starting: Callable[[Step], None],
        lost: set[tuple[str, str]],
    ) -> Iterator[Outcome]:
        possible = []
        unreachable = set(lost)
        for step in steps:
            missing = (
                []
                if recipe(step.name).tolerant
                else [s for s in self._sources(step.name, step.key) if s in unreachable]
            )
            if missing:
                unreachable.add((step.name, partition_name(step.key)))
                yield Outcome(step, "skipped", f"needs {' '.join(missing[0]).strip()}")
            else:
                possible.append(step)
        if not self._force:
            possible, untouched = self._still_stale(possible)
            yield from (Outcome(step, "unchanged") for step in untouched)
        if not possible:
            return
        starting(possible[0])
        keys = [dg.AssetKey(step.name) for step in possible]
        job = self._repository.get_implicit_job_def_for_assets(keys)
        assert job is not None
        result = job.execute_in_process(
            instance=instance,
            partition_key=partitions.to_dagster(possible[0].key),
            asset_selection=keys,
            raise_on_error=False,
            run_config={"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}},
            tags={} if self._force else {ONLY_IF_STALE: "true"},
        )
        if any(_interrupted(event) for event in result.all_events if event.is_step_failure):
            raise KeyboardInterrupt  # Dagster makes a failed step of it and returns
        errors = {event.step_key: _error(event) for event in result.all_events if event.is_step_failure}
        seconds = {
            event.step_key: event.step_success_data.duration_ms / 1000
            for event in result.all_events
            if event.is_step_success
        }
        left_alone = {
            event.asset_key.to_user_string()
            for event in result.all_events
            if event.is_step_materialization and event.asset_key and LEFT_ALONE in event.materialization.metadata
        }
        for step in possible:
            if step.name in seconds:
                yield Outcome(step, "unchanged" if step.name in left_alone else "made", seconds=seconds[step.name])
            elif step.name in errors:
                yield Outcome(step, "failed", errors[step.name])
            else:
                yield Outcome(step, "skipped", f"needs {next(iter(errors), 'what failed before')}")

    def _still_stale(self, steps: list[Step]) -> tuple[list[Step], list[Step]]:
        """Those that must run now that all above them has been made, and those that need not after all."""
        must: list[Step] = []
        state = State(self.project, self.lake)
        for step in steps:
            places = {(other.name, partition_name(other.key)) for other in must}
            if state.changes(step.name, step.key) or places.intersection(self._sources(step.name, step.key)):
                must.append(step)
        return must, [step for step in steps if step not in must]

    def _sources(self, name: str, key: Key) -> list[tuple[str, str]]:
        return [(source, partition_name(k)) for source, k in sources(self.project, name, key)]

    def _partitions(self, selection: Selection) -> Iterator[tuple[str, Key]]:
        """The partitions asked for and all that they are made from, in lineage order."""
        study, model, system = selection.study, selection.model, None
        if model in self.project.systems:
            study, model, system = SYSTEMS_STUDY, None, model
        elif model:
            study = study or MODELS_STUDY
        self._check(selection, study)
        base = self.project.base_of({"model": model}) if model else None
        dimensions = {selection.dimension} if selection.dimension else set(self.project.dimensions)
        models = {model} if model else set(self.project.models)
        systems = {system} if system else set(self.project.systems)
        corpora = {self.project.models[model].corpus} if model else set(self.project.corpora)
        in_study = [name for name, own in RECIPES.items() if study in (None, own.study)]
        targets = [selection.asset] if selection.asset else in_study
        wanted: set[tuple[str, str]] = set()

        def chosen(key: Key, models: set[str]) -> bool:
            values = {"dimension": dimensions, "model": models, "corpus": corpora, "system": systems}
            by_default = selection.dimension or selection.all_dimensions or self.project.made_by_default(key)
            return bool(by_default) and all(value in values[axis] for axis, value in key.items())

        def want(name: str, key: Key, among: set[str]) -> None:
            place = name, partition_name(key)
            if place in wanted or not chosen(key, among):
                return
            wanted.add(place)
            # A report takes what there is; anything else needs what it is made from, of the base too.
            needed = models if recipe(name).tolerant else models | set((base or {}).values())
            for source, source_key in sources(self.project, name, key):
                want(source, source_key, needed)

        for target in targets:
            for key in keys(self.project, target):
                want(target, key, models)
        for name in RECIPES:
            for key in keys(self.project, name):
                if (name, partition_name(key)) in wanted:
                    yield name, key

    def _check(self, selection: Selection, study: str | None) -> None:
        self.project.check_selection(selection.study, selection.dimension, selection.model)
        assets = [name for name, own in RECIPES.items() if study in (None, own.study)]
        if selection.asset is not None and selection.asset not in assets:
            where = f" in study '{study}'" if study else ""
            raise FairnessError(f"unknown asset '{selection.asset}'{where}; known: {', '.join(assets)}")

    def _reason(self, name: str, key: Key, waiting: set[tuple[str, str]]) -> str | None:
        """Why a step must run; `waiting` are the places of those before it that must."""
        if changes := self._state.changes(name, key):
            return "; ".join(changes)
        if self._force:
            return _FORCED
        made = [source for source in self._sources(name, key) if source in waiting]
        return f"{' '.join(made[0]).strip()} is made again" if made else None


def _interrupted(event: dg.DagsterEvent) -> bool:
    error = event.step_failure_data.error
    while error is not None:
        if error.cls_name in ("DagsterExecutionInterruptedError", "KeyboardInterrupt"):
            return True
        error = error.cause
    return False


def _error(event: dg.DagsterEvent) -> str:
    failure = event.step_failure_data
    if failure.user_failure_data and failure.user_failure_data.description:
        return failure.user_failure_data.description
    error = failure.error
    while error is not None and error.cause is not None:
        error = error.cause
    return error.message.strip() if error else "failed"
