"""The section of a profile on the toy study."""

from fairness_pipeline.foundation.yaml_files import Specification
from fairness_pipeline.project.study import Part
from fairness_pipeline.statistics.equivalence import Margin


class Die(Specification):
    """A die, and how much more it shows in the left hand."""

    shift: float = 0.0
    may_change: bool = False

    def identity(self) -> dict[str, object]:
        """All fields."""
        return self.model_dump()


class Toy(Specification):
    """The section of the toy study."""

    dice: dict[str, Die]
    margin: Margin = Margin(absolute=0.2)


class ToyPart(Part[Toy]):
    """The section, resolved: there is nothing to look up."""

    def __init__(self, project, settings) -> None:
        super().__init__(project, settings)
        self.subjects = settings.dice
        self.axes = {"dimension": list(project.dimensions), "die": list(settings.dice)}

    def expected(self) -> list[dict[str, str]]:
        """Every dimension and die."""
        return [{"dimension": d, "die": die} for d in self.axes["dimension"] for die in self.axes["die"]]
