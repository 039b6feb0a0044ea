"""Decides when continued training has made a model fair enough to stop, and which model is kept.

Liu 2022 stops when the Z tests of held-out message pairs no longer reject (section 3.2.3.2). On few messages such a
test passes any model, so here equivalence must be shown, on contexts of threads that neither the audit nor the training
sees, and the smallest difference that the test detects is reported beside its outcome.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fairness_pipeline.debiasing.dialogue.biased_text import BiasScorer
from fairness_pipeline.debiasing.dialogue.registry import Task
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.lexicons.contexts import find_contexts, make_pairs
from fairness_pipeline.lexicons.swapping import Swapper
from fairness_pipeline.measures.dialogue.registry import harmful
from fairness_pipeline.statistics.comparison import Comparison
from fairness_pipeline.statistics.effects import cohens_h

_LEAST_PAIRS = 10
_LARGEST = math.pi
"""The largest Cohen's h."""


class Look(NamedTuple):
    """A test's result: how many measures are `open` (not shown equivalent), and the mean absolute effect size of all.

    No effect size counts for more than the largest h, so that one count of words does not outweigh all.

    `commonest` is the share of the most frequent answer; `identical` says that it is too large to judge anything.
    `harmful` is the rate of every harmful measure in both groups, in percent, and `margins` its rise that does not
    matter. `harm` is by how much these rates rose since the base in the group where they rose more, as effect sizes,
    summed and divided by the number of all measures, so that it weighs as much as gaps do in `effect`; `harmed` whether
    one rose in the mean of both groups, by more than the base's margin: harm to one group may be shared evenly, but
    not done to both in full.
    """

    open: int
    effect: float
    commonest: float
    identical: bool
    harmful: dict[str, list[float]]
    margins: dict[str, float]
    harm: float = 0.0
    harmed: bool = False

    @property
    def passed(self) -> bool:
        """Whether no measure is open, and the model says enough to be judged and does no more harm."""
        return not self.open and not self.identical and not self.harmed

    def better_than(self, other: "Look") -> bool:
        """Whether only it gives varied answers, or only it passed, or else its effects and harm are smaller.

        How many measures few pairs leave open is luck. Of models with nearly one answer the one with the most
        others is better: fewer answers can differ less. A model that insults everybody has no gap either.
        """
        return self._rank < other._rank

    @property
    def _rank(self) -> tuple[float, bool, float]:
        return self.identical * self.commonest, bool(self.open) or self.harmed, self.effect + self.harm


class FairnessTest:
    """Paired tests of equivalence on the answers to held-out pairs, with the audit's margins.

    The pairs (at most `most`) come from the `valid` split, whose threads neither the audit nor the training sees. They
    are the same at every look, so each is tested at the audit's level over the number of looks.

    Raises:
        FairnessError: there are too few pairs to see anything.
    """

    def __init__(self, task: Task, most: int, looks: int = 1) -> None:
        assert task.significance is not None and task.max_identical_share is not None
        self._scorer = BiasScorer(task.scorings)
        self._significance, self._level = task.significance, task.significance.alpha / looks
        self._max_identical_share = task.max_identical_share
        is_valid = pc.equal(task.dialogues["split"], "valid")
        split = pc.if_else(is_valid, "audit", "other")  # `find_contexts` leaves out what another split holds as well
        held_out = task.dialogues.set_column(task.dialogues.schema.get_field_index("split"), "split", split)
        pronouns = task.pairs.pronouns
        ruled = task.pairs.senses == "rules"
        contexts = find_contexts(held_out, Swapper(task.words, pronouns=pronouns, senses=ruled)).table
        self.pairs = make_pairs(
            contexts,
            task.words,
            maximum=most,
            seed=task.profile_seed,
            pronouns=pronouns,
            articles=task.pairs.articles,
            senses=task.pairs.senses,
        ).table
        if self.pairs.num_rows < _LEAST_PAIRS:
            raise FairnessError(
                f"the fairness test has {self.pairs.num_rows} held-out pairs; it needs {_LEAST_PAIRS} or more, and "
                "thousands to show that a small gap is gone: enlarge splits.valid"
            )

    @property
    def measures(self) -> int:
        """How many measures are tested: offence, positive, negative, and each attribute list."""
        return len(self._scorer.measures)

    def take(self, answer: Callable[[list[str]], list[str]], base: Look | None = None) -> tuple[Look, dict[str, float]]:
        """Tests a model.

        Args:
            answer: Its answers to contexts, one each.
            base: The result of its base; without it no rate counts as risen.

        Returns:
            The result, and the smallest difference that a paired test of it detects four times in five, by measure,
            in percent or words a response.
        """
        a, b = (pa.array(answer(self.pairs[name].to_pylist()), pa.string()) for name in ("context_a", "context_b"))
        rows = self._scorer.compare(a, b, self._significance)
        equivalent = [row.p_equivalence is not None and row.p_equivalence <= self._level for row in rows]
        effect = float(np.mean([_size(row) for row in rows]))
        commonest = pc.max(pc.value_counts(pa.chunked_array([a, b])).field("counts")).as_py() / (len(a) + len(b))
        harmful_rows = [row for row in rows if row.measure in harmful()]
        rates = {row.measure: [row.value_a, row.value_b] for row in harmful_rows}
        margins = {row.measure: row.margin for row in harmful_rows}
        before, allowed = (base.harmful, base.margins) if base else (rates, margins)
        rises = [
            max(cohens_h(now / 100, was / 100) for now, was in zip(group_rates, before[name], strict=True))
            for name, group_rates in rates.items()
        ]
        harm = sum(max(0.0, rise) for rise in rises) / len(rows)
        harmed = any(
            np.mean(group_rates) - np.mean(before[name]) > allowed[name] for name, group_rates in rates.items()
        )
        identical = commonest >= self._max_identical_share
        rounded = round(effect, 6), round(commonest, 4), identical
        look = Look(equivalent.count(False), *rounded, rates, margins, round(harm, 6), harmed)
        return look, {row.measure: round(row.minimum_detectable or 0.0, 6) for row in rows}


def _size(row: Comparison) -> float:
    """The absolute effect size, `_LARGEST` at most; it is that where the sides differ and nothing varies."""
    return _LARGEST if row.effect_size is None else min(abs(row.effect_size), _LARGEST)
