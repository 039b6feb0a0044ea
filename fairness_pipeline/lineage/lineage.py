"""All assets of a profile, their partitions, and the upstream partitions that each partition is made from."""

from itertools import product

from fairness_pipeline.lineage.recipe import Place, Recipe, place
from fairness_pipeline.project.project import Project
from fairness_pipeline.project.study import AnyPart, AnyStudy
from fairness_pipeline.workspace.lake import Key


class Lineage:
    """All assets of the studies that a profile takes part in, upstream before downstream.

    Args:
        project: The profile.
    """

    def __init__(self, project: Project) -> None:
        self.project = project
        self.recipes: dict[str, Recipe] = {}
        self.study_of: dict[str, str] = {}
        self._keys: dict[str, list[Key]] = {}
        self._sources: dict[Place, list[tuple[str, Key]]] = {}
        for study in project.studies:
            module = study.load("lineage")
            for value in vars(module).values():
                for recipe in value if isinstance(value, list) else [value]:
                    if isinstance(recipe, Recipe):
                        if self.study_of.get(recipe.name, study.name) != study.name:
                            raise ValueError(f"{study.name} and {self.study_of[recipe.name]} both make {recipe.name}")
                        self.recipes[recipe.name] = recipe
                        self.study_of[recipe.name] = study.name

    def study(self, name: str) -> AnyStudy:
        """The study that the asset `name` belongs to."""
        return next(study for study in self.project.studies if study.name == self.study_of[name])

    def group(self, name: str) -> str:
        """The asset's group in the UI: its study, or the study's stage with its number."""
        study, stage = self.study_of[name], self.recipes[name].stage
        stages = list(dict.fromkeys(r.stage for r in self.recipes.values() if self.study_of[r.name] == study))
        return f"{study}_{stages.index(stage) + 1}_{stage}" if stage else study

    def part(self, name: str) -> AnyPart:
        """The profile's part of the study that the asset `name` belongs to."""
        return self.project.parts[self.study_of[name]]

    def keys(self, name: str) -> list[Key]:
        """Every partition that the asset `name` can have; not every combination of axes needs to exist."""
        if name not in self._keys:
            recipe, part = self.recipes[name], self.part(name)
            combinations = product(*(part.axes[axis] for axis in recipe.axes))
            keys = (dict(zip(recipe.axes, values, strict=True)) for values in combinations)
            self._keys[name] = [key for key in keys if recipe.covers(part, key)]
        return self._keys[name]

    def upstream_keys(self, key: Key, source: str) -> list[Key]:
        """The partitions of the upstream asset `source` that the partition `key` is made from.

        Values that follow from the key are used (a model's corpus). On an axis that it says nothing about, all are.
        """
        recipe, part = self.recipes[source], self.part(source)
        known = part.implied(key)
        choices = ([known[axis]] if axis in known else part.axes[axis] for axis in recipe.axes)
        found = [dict(zip(recipe.axes, combination, strict=True)) for combination in product(*choices)]
        return [k for k in found if recipe.covers(part, k)]

    def sources(self, name: str, key: Key) -> list[tuple[str, Key]]:
        """The upstream partitions that a partition reads.

        Its own, its subject's base's, seeds' and baselines', and those of the subject that it shares some with.
        """
        if (own := place(name, key)) not in self._sources:
            self._sources[own] = self._found_sources(name, key)
        return self._sources[own]

    def _found_sources(self, name: str, key: Key) -> list[tuple[str, Key]]:
        recipe, base = self.recipes[name], self.part(name).base_of(key)
        found = [(source, k) for source in recipe.upstream for k in self.upstream_keys(key, source)]
        if base:
            found += [(source, k) for source in recipe.upstream_of_base for k in self.upstream_keys(base, source)]
        for seed in self.part(name).seeds_of(key) if recipe.upstream_of_seeds else ():
            found += [(source, k) for source in recipe.upstream_of_seeds for k in self.upstream_keys(seed, source)]
        for own in self.part(name).baselines_of(key) if recipe.upstream_of_baselines else ():
            found += [(source, k) for source in recipe.upstream_of_baselines for k in self.upstream_keys(own, source)]
        for source in recipe.upstream_shared:
            found += [(source, k) for k in self.upstream_keys(self.part(name).shared_with(key), source)]
        return found
