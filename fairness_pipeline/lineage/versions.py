"""Computes a version of what each partition would be made from now, which tells what `run` would make."""

from fairness_pipeline.lineage.assets import PartitionId, partition_id
from fairness_pipeline.lineage.lineage import Lineage
from fairness_pipeline.lineage.plan import Selection, reasons, selected
from fairness_pipeline.lineage.state import State
from fairness_pipeline.workspace.lake import Key, Lake, fingerprint


class Versions:
    """What a lake holds, and what of it is out of date.

    Args:
        lineage: The lineage of a profile.
        state: The content of its lake, if it was read already.

    Attributes:
        shown: The partitions that `run` makes by default, followed by those that were made on request.
        cards: The cards of the partitions that were made.
        stale: Why partitions must be made, by partition; up-to-date ones are left out.
        ready: The stale partitions that `run` makes by default and that wait for no other one.
    """

    def __init__(self, lineage: Lineage, state: State | None = None) -> None:
        state = state or State(lineage, Lake(lineage.project.workspace))
        default, on_request = partitions_shown(lineage)
        self.shown = [*default, *on_request]
        self.cards = {partition_id(*partition): card for partition in self.shown if (card := state.card(*partition))}
        # No other partition waits for one that is made on request: a report lists what exists.
        self.stale = reasons(state, default)
        self.ready = [
            partition
            for partition in default
            if partition_id(*partition) in self.stale
            and not any(partition_id(*source) in self.stale for source in lineage.sources(*partition))
        ]
        self.stale |= reasons(state, on_request, self.stale)

    def of(self, where: PartitionId) -> str:
        """The fingerprint of a partition that is up to date; for others a hash of what is out of date."""
        card = self.cards.get(where)
        if card and where not in self.stale:
            return card.fingerprint
        return fingerprint({"was": card.fingerprint if card else None, "why": self.stale.get(where)})

    @property
    def fingerprint(self) -> str:
        """A hash of everything that is known here."""
        partitions = [partition_id(*partition) for partition in self.shown]
        contents = [card.content if (card := self.cards.get(partition)) else None for partition in partitions]
        return fingerprint(
            {"places": partitions, "contents": contents, "versions": [self.of(partition) for partition in partitions]}
        )


def partitions_shown(lineage: Lineage) -> tuple[list[tuple[str, Key]], list[tuple[str, Key]]]:
    """The partitions that `run` makes by default, and the others that were made; each upstream before downstream."""
    lake = Lake(lineage.project.workspace)
    default = list(selected(lineage, Selection()))
    known = {partition_id(*partition) for partition in default}
    others = ((name, key) for name in lineage.assets for key in lineage.keys(name))
    return default, [
        partition for partition in others if partition_id(*partition) not in known and lake.has(*partition)
    ]
