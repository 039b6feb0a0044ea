"""Plans what must be made to update a profile, why, and in which order; independent partitions run in parallel."""

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush
from itertools import groupby
from typing import Literal

from fairness_pipeline.foundation.errors import FairnessError, unknown
from fairness_pipeline.foundation.paths import workspace_folder, yaml_files
from fairness_pipeline.lineage.assets import PartitionId, partition_id
from fairness_pipeline.lineage.durations import Durations, Forecast, chains
from fairness_pipeline.lineage.lineage import Lineage
from fairness_pipeline.lineage.state import State
from fairness_pipeline.lineage.units import Unit, Workers
from fairness_pipeline.project.project import Project
from fairness_pipeline.project.study import AnyPart, AnyStudy
from fairness_pipeline.workspace.lake import Key, Lake, partition_name

_FORCED = "asked for with --force"


@dataclass(frozen=True)
class Selection:
    """The part of a profile to bring up to date; None selects all. Everything it needs upstream is included."""

    study: str | None = None
    dimension: str | None = None
    model: str | None = None
    asset: str | None = None
    everything: bool = False
    """Whether to include what the profile only makes on request."""
    corpus: str | None = None
    condition: str | None = None

    @property
    def axes(self) -> Key:
        """The values along axes other than the subject's."""
        named = {"dimension": self.dimension, "corpus": self.corpus, "condition": self.condition}
        return {axis: value for axis, value in named.items() if value is not None}

    def resolved(self, project: Project) -> "Selection":
        """The selection with its study filled in, if the model's name determines the study.

        Raises:
            FairnessError: the profile has no such study, model or dimension, or two studies have this name.
        """
        study = self.study
        if self.study is not None and self.study not in project.parts:
            raise FairnessError(unknown("study", self.study, project.parts, f"profile '{project.name}'"))
        if self.model is not None:
            owners = [owner.name for owner in project.studies_of(self.model) if self.study in (None, owner.name)]
            if not owners:
                parts = [project.parts[self.study]] if self.study else list(project.parts.values())
                known = [name for part in parts for name in part.subjects]
                problem = unknown("model", self.model, known, _scope_of(project, self.study))
                raise FairnessError(problem + _other_profile(project, self.model))
            if len(owners) > 1 and self.asset is None:
                raise FairnessError(
                    f"--model {self.model}: {' and '.join(owners)} both have a model of this name; choose one with "
                    "--study"
                )
            study = owners[0] if len(owners) == 1 else None
        parts = [project.parts[study]] if study else list(project.parts.values())
        for axis, value in self.axes.items():
            known = [entry for part in parts for entry in part.axes.get(axis, ())]
            if value not in known:
                raise FairnessError(unknown(axis, value, known, _scope_of(project, study)))
        return replace(self, study=study)

    def matches(self, study: AnyStudy, part: AnyPart, key: Key) -> bool:
        """Whether a partition of the study's significance table has the selected values."""
        known = part.implied(key)
        return (
            self.study in (None, study.name)
            and self.model in (None, key[study.subject])
            and all(known.get(axis) == value for axis, value in self.axes.items())
        )

    def covers(self, study: AnyStudy, project: Project, key: Key) -> bool:
        """Whether the selection includes a partition of the study's significance table."""
        part = project.parts[study.name]
        return self.matches(study, part, key) and self.asks_for(part, study.subject, key)

    def asks_for(self, part: AnyPart, subject: str, key: Key) -> bool:
        """Whether a partition is made by default, or because the selection names it."""
        named = {*self.axes, *([subject] if self.model else [])}
        return self.everything or part.by_default(key, named)


def _scope_of(project: Project, study: str | None) -> str:
    return f"study '{study}' of profile '{project.name}'" if study else f"profile '{project.name}'"


def _other_profile(project: Project, model: str) -> str:
    """Names the profile that has the model, if it is another one with a workspace: audits are in `audit`."""
    for name in other_workspaces(project):
        with suppress(FairnessError):
            if Project(name).studies_of(model):
                return f"; profile '{name}' has it: add --profile {name}"
    return ""


def other_workspaces(project: Project) -> list[str]:
    """The other profiles that have a workspace."""
    return [name for name in yaml_files("profiles") if name != project.name and workspace_folder(name).is_dir()]


@dataclass(frozen=True)
class Step:
    """One partition of one asset, and the reason why it must be made (None if it is up to date)."""

    name: str
    key: Key
    reason: str | None

    @property
    def partition_id(self) -> PartitionId:
        """The asset and the partition."""
        return self.name, partition_name(self.key)

    @property
    def label(self) -> str:
        """The step's name for readers."""
        return " ".join([self.name, *self.key.values()])


@dataclass(frozen=True)
class Outcome:
    """The result of a step: its state, the error or the reason, and how long it took.

    An `unchanged` step is up to date after all: its inputs were made again and came out as before.
    """

    step: Step
    state: Literal["made", "unchanged", "failed", "skipped"]
    detail: str = ""
    seconds: float = 0.0

    @property
    def lost(self) -> bool:
        """Whether the step has no usable result."""
        return self.state in ("failed", "skipped")


class Plan:
    """The steps of a selection.

    Args:
        lineage: The profile's lineage.
        selection: The part to bring up to date.
        force: Whether to make again what is up to date: the selected asset, or all of the selection if it names none.

    Attributes:
        steps: All steps, made before or not.
        state: The content of the lake before anything is made.
        unsealed: The steps that were made by a version before seals.

    Raises:
        FairnessError: the selection names something that the profile does not have.
    """

    def __init__(self, lineage: Lineage, selection: Selection, *, force: bool = False) -> None:
        self.lineage = lineage
        self.project = lineage.project
        self.selection = selection.resolved(self.project)
        self.lake = Lake(self.project.workspace)
        self.durations = Durations(self.project.workspace)
        self.state = State(lineage, self.lake)
        partitions = list(selected(lineage, self.selection))
        self._check(partitions)
        reason_of = reasons(self.state, partitions)
        self._changed = set(reason_of)
        named = self.selection.asset
        self._forced = {partition_id(*partition) for partition in partitions if force and named in (None, partition[0])}
        reason_of = dict.fromkeys(self._forced, _FORCED) | reason_of
        self.steps = [Step(name, key, reason_of.get(partition_id(name, key))) for name, key in partitions]
        cards = ((step, self.state.card(step.name, step.key)) for step in self.steps)
        self.unsealed = [step for step, card in cards if card and not card.seal]

    def _check(self, partitions: Collection[tuple[str, Key]]) -> None:
        """Refuses a selection whose values do not go together: its run would succeed and audit nothing."""
        named = self.selection.axes | ({"model": self.selection.model} if self.selection.model else {})
        if self.selection.asset is not None or len(named) < 2:  # a table without items has only rates, and no audit
            return
        tables = {study.table for study in self.project.studies}
        if not any(name in tables for name, _ in partitions):
            values = " and ".join(f"{axis} '{value}'" for axis, value in named.items())
            raise FairnessError(
                f"no audit of profile '{self.project.name}' has {values}; fairness-pipeline results lists all"
            )

    @property
    def stale(self) -> list[Step]:
        """The steps that must run."""
        return [step for step in self.steps if step.reason]

    def endpoint_requests(self) -> tuple[int, int]:
        """The number of endpoint requests of the stale steps, and of partitions for which it is not known yet."""
        known = unknowable = 0

        def pending(name: str, key: Key) -> bool:
            return (name, partition_name(key)) in self._changed  # a forced step gives the same result as before

        for step in self.stale:
            study, part = self.lineage.study(step.name), self.lineage.part(step.name)
            count = study.requests(part, step.name, step.key, self.lake, pending)
            known, unknowable = (known, unknowable + 1) if count is None else (known + count, unknowable)
        return known, unknowable

    def run(self, workers: Workers, starting: Callable[[list[Step]], None]) -> Iterator[Outcome]:
        """Makes every stale step. If a step fails, only the steps that depend on it are skipped.

        Args:
            workers: The workers that make the steps.
            starting: Called with the steps of each unit just before it is made.
        """
        units = self._units(workers.idle)
        unit_of = {step.partition_id: number for number, unit in enumerate(units) for step in unit}
        needs = [
            {unit_of[source] for step in unit for source in self._sources(step) if source in unit_of} - {number}
            for number, unit in enumerate(units)
        ]
        needed_by: dict[int, list[int]] = {}
        for number, upstream in enumerate(needs):
            for follower in upstream:
                needed_by.setdefault(follower, []).append(number)
        rank = self._ranks(units, needs, needed_by)
        ready = [(rank[number], number) for number, upstream in enumerate(needs) if not upstream]
        heapify(ready)
        running: dict[int, list[Step]] = {}
        lost: set[PartitionId] = set()

        def ended(outcome: Outcome) -> Outcome:
            if outcome.lost:
                lost.add(outcome.step.partition_id)
            return outcome

        def finish(number: int) -> None:
            for follower in needed_by.get(number, ()):
                needs[follower].discard(number)
                if not needs[follower]:
                    heappush(ready, (rank[follower], follower))

        while ready or running:
            while ready and workers.idle:
                _, number = heappop(ready)
                possible, outcomes = self._possible(units[number], lost)
                yield from map(ended, outcomes)
                if possible:
                    starting(possible)
                    running[number] = possible
                    forced = self._is_forced(possible)
                    workers.start(Unit(number, [step.name for step in possible], possible[0].key, forced))
                else:
                    finish(number)
            if running:
                done = workers.wait()
                steps = {step.name: step for step in running.pop(done.number)}
                for result in done.results:
                    if result.state == "made":
                        self.durations.note(steps[result.name].partition_id, result.seconds)
                    yield ended(Outcome(steps[result.name], result.state, result.detail, result.seconds))
                finish(done.number)

    def _units(self, workers: int) -> list[list[Step]]:
        """The stale steps in the order of the lineage. Consecutive steps of one partition form a unit, unless there are
        more workers than partitions: then each step is one, so that the measures of one partition share the workers."""
        units: list[list[Step]] = []
        for _, group in groupby(self.stale, key=lambda step: self._group(step.name)):
            by_partition: dict[str, list[Step]] = {}
            for step in group:
                by_partition.setdefault(partition_name(step.key), []).append(step)
            units_of_group = list(by_partition.values())
            units += (
                units_of_group
                if len(units_of_group) >= workers
                else [[step] for unit in units_of_group for step in unit]
            )
        return units

    def _ranks(
        self, units: list[list[Step]], needs: list[set[int]], needed_by: dict[int, list[int]]
    ) -> list[tuple[bool, float]]:
        """Which units to begin first: those of the first verdicts, so that a user sees some soon; then the one with the
        longest chain behind it, so that no worker ends alone."""
        expected = [sum(map(self.expected, unit)) for unit in units]
        first = self._first_verdicts(units, needs, expected)
        return [(number not in first, -chain) for number, chain in enumerate(chains(expected, needed_by))]

    def _first_verdicts(self, units: list[list[Step]], needs: list[set[int]], expected: list[float]) -> set[int]:
        """The units of the study whose verdicts take least, on subjects without a base."""
        candidates: list[set[int]] = []
        for study in self.project.studies:
            part = self.project.parts[study.name]
            open_units = [
                number
                for number, unit in enumerate(units)
                if any(step.name == study.table and part.base_of(step.key) is None for step in unit)
            ]
            needed: set[int] = set()
            while open_units:
                number = open_units.pop()
                if number not in needed:
                    needed.add(number)
                    open_units += needs[number]
            candidates.append(needed)
        return min(
            filter(None, candidates), key=lambda candidate: sum(expected[number] for number in candidate), default=set()
        )

    def forecast(self, workers: int) -> Forecast:
        """Returns the forecast of the time to the end of the stale steps, which follows their progress."""
        steps = self.stale
        index_of = {step.partition_id: index for index, step in enumerate(steps)}
        needed_by: dict[int, list[int]] = {}
        for step in steps:
            for source in self._sources(step):
                if source in index_of:
                    needed_by.setdefault(index_of[source], []).append(index_of[step.partition_id])
        expected = [self.expected(step) for step in steps]
        partitions = [step.partition_id for step in steps]
        longest = chains(expected, needed_by)
        return Forecast(
            dict(zip(partitions, expected, strict=True)), dict(zip(partitions, longest, strict=True)), workers
        )

    def expected(self, step: Step) -> float:
        """Seconds that a step is expected to take."""
        return self.durations.expected(step.partition_id, trains=self.lineage.assets[step.name].trains)

    def _group(self, name: str) -> tuple[str, list[Key]]:
        """The group of an asset. Assets of one group have the same partitions, and Dagster makes them in one run."""
        return self.lineage.study_of[name], self.lineage.keys(name)

    def _possible(self, unit: list[Step], lost: set[PartitionId]) -> tuple[list[Step], list[Outcome]]:
        """The steps of a unit to make now that all upstream steps are done, and the outcomes of the others."""
        possible: list[Step] = []
        outcomes: list[Outcome] = []
        unreachable = set(lost)
        for step in unit:
            upstream = [] if self.lineage.assets[step.name].tolerant else self._sources(step)
            missing = [source for source in upstream if source in unreachable]
            if missing:
                unreachable.add(step.partition_id)
                outcomes.append(Outcome(step, "skipped", f"needs {' '.join(missing[0]).strip()}"))
            else:
                possible.append(step)
        if self._is_forced(possible):
            return possible, outcomes
        state = State(self.lineage, self.lake)
        needed: list[Step] = []
        for step in possible:
            if state.changes(step.name, step.key) or {s.partition_id for s in needed}.intersection(self._sources(step)):
                needed.append(step)
            else:
                outcomes.append(Outcome(step, "unchanged"))
        return needed, outcomes

    def _is_forced(self, steps: Iterable[Step]) -> bool:
        """Whether the steps are made even if they turn out to be up to date."""
        return any(step.partition_id in self._forced for step in steps)

    def _sources(self, step: Step) -> list[PartitionId]:
        return [(source, partition_name(k)) for source, k in self.lineage.sources(step.name, step.key)]


def reasons(
    state: State, partitions: Iterable[tuple[str, Key]], waiting: Collection[PartitionId] = ()
) -> dict[PartitionId, str]:
    """Returns why partitions must be made; up-to-date partitions are left out.

    Args:
        state: The state of the lake.
        partitions: The partitions, upstream before downstream.
        waiting: Other partitions that must be made before them.
    """
    reason_of: dict[PartitionId, str] = {}
    for name, key in partitions:
        sources = (partition_id(*source) for source in state.lineage.sources(name, key))
        remade = next((source for source in sources if source in reason_of or source in waiting), None)
        if changes := state.changes(name, key):
            reason_of[partition_id(name, key)] = "; ".join(changes)
        elif remade:
            reason_of[partition_id(name, key)] = f"{' '.join(remade).strip()} is made again"
    return reason_of


def selected(lineage: Lineage, selection: Selection) -> Iterator[tuple[str, Key]]:
    """The selected partitions and everything that they are made from, in lineage order.

    Raises:
        FairnessError: the selection names an asset that the profile does not have.
    """
    in_study = [
        name
        for name, study in lineage.study_of.items()
        if selection.study in (None, study)
        # A study without dimensions belongs to any; one without corpora or conditions has none of this name.
        and all(axis == "dimension" or axis in lineage.project.parts[study].axes for axis in selection.axes)
    ]
    if selection.asset is not None and selection.asset not in in_study:
        scope = f"study '{selection.study}'" if selection.study else ""
        raise FairnessError(unknown("asset", selection.asset, in_study, scope))
    subject_axis = {study.name: study.subject for study in lineage.project.studies}
    chosen: set[PartitionId] = set()

    def is_selected(name: str, key: Key, subjects: set[str] | None, needed: bool) -> bool:
        part, axis = lineage.part(name), subject_axis[lineage.study_of[name]]
        if not (needed or selection.asks_for(part, axis, key)):
            return False
        if selection.dimension and key.get("dimension", selection.dimension) != selection.dimension:
            return False
        # A needed partition may be of another corpus than the one that needs it: a base's.
        known = part.implied(key)
        if not needed and any(known.get(axis, value) != value for axis, value in selection.axes.items()):
            return False
        if not subjects:
            return True
        if axis in key:
            return key[axis] in subjects
        if key and not needed:  # of no model; made if a chosen partition needs it
            return False
        implied = [part.implied({axis: value}) for value in subjects]
        return all(any(i.get(a, value) == value for i in implied) for a, value in key.items())

    def choose(name: str, key: Key, subjects: set[str] | None, needed: bool = False) -> None:
        partition = name, partition_name(key)
        if partition in chosen or not is_selected(name, key, subjects, needed):
            return
        chosen.add(partition)
        # A report uses what exists; any other asset needs everything that it is made from, also for the base.
        part, tolerant = lineage.part(name), lineage.assets[name].tolerant
        if subjects and not tolerant:
            base = part.base_of(key)
            others = [*lineage.other_subjects(name, key), *([base] if base else ())]
            subjects = subjects | {other[subject_axis[lineage.study_of[name]]] for other in others}
        for source, source_key in lineage.sources(name, key):
            choose(source, source_key, subjects, not tolerant)

    for target in [selection.asset] if selection.asset else in_study:
        for key in lineage.keys(target):
            choose(target, key, {selection.model} if selection.model else None)
    for name in lineage.assets:
        for key in lineage.keys(name):
            if (name, partition_name(key)) in chosen:
                yield name, key
