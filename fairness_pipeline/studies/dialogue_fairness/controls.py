"""Finds the controls of a debiased model: models of the same training without the debiasing term."""

from collections.abc import Mapping
from pathlib import Path

from fairness_pipeline.debiasing.dialogue.registry import method_of, settings_of
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.models.dialogue.specification import ModelSpecification
from fairness_pipeline.studies.dialogue_fairness.models import answers_in
from fairness_pipeline.workspace.lake import Key


class Controls:
    """The controls among a profile's models."""

    def __init__(self, models: Mapping[str, ModelSpecification]) -> None:
        self._models = models

    def of(self, key: Key) -> dict[str, Key]:
        """The controls of a debiased model in its dimension, by method: the same training without the debiasing term.

        A control has the same settings and at least as many seeds. A method without such a model is left out.
        """
        model, seeds = key["model"], self._models[key["model"]].seeds
        return {
            method: {**key, "model": name}
            for method in self.methods(model)
            for name in reversed(self._candidates(model, method, key["dimension"]))  # the first one wins
            if self._models[name].seeds >= seeds and not self.mismatched_settings(model, name)
        }

    def complete(self, key: Key) -> bool:
        """Whether the profile has every control that the model must beat before its method is called a cure."""
        return self.of(key).keys() == set(self.methods(key["model"]))

    def methods(self, key: str) -> tuple[str, ...]:
        """The methods whose models are controls of this one."""
        method = method_of(self._models[key])
        return method.controls if method else ()

    def _candidates(self, key: str, method: str, dimension: str) -> list[str]:
        """Models made from the same base, in the same dimension, by a method that is a control."""
        if not answers_in(self._models[key], dimension):
            return []
        recipe = (method, self._models[key].base)
        return [
            name
            for name, candidate in self._models.items()
            if (candidate.debiasing, candidate.base) == recipe and answers_in(candidate, dimension)
        ]

    def mismatched_settings(self, key: str, control: str) -> dict[str, tuple[object, object]]:
        """The settings in which a control differs from its model, each with the model's value and the control's.

        Settings of the methods count only if both methods have them.
        """
        settings, control_settings = (self._shared_settings(name) for name in (key, control))
        method_settings, control_method_settings = (settings_of(self._models[name]) for name in (key, control))
        values = {field: (settings.get(field), control_settings.get(field)) for field in settings | control_settings}
        values |= {
            field: (method_settings[field], control_method_settings[field])
            for field in method_settings.keys() & control_method_settings.keys()
        }
        return {field: values[field] for field in sorted(values) if values[field][0] != values[field][1]}

    def _controls_another(self, control: str, method: str) -> bool:
        """Whether this model is the control of another model made from the same base."""
        return any(
            method in self.methods(name)
            and model.base == self._models[control].base
            and not self.mismatched_settings(name, control)
            for name, model in self._models.items()
        )

    def _shared_settings(self, key: str) -> dict[str, object]:
        """What a debiased model depends on besides its method's settings: sizes, training, decoding."""
        model = self._models[key]
        nested = {**model.identity(), "decoding": model.decoding.model_dump()}
        settings: dict[str, object] = {}
        for name in nested.keys() - {"base", "debiasing", "settings"}:
            value = nested[name]
            settings |= {f"{name}.{n}": v for n, v in value.items()} if isinstance(value, dict) else {name: value}
        return settings

    def check(self, key: str, method: str, dimension: str, path: Path) -> None:
        """Refuses a dimension in which every candidate control differs from the model in its training.

        A candidate that is the control of another model is no mistake: this model just has no control.

        Raises:
            FairnessError: names the file.
        """
        mismatches = {name: self.mismatched_settings(key, name) for name in self._candidates(key, method, dimension)}
        if not all(mismatches.values()):
            return
        if mistaken := [name for name in mismatches if not self._controls_another(name, method)]:
            name, fields = mistaken[0], mismatches[mistaken[0]]
            differences = ", ".join(
                f"{field} ({value}, {control_value})" for field, (value, control_value) in fields.items()
            )
            raise FairnessError(
                f"{path}: '{name}' is a control of '{key}' in {dimension}, and must be trained by the "
                f"same steps; their settings differ in {differences}"
            )
