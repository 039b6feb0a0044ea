"""A version of what each partition would be made from now: comparing versions then tells what `run` would do."""

from fairness_pipeline.lineage.lineage import Lineage
from fairness_pipeline.lineage.plan import Selection, reasons, selected
from fairness_pipeline.lineage.recipe import Place
from fairness_pipeline.lineage.state import State
from fairness_pipeline.workspace.lake import Card, Key, Lake, fingerprint, partition_name


class Versions:
    """What a lake holds, and what of it is out of date.

    Args:
        lineage: The lineage of a profile.

    Attributes:
        shown: The partitions that `run` makes by default, and those made on request; upstream before downstream.
        cards: The cards of the partitions that were made.
        stale: Why a partition must be made, of those that must.
        ready: The stale partitions that `run` makes by default and that wait for no other one.
    """

    def __init__(self, lineage: Lineage) -> None:
        state = State(lineage, Lake(lineage.project.workspace))
        default = list(selected(lineage, Selection()))
        self.shown = shown_partitions(lineage)
        self.cards: dict[Place, Card] = {}
        for name, key in self.shown:
            if card := state.card(name, key):
                self.cards[name, partition_name(key)] = card
        # What is made on request is nothing that the others wait for: a report lists what exists.
        self.stale = reasons(state, default)
        known = {(name, partition_name(key)) for name, key in default}
        on_request = [(name, key) for name, key in self.shown if (name, partition_name(key)) not in known]
        self.ready = [
            (name, key)
            for name, key in default
            if (name, partition_name(key)) in self.stale
            and not any((source, partition_name(k)) in self.stale for source, k in lineage.sources(name, key))
        ]
        self.stale |= reasons(state, on_request, self.stale)

    def of(self, place: Place) -> str:
        """The fingerprint of a partition that is up to date; for others a hash of what is out of date."""
        card = self.cards.get(place)
        if card and place not in self.stale:
            return card.fingerprint
        return fingerprint({"was": card.fingerprint if card else None, "why": self.stale.get(place)})

    @property
    def fingerprint(self) -> str:
        """A hash of everything that is known here."""
        places = [(name, partition_name(key)) for name, key in self.shown]
        contents = [card.content if (card := self.cards.get(place)) else None for place in places]
        return fingerprint({"places": places, "contents": contents, "versions": [self.of(place) for place in places]})


def shown_partitions(lineage: Lineage) -> list[tuple[str, Key]]:
    """The partitions that `run` makes by default and those that were made on request, upstream before downstream."""
    lake = Lake(lineage.project.workspace)
    default = {(name, partition_name(key)) for name, key in selected(lineage, Selection())}
    return [
        (name, key)
        for name in lineage.recipes
        for key in lineage.keys(name)
        if (name, partition_name(key)) in default or lake.has(name, key)
    ]
