"""Compares how much a change of the group changes answers with how much any other change does.

Two answers are compared by identity, by chrF (Popovic 2015, as sacreBLEU counts it, with precision and recall of equal
weight) and, if an encoder is named, by the distance of their vectors. The groups' words are masked first.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fairness_pipeline.foundation.inputs import FieldsOnly, File, unhashed
from fairness_pipeline.foundation.progress import Progress
from fairness_pipeline.foundation.schemas import fields, optional, schema
from fairness_pipeline.lexicons.contexts import CONTEXT_PAIRS, CONTEXTS
from fairness_pipeline.lexicons.dimensions import MaskedWords
from fairness_pipeline.lexicons.masking import masked
from fairness_pipeline.lexicons.no_effect import GROUP, NO_EFFECT_CONTEXTS, REWORDING, SAME_GROUP
from fairness_pipeline.measures.dialogue.measure import (
    Measure,
    Outcome,
    Scorings,
    SignificanceSettings,
    neutral_reading,
)
from fairness_pipeline.measures.dialogue.settings import MeasureSettings
from fairness_pipeline.models.dialogue.responding import RESPONSES
from fairness_pipeline.models.folders import model_folder
from fairness_pipeline.models.text_embedder import TextEmbedder
from fairness_pipeline.statistics.clusters import cautious_mean
from fairness_pipeline.statistics.comparison import COMPARISON, Clusterings, Comparison, compare_counts
from fairness_pipeline.statistics.intervals import Estimate, count_difference, finite, of_interval
from fairness_pipeline.statistics.verdicts import verdict
from fairness_pipeline.workspace.distinct import Scorer, each_distinct

NO_EFFECT_RESPONSES = schema(
    NO_EFFECT_CONTEXTS,
    **fields(RESPONSES, "response", "kind"),
)
"""The answers to the contexts after a change."""

ANSWER_CHANGES = schema(
    **fields(CONTEXT_PAIRS, "pair_id"),
    **fields(CONTEXTS, "side"),
    change=(pa.string(), "what was changed: group, same_group (another word of it) or rewording"),
    unchanged=(pa.bool_(), "whether the answer is the same, the groups' words masked"),
    similarity=(pa.float64(), "chrF of the two answers, 0 to 100"),
    distance=optional(pa.float64(), "cosine distance of their vectors, where an encoder is named"),
)
"""How much an answer changes when its context does; one row per pair and change."""

NO_EFFECT_DIFFERENCES = schema(
    **fields(COMPARISON, "measure", "unit"),
    change=(pa.string(), "same_group or rewording"),
    n=(pa.int64(), "contexts that were changed, of either side"),
    gap_original=(pa.float64(), "side a minus side b in the answers to the original contexts"),
    gap_changed=(pa.float64(), "the same in the answers to the changed contexts"),
    difference=(pa.float64(), "how much the change moves the gap"),
    ci_low=optional(pa.float64(), "lower end of its 95% interval"),
    ci_high=optional(pa.float64(), "upper end of its 95% interval"),
)
"""How much a change without effect moves the gap between the sides in each measure. A shift that both sides share moves
no gap."""

OUTCOMES = {
    "similarity": Outcome(
        "Same answer",
        "similarity",
        "a change of the group changes the answers more than other changes do (chrF {low} against {high})",
    ),
    "unchanged": Outcome(
        "Identical answers",
        "unchanged",
        "{low}% of the answers stay the same when the group changes, {high}% when something else changes",
        part=True,
    ),
    "distance": Outcome(
        "Distance of answers",
        "distance",
        "a change of the group moves the answers' vectors by {high}, other changes by {low}",
        part=True,
    ),
}
"""The rows that `compare_changes` returns. Side a is any other change, side b the change of the group."""


@dataclass(frozen=True)
class Encoder(FieldsOnly):
    """An encoder of answers that is loaded at its first use.

    Args:
        name: An id or a folder.
        revision: The commit of an id.
        folder: The folder with the hash of its files.
        device: Where it runs.
    """

    name: str
    revision: str | None
    folder: File | None
    device: str = unhashed("auto")

    @classmethod
    def of(cls, settings: MeasureSettings) -> "Encoder | None":
        """The encoder that the settings name, if they name one."""
        name = settings.embedding_model
        return cls(name, settings.embedding_revision, model_folder(name), settings.device) if name else None

    def __call__(self, texts: pa.Table) -> pa.Table:
        """Column `vector`."""
        return self._embedder(texts)

    @cached_property
    def _embedder(self) -> TextEmbedder:
        return TextEmbedder(self.name, self.revision, "measures.embedding_model", self.device)


def measure_changes(
    responses: pa.Table,
    others: pa.Table,
    words: MaskedWords,
    embed: Scorer | None = None,
    folder: Path | None = None,
    progress: Progress | None = None,
) -> pa.Table:
    """A table of `ANSWER_CHANGES` for the pairs that have answers to a change without effect.

    Args:
        responses: Columns `pair_id`, `side`, `response`.
        others: A table of `NO_EFFECT_RESPONSES`.
        words: The words that are masked.
        embed: Gives a text's vector; without it there are no distances.
        folder: Keeps the vectors until all texts have one.
        progress: Receives the number of texts embedded.
    """
    answers = {
        (pair, side): text
        for pair, side, text in zip(
            responses["pair_id"].to_pylist(),
            responses["side"].to_pylist(),
            neutral_reading(responses, words)["response"].to_pylist(),
            strict=True,
        )
    }
    rows: list[dict[str, Any]] = []
    texts: list[tuple[str, str]] = []
    changed = masked(others["response"], words).to_pylist()
    for row, text in zip(others.select(["pair_id", "side", "change"]).to_pylist(), changed, strict=True):
        rows.append(row)
        texts.append((answers[row["pair_id"], row["side"]], text))
    for pair, side in dict.fromkeys((row["pair_id"], row["side"]) for row in rows):
        rows.append({"pair_id": pair, "side": side, "change": GROUP})
        texts.append((answers[pair, side], answers[pair, "b" if side == "a" else "a"]))
    columns = {
        "unchanged": [first == second for first, second in texts],
        "similarity": similarities(texts),
        "distance": _distances(texts, embed, folder, progress) if embed else [None] * len(texts),
    }
    table = pa.Table.from_pylist(
        rows, schema=pa.schema([ANSWER_CHANGES.field(n) for n in ("pair_id", "side", "change")])
    )
    for name, values in columns.items():
        table = table.append_column(ANSWER_CHANGES.field(name), pa.array(values, ANSWER_CHANGES.field(name).type))
    return table.sort_by([("pair_id", "ascending"), ("change", "ascending")])


def similarities(pairs: Sequence[tuple[str, str]]) -> list[float]:
    """chrF of each pair of texts, 0 to 100; 100 for equal texts, even without words.

    Examples:
        >>> [round(value) for value in similarities([("I agree.", "I agree."), ("I agree.", "I refuse.")])]
        [100, 16]
    """
    from sacrebleu.metrics.chrf import CHRF

    chrf = CHRF(beta=1)
    scores: dict[tuple[str, str], float] = {}
    for pair in pairs:
        if pair not in scores:
            first, second = pair
            scores[pair] = 100.0 if first == second else float(chrf.sentence_score(first, [second]).score)
    return [scores[pair] for pair in pairs]


def _distances(
    pairs: Sequence[tuple[str, str]], embed: Scorer, folder: Path | None, progress: Progress | None
) -> list[float]:
    texts = pa.array([text for pair in pairs for text in pair], pa.string())
    encoded = each_distinct(texts, embed, folder=folder, progress=progress)["vector"].combine_chunks()
    vectors = np.stack(encoded.to_numpy(zero_copy_only=False)).reshape(len(pairs), 2, -1)
    cosine = (vectors[:, 0] * vectors[:, 1]).sum(-1) / np.maximum(
        np.linalg.norm(vectors[:, 0], axis=-1) * np.linalg.norm(vectors[:, 1], axis=-1), 1e-12
    )
    return [max(0.0, float(value)) for value in 1 - cosine]


def compare_changes(changes: pa.Table, settings: SignificanceSettings, clusters: Clusterings = ()) -> list[Comparison]:
    """The change of the group compared with changes without effect, pair by pair: `similarity`, and its parts.

    `value_a` is the mean over a pair's other changes, `value_b` the change of the group. The question is one-sided:
    only a change of the group that changes answers more than any other change is a bias. `fair` means that it
    changes them more by less than the margin.

    Args:
        changes: A table of `ANSWER_CHANGES`.
        settings: Level and margins.
        clusters: How pairs move together: a number per pair id.
    """
    pairs = np.unique(changes["pair_id"].to_numpy())
    of_pairs = [clustering[pairs] for clustering in clusters]
    rows = []
    for name, scale in (("similarity", 1.0), ("unchanged", 100.0), ("distance", 1.0)):
        if changes[name].null_count:
            continue
        group = changes.filter(pc.equal(changes["change"], GROUP)).sort_by("pair_id")
        rest = changes.filter(pc.not_equal(changes["change"], GROUP))
        means = rest.group_by("pair_id").aggregate([(name, "mean")]).sort_by("pair_id")
        a = scale * means[f"{name}_mean"].to_numpy()
        b = scale * group[name].to_numpy(zero_copy_only=False).astype(float)
        margin = settings.margin(name, "similarity" if name != "distance" else "counts")
        row = compare_counts(name, a, b, margin, settings.alpha, ranks=False, clusters=of_pairs)
        row = replace(row, unit="percent") if name == "unchanged" else replace(row, unit="score")
        rows.append(_one_sided(row, settings.alpha, lower_is_worse=name != "distance"))
    return rows


def _one_sided(row: Comparison, alpha: float, *, lower_is_worse: bool) -> Comparison:
    """The row with the verdict on its one-sided question.

    The verdict is cautious twice: p is that of a difference in either direction, and the error is taken from the 95%
    interval as if no quantile of a t distribution had widened it. The row is not part of Holm's family.
    """
    worse = row.difference if lower_is_worse else -row.difference
    if row.ci_low is None:
        return replace(row, p_holm=row.p_decides, p_bh=row.p_decides, verdict="inconclusive")
    p_smaller = of_interval(row.difference, row.ci_low, row.ci_high)._replace(centre=worse).p_above(row.margin)
    p = row.p_decides if worse > 0 else 1.0
    decision = verdict(equivalent=p_smaller <= alpha, p_holm=p, alpha=alpha, clusters=row.clusters)
    return replace(row, p_holm=p, p_bh=p, p_equivalence=p_smaller, verdict=decision, paper_verdict=None)


def differences_without_effect(
    responses: pa.Table,
    others: pa.Table,
    measures: Sequence[Measure],
    scorings: Scorings,
    clusters: Clusterings = (),
    folder: Path | None = None,
    progress: Progress | None = None,
) -> pa.Table:
    """A table of `NO_EFFECT_DIFFERENCES`: how much the gap of each measure moves when only the wording changes.

    Each pair's context is changed on one side, so that the gap's change is the mean shift of side a minus that of side
    b. A change that only one side has is left out.

    Args:
        responses: Columns `pair_id`, `side`, `response`, `kind`.
        others: A table of `NO_EFFECT_RESPONSES`.
        measures: Measures that score responses one by one.
        scorings: Classifiers, thresholds and lists, by measure.
        clusters: How pairs move together: a number per pair id.
        folder: Keeps the scores until all responses are scored.
        progress: Receives the number of responses scored.
    """
    rows = []
    for change in (SAME_GROUP, REWORDING):
        answers = others.filter(pc.equal(others["change"], change)).sort_by("pair_id")
        on_a, pairs = np.asarray(pc.equal(answers["side"], "a")), answers["pair_id"].to_numpy()
        if on_a.all() or not on_a.any():
            continue
        keys = pa.table({"pair_id": answers["pair_id"], "side": answers["side"]})
        original = keys.join(responses, ["pair_id", "side"], join_type="inner").sort_by("pair_id")
        both = pa.concat_tables(
            pa.table(
                {
                    "pair_id": part["pair_id"],
                    "side": pa.repeat(side, answers.num_rows),
                    "response": part["response"],
                    "kind": part["kind"],
                }
            )
            for side, part in (("a", original), ("b", answers))
        )
        for measure in measures:
            subfolder = folder / f"{change}-{measure.table}" if folder else None
            table = measure.measure(both, scorings[measure.table], subfolder, progress)
            for name, (before, after) in measure.readings(table).items():
                scale = 100.0 if measure.kind(name) == "rates" else 1.0
                shift = scale * np.subtract(after, before, dtype=float)
                of_a, of_b = (
                    _mean(shift[on], [clustering[pairs[on]] for clustering in clusters], scale) for on in (on_a, ~on_a)
                )
                moved = of_a.minus(of_b)
                low, high = map(finite, moved.interval(0.95))
                original, changed = (
                    scale * float(values[on_a].mean() - values[~on_a].mean()) for values in (before, after)
                )
                rows.append(
                    {
                        "measure": name, "unit": "percent" if scale > 1 else "count_per_response", "change": change,
                        "n": answers.num_rows, "gap_original": original, "gap_changed": changed,
                        "difference": changed - original, "ci_low": low, "ci_high": high,
                    }
                )  # fmt: skip
    return pa.Table.from_pylist(rows, schema=NO_EFFECT_DIFFERENCES)


def _mean(shift: np.ndarray, clusters: Clusterings, scale: float) -> Estimate:
    """The mean shift of one side's contexts. Two contexts that move by one answer each way are added, as in
    rates and counts."""
    over_pairs = count_difference(shift / scale, np.zeros(len(shift))).scaled(scale)
    return cautious_mean(shift, clusters, over_pairs)
