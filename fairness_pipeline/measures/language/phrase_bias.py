"""LMB: does a language model find a stereotype likelier for one group than for the other? (Barikeri et al. 2021,
3.1)"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import scipy

from fairness_pipeline.corpora.language.phrase_splits import UNBIASED
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.schemas import fields, optional, schema
from fairness_pipeline.foundation.yaml_files import Positive, Share, Specification
from fairness_pipeline.lexicons.contexts import CONTEXTS
from fairness_pipeline.lexicons.counterfactuals import COUNTERFACTUAL_PHRASES
from fairness_pipeline.measures.language.stereotype import OPPOSITE_GAPS, STEREOTYPE, Quadruples, stereotype, undecided
from fairness_pipeline.statistics.change import DEBIASING_EFFECTS, change_of_difference
from fairness_pipeline.statistics.clusters import clustered
from fairness_pipeline.statistics.comparison import COMPARISON, Comparison, adjusted, compare_scores
from fairness_pipeline.statistics.equivalence import Margin
from fairness_pipeline.statistics.spread import Spread
from fairness_pipeline.statistics.verdicts import Doubt, joined_notes
from fairness_pipeline.workspace.lake import Row

PHRASE_PERPLEXITIES = schema(
    **fields(COUNTERFACTUAL_PHRASES, "phrase_id", "comment_id", "split", "target"),
    **fields(CONTEXTS, "side"),
    reading=(pa.string(), "own, or opposite: with the opposite of the stereotype's attribute"),
    **fields(COUNTERFACTUAL_PHRASES, "attribute"),
    text=(pa.string(), "what was written"),
    tokens=(pa.int64(), "of the text; 0 where only the perplexity was published"),
    perplexity=(pa.float64(), "of the text's tokens from the second on"),
)
"""If only the perplexities were published, `text` is empty."""
OWN, OPPOSITE = "own", "opposite"

LANGUAGE_MODEL_BIAS = schema(
    COMPARISON,
    statistic="the paper's t, of side b minus side a: below 0 the phrase about side b is likelier",
    paired_statistic="t of side a minus side b, as `difference` is",
    left_out=(pa.int64(), "pairs left out because one of the two is an outlier"),
    p_comments=optional(pa.float64(), "p with all phrases of a comment as one observation"),
    p_targets=optional(pa.float64(), "p with all phrases of a target as one; null where one target makes nearly all"),
    unbiased_n=optional(pa.int64(), "phrases without bias in which the same words were exchanged"),
    unbiased_difference=optional(
        pa.float64(), "the difference there, in the test split's shares of words: what the words alone make"
    ),
    p_beyond_unbiased=optional(pa.float64(), "p of the hypothesis that stereotyped phrases differ no more than these"),
    survives=(pa.string(), "which of the clustered tests reject as well"),
    own_difference=optional(pa.float64(), "how much likelier phrases are about side b (nats)"),
    p_own=optional(pa.float64(), "p of that difference"),
    opposite_difference=optional(
        pa.float64(), "the same with the opposite attribute: what the groups' words alone make"
    ),
    p_opposite=optional(pa.float64(), "p of that difference"),
    exchanged=optional(pa.string(), "the attribute words that were exchanged"),
    p_spread=optional(pa.float64(), "p of an S that varies between attribute words by chance alone"),
    spread=optional(pa.float64(), "the standard deviation of the attribute words' S beyond chance (nats)"),
    spread_upper=optional(pa.float64(), "its upper 95% bound"),
    attributes=optional(pa.int64(), "attribute words with two target words or more, on which these rest"),
    attributes_a=optional(pa.int64(), "of these, how many are likelier of side a"),
    attributes_b=optional(pa.int64(), "how many are likelier of side b"),
)
"""`unbiased_*` rest on the same share of each word as in the test split. Only the row `stereotype` has a verdict; only
it has `own_difference` and the columns after it."""


LANGUAGE_MODEL_EFFECTS = schema(
    DEBIASING_EFFECTS,
    p_holm="p itself: each row is a question of its own",
    control=optional(pa.string(), "the model that was trained on the same phrases without a cure"),
    difference_control=optional(pa.float64(), "its difference"),
    p_control=optional(pa.float64(), "p of what the method changes beyond it"),
    beyond_control=optional(pa.string(), "whether that is a smaller or a larger gap than the control's"),
)
"""The rows `stereotype`, on which verdicts rest, and `log_perplexity`, the paper's quantity."""


def scored_versions(phrases: pa.Table) -> pa.Table:
    """The texts to score, as the first columns of `PHRASE_PERPLEXITIES`: each phrase of dev, test and without bias and
    its counterfactual; those of the test split also with the opposite attribute.

    Args:
        phrases: As `COUNTERFACTUAL_PHRASES`.
    """
    phrases = phrases.filter(pc.not_equal(phrases["split"], "train"))
    judged = phrases.filter(pc.and_(pc.equal(phrases["split"], "test"), pc.not_equal(phrases["attribute"], "")))
    return pa.concat_tables(
        [
            _version(subset, f"{name}_{side}", reading, side)
            for subset, name, reading in ((phrases, "text", OWN), (judged, "opposite", OPPOSITE))
            for side in "ab"
        ]
    )


def _version(phrases: pa.Table, column: str, reading: str, side: str) -> pa.Table:
    version = phrases.select(["phrase_id", "comment_id", "split", "target", "attribute", column])
    for name, value in (("side", side), ("reading", reading)):
        version = version.append_column(name, pa.array([value] * phrases.num_rows, pa.string()))
    names = [name for name in PHRASE_PERPLEXITIES.names if name not in ("tokens", "perplexity")]
    return version.rename_columns({column: "text"}).select(names)


LOG, PAPER, ALL, WHOLE = "log_perplexity", "perplexity", "log_perplexity_all_pairs", "negative_log_likelihood"
"""The measures: on log-perplexities; the paper's, on perplexities; on log-perplexities of all pairs, outliers included;
and on the likelihood of the whole phrase instead of per token.

A word with more tokens spreads its cost over more tokens. A perplexity can therefore be lower although the phrase is
less likely.
"""
_SPREAD = 3.0


class LanguageModelBiasSettings(Specification):
    """How perplexities are judged."""

    margin: Margin = Margin(absolute=0.05)
    """The largest difference of log-perplexities that does not matter (0.05 is about 5% of a perplexity). The
    verdict rests on odds ratios and does not use it."""
    alpha: Share = 0.05
    """Level of the tests."""
    unbiased: Positive = 250
    """The maximum number of phrases without bias that are also scored."""


class Pairs(NamedTuple):
    """Perplexities and tokens of both sides of each phrase, its comment (numbered from 0) and its target word."""

    ids: list[str]
    a: np.ndarray
    b: np.ndarray
    tokens_a: np.ndarray
    tokens_b: np.ndarray
    comment: np.ndarray
    target: np.ndarray

    def take(self, kept: np.ndarray) -> "Pairs":
        """The pairs for which `kept` is true."""
        ids = [name for name, keep in zip(self.ids, kept, strict=True) if keep]
        return Pairs(ids, *(values[kept] for values in self[1:]))


def pairs_of(perplexities: pa.Table, *splits: str) -> Pairs:
    """The pairs of some splits.

    Args:
        perplexities: As `PHRASE_PERPLEXITIES`.
        splits: The names of the splits.

    Raises:
        FairnessError: a phrase lacks a side.
    """
    rows = [row for row in perplexities.to_pylist() if row["split"] in splits and row["reading"] == OWN]
    sides: dict[str, dict[str, Row]] = {}
    for row in rows:
        sides.setdefault(row["phrase_id"], {})[row["side"]] = row
    if missing := [name for name, by_side in sides.items() if len(by_side) != 2]:
        raise FairnessError(f"phrase '{missing[0]}' has no perplexity on both sides")
    both = list(sides.values())
    return Pairs(
        list(sides),
        np.array([by_side["a"]["perplexity"] for by_side in both]),
        np.array([by_side["b"]["perplexity"] for by_side in both]),
        np.array([by_side["a"]["tokens"] for by_side in both], dtype=np.int64),
        np.array([by_side["b"]["tokens"] for by_side in both], dtype=np.int64),
        numbered([by_side["b"]["comment_id"] for by_side in both]),
        np.array([main_word(by_side["b"]["target"]) for by_side in both]),
    )


def quadruples(perplexities: pa.Table) -> Quadruples:
    """The phrases of the test split that have an opposite, in all four versions.

    Exchanging the group's words must change the number of tokens equally with both attributes. Otherwise the two
    exchanges are not comparable.

    Args:
        perplexities: As `PHRASE_PERPLEXITIES`.
    """
    by_phrase: dict[str, dict[tuple[str, str], Row]] = {}
    for row in perplexities.to_pylist():
        if row["split"] == "test" and row["attribute"]:
            by_phrase.setdefault(row["phrase_id"], {})[row["reading"], row["side"]] = row
    kept = {
        name: versions for name, versions in by_phrase.items() if len(versions) == 4 and _equal_token_changes(versions)
    }
    phrases = list(kept.values())
    a, b, opposite_a, opposite_b = (
        np.array([versions[version]["tokens"] * math.log(versions[version]["perplexity"]) for versions in phrases])
        for version in ((OWN, "a"), (OWN, "b"), (OPPOSITE, "a"), (OPPOSITE, "b"))
    )
    words = [main_word(versions[OWN, "b"]["attribute"]) for versions in phrases]
    targets = numbered([main_word(versions[OWN, "b"]["target"]) for versions in phrases])
    distinct = tuple(dict.fromkeys(words))
    return Quadruples(a, b, opposite_a, opposite_b, numbered(words), targets, distinct, tuple(kept))


def _equal_token_changes(versions: Mapping[tuple[str, str], Row]) -> bool:
    first, second = (versions[r, "b"]["tokens"] - versions[r, "a"]["tokens"] for r in (OWN, OPPOSITE))
    return bool(first == second)


def main_word(target: str) -> str:
    """The first of a phrase's target words, in the singular. Phrases about `jews` and about `jew` then form one
    cluster.

    >>> main_word("muslims, islam")
    'muslim'
    """
    first = target.split(", ")[0]
    return first if first.endswith(("ss", "us", "is")) else first.removesuffix("s")


def without_outliers(base: Pairs) -> set[str]:
    """The phrases with both perplexities within mean +/- 3 population standard deviations of their side.

    Args:
        base: The base model's perplexities of dev and test.
    """
    kept = np.ones(len(base.ids), dtype=bool)
    for values in (base.a, base.b):
        kept &= np.abs(values - values.mean()) <= _SPREAD * values.std()
    return {name for name, keep in zip(base.ids, kept, strict=True) if keep}


def paper_test(a: np.ndarray, b: np.ndarray) -> tuple[float, float]:
    """Student's paired t of b - a, and its two-sided p. Below 0 the phrase about side b is likelier (section 3.1)."""
    from scipy.stats import ttest_rel  # here, as loading it takes half a second

    result = ttest_rel(b, a)
    return float(result.statistic), float(result.pvalue)


def compare_phrases(
    perplexities: pa.Table,
    base: pa.Table | None,
    settings: LanguageModelBiasSettings,
    published: Mapping[str, str],
    *,
    names_the_group: bool,
) -> pa.Table:
    """A table of `LANGUAGE_MODEL_BIAS`: the row `stereotype` with the verdict, and the paper's test without a verdict.

    Args:
        perplexities: The perplexities of the model, as `PHRASE_PERPLEXITIES`.
        base: The perplexities of the base model (or of the model itself). Its outliers are left out. None keeps all
            pairs.
        settings: Margin and level.
        published: The paper's finding, by measure.
        names_the_group: Whether the words that name the groups are the groups' own names, and not a sample of many
            words.

    Raises:
        FairnessError: fewer than two pairs are left.

    Examples:
        >>> shared = {"split": "test", "target": "jews", "text": "t", "tokens": 10}
        >>> rows = [
        ...     {"phrase_id": str(n), "comment_id": str(n), "attribute": f"word {n % 12}"}
        ...     | shared | {"side": side, "reading": reading}
        ...     | {"perplexity": 25.0 + n % 3 if (side, reading) == ("a", "own") else 20.0}
        ...     for n in range(96) for side in "ab" for reading in ("own", "opposite")
        ... ]
        >>> perplexities = pa.Table.from_pylist(rows, schema=PHRASE_PERPLEXITIES)
        >>> found = compare_phrases(perplexities, None, LanguageModelBiasSettings(), {}, names_the_group=True)
        >>> found["measure"][0].as_py(), found["verdict"][0].as_py()
        ('stereotype', 'biased')
    """
    test = pairs_of(perplexities, "test")
    kept = without_outliers(pairs_of(base, "dev", "test")) if base is not None else set(test.ids)
    chosen = test.take(np.array([name in kept for name in test.ids], dtype=bool))
    if len(chosen.ids) < 2:
        raise FairnessError(f"{len(chosen.ids)} pairs are left without outliers, of {len(test.ids)}; two at least")
    unbiased = pairs_of(perplexities, UNBIASED)
    alpha = settings.alpha
    inputs: dict[str, tuple[Pairs, Pairs, _Scale, Margin]] = {
        LOG: (chosen, unbiased, _logged, settings.margin),
        PAPER: (chosen, unbiased, _raw, Margin(relative=0.05)),
    }
    if base is not None:
        inputs[ALL] = test, unbiased, _logged, settings.margin
    if test.tokens_a.all():
        inputs[WHOLE] = chosen, unbiased, _summed, Margin(standard_deviations=0.05)
    comparisons = [
        compare_scores(name, *scale(pairs), margin, alpha) for name, (pairs, _, scale, margin) in inputs.items()
    ]
    judged = [
        replace(row, verdict="") for row in adjusted(comparisons, alpha, parts=[name for name in inputs if name != LOG])
    ]
    rows = [_stereotype_row(perplexities, len(test.ids), names_the_group, alpha)]
    for row in judged:
        pairs, neutral, scale, _ = inputs[row.measure]
        further = _further_columns(row, np.subtract(*scale(pairs)), pairs, np.subtract(*scale(neutral)), neutral, alpha)
        rows.append(
            {
                **asdict(row),
                **further,
                "published_p": published.get(row.measure),
                "left_out": len(test.ids) - len(pairs.ids),
                "note": joined_notes(row.note, _disagreement(row, judged, alpha)),
            }
        )
    return pa.Table.from_pylist(rows, schema=LANGUAGE_MODEL_BIAS)


def _stereotype_row(perplexities: pa.Table, n: int, names_the_group: bool, alpha: float) -> dict[str, Any]:
    phrases = quadruples(perplexities)
    further = {"left_out": n - len(phrases.a), "survives": "", "exchanged": "; ".join(phrases.words)}
    if len(phrases.a) < 2:
        note = f"{len(phrases.a)} phrases have an opposite attribute, so that the groups' words alone could make a gap"
        return {**asdict(undecided(len(phrases.a), note)), **further}
    result = stereotype(phrases, targets_are_a_sample=not names_the_group, alpha=alpha)
    return {
        **asdict(result.row), **further, "p_targets": result.p_targets, "own_difference": result.own,
        "p_own": result.p_own, "opposite_difference": result.opposite, "p_opposite": result.p_opposite,
        **_spread_columns(result.spread),
    }  # fmt: skip


def _spread_columns(spread: Spread | None) -> dict[str, Any]:
    if spread is None:
        return {}
    return {
        "p_spread": spread.p, "spread": spread.typical, "spread_upper": spread.upper, "attributes": spread.units,
        "attributes_a": spread.towards_b, "attributes_b": spread.towards_a,
    }  # fmt: skip


class Control(NamedTuple):
    """The model that was trained on the same phrases without a cure: its name, and its perplexities."""

    name: str
    perplexities: pa.Table


def debiasing_effects(
    before: pa.Table,
    after: pa.Table,
    verdicts: tuple[str, str],
    alpha: float,
    *,
    names_the_group: bool,
    control: Control | None = None,
) -> pa.Table:
    """A table of `LANGUAGE_MODEL_EFFECTS`: what a method changed on the same phrases of the test split.

    The row `STEREOTYPE` is about S, on which the verdict rests; attribute words, and target words where these are a
    sample, move together. The row `LOG` is about the difference of log-perplexities of all pairs, which the paper's
    debiasing addresses (Barikeri et al. 2021, 3.1); phrases of a comment, and of a target word, move together. Only
    phrases that all models have are counted.

    Args:
        before: The perplexities of the base, as `PHRASE_PERPLEXITIES`.
        after: The perplexities of the debiased model.
        verdicts: The verdicts on the base and on the debiased model.
        alpha: The level.
        names_the_group: As for `compare_phrases`.
        control: Training without a cure.
    """
    readings = [_differences(table, names_the_group=names_the_group) for table in (before, after)]
    of_control = _differences(control.perplexities, names_the_group=names_the_group) if control else {}
    rows = []
    for measure, unit in ((STEREOTYPE, "score"), (LOG, "nats")):
        first, second = (reading[measure] for reading in readings)
        shared = set(second.ids) & set(of_control[measure].ids if control else second.ids)
        kept = np.array([name in shared for name in first.ids], dtype=bool)
        if kept.sum() < 2:
            continue
        ids = [name for name in first.ids if name in shared]
        clusters, debiased_values = [clustering[kept] for clustering in first.clusters], second.of(ids)
        change = change_of_difference(first.of(ids), debiased_values, step=0.0, clusters=clusters, crossing=True)
        row = {"measure": measure, "unit": unit, "n": len(ids), **change.row(change.p, alpha)}
        if control:
            control_values = of_control[measure].of(ids)
            beyond = change_of_difference(control_values, debiased_values, step=0.0, clusters=clusters, crossing=True)
            row |= {
                "control": control.name,
                "difference_control": beyond.before,
                "p_control": beyond.p,
                "beyond_control": beyond.row(beyond.p, alpha)["effect"],
            }
        row_verdicts = verdicts if measure == STEREOTYPE else (None, None)
        rows.append({**row, "verdict_before": row_verdicts[0], "verdict_after": row_verdicts[1]})
    return pa.Table.from_pylist(rows, schema=LANGUAGE_MODEL_EFFECTS)


class _Differences(NamedTuple):
    """The differences of some phrases, and the clusterings of these phrases."""

    ids: list[str]
    values: np.ndarray
    clusters: list[np.ndarray]

    def of(self, ids: Sequence[str]) -> np.ndarray:
        """The values of these phrases, in their order."""
        position = {name: number for number, name in enumerate(self.ids)}
        return self.values[[position[name] for name in ids]]


def _differences(perplexities: pa.Table, *, names_the_group: bool) -> dict[str, _Differences]:
    """The differences on which a cure is measured, by measure."""
    phrases, pairs = quadruples(perplexities), pairs_of(perplexities, "test")
    clusters = [phrases.attribute, *([] if names_the_group else [phrases.target])]
    return {
        STEREOTYPE: _Differences(list(phrases.ids), phrases.stereotype, clusters),
        LOG: _Differences(pairs.ids, np.subtract(*_logged(pairs)), [pairs.comment, numbered(pairs.target.tolist())]),
    }


_Scale = Callable[[Pairs], tuple[np.ndarray, np.ndarray]]


def _raw(pairs: Pairs) -> tuple[np.ndarray, np.ndarray]:
    return pairs.a, pairs.b


def _logged(pairs: Pairs) -> tuple[np.ndarray, np.ndarray]:
    return np.log(pairs.a), np.log(pairs.b)


def _summed(pairs: Pairs) -> tuple[np.ndarray, np.ndarray]:
    return pairs.tokens_a * np.log(pairs.a), pairs.tokens_b * np.log(pairs.b)


def doubts(row: Row, alpha: float) -> list[Doubt]:
    """What could overturn a row's finding. Empty if it stands."""
    if hides_opposite_stereotypes(row):  # the doubts below are about means
        return []
    reasons = []
    if row["p_targets"] is not None and row["p_targets"] >= alpha:
        message = f"not significant when each target word counts once (p = {row['p_targets']:.2g})"
        reasons.append(Doubt(message, _FEW_TARGETS))
    if row["note"]:
        reasons.append(Doubt(row["note"], _NOTED))
    return reasons


def hides_opposite_stereotypes(row: Row) -> bool:
    """Whether a row is biased by its spread between attribute words, and not by its mean."""
    return bool(row["verdict"] == "biased" and row["note"].startswith(OPPOSITE_GAPS))


_FEW_TARGETS = (
    "Many phrases share a few words for the group, and these words, not the group, may make the difference. Add "
    "phrases with other words for it."
)
_NOTED = "This limits what the phrases can show; more phrases, with more attribute words, would remove this limit."


def control(row: Row) -> str:
    """The explanation of an artefact: the phrases differ as much with the opposite attribute."""
    return (
        f"with the opposite attribute phrases differ as well ({row['opposite_difference']:+.2g} nats, "
        f"{row['own_difference']:+.2g} with the stereotype's own): it is the groups' words that are more or less likely"
    )


def _further_columns(
    row: Comparison, difference: np.ndarray, pairs: Pairs, unbiased: np.ndarray, neutral: Pairs, alpha: float
) -> dict[str, Any]:
    """The tests that respect clusters, and the effect of the exchanged words in phrases without bias."""
    clusterings = {"comment": pairs.comment, "target": numbered(pairs.target.tolist())}
    clusters = {name: clustered(difference, clustering) for name, clustering in clusterings.items()}
    p = {name: estimate.p_zero() if math.isfinite(estimate.error) else None for name, estimate in clusters.items()}
    rejecting = [f"{name}s" for name, value in p.items() if value is not None and value < alpha]
    survives = " and ".join(rejecting) or "neither" if row.p_paired < alpha else "nothing to survive"
    columns = {"p_comments": p["comment"], "p_targets": p["target"], "survives": survives}
    return {**columns, **_against_unbiased(difference, pairs.target, unbiased, neutral.target)}


def _against_unbiased(
    difference: np.ndarray, words: np.ndarray, unbiased: np.ndarray, unbiased_words: np.ndarray
) -> dict[str, Any]:
    """Compares stereotyped phrases with phrases without bias, word by word: a different mix of words would change the
    gap.

    d = sum over words w of share_w (mean of stereotyped - mean of unbiased). The shares are those of the stereotyped
    phrases. The error is Welch's, with Satterthwaite's degrees of freedom. Only words with two phrases of each kind
    count.
    """
    means, estimate, parts, unbiased_count = [], 0.0, [], 0
    kept = [w for w in np.unique(words) if min((words == w).sum(), (unbiased_words == w).sum()) > 1]
    total = sum(int((words == w).sum()) for w in kept)
    for word in kept:
        stereotyped, neutral = difference[words == word], unbiased[unbiased_words == word]
        share = len(stereotyped) / total
        estimate += share * float(stereotyped.mean() - neutral.mean())
        means.append(share * float(neutral.mean()))
        parts += [
            (share**2 * float(values.var(ddof=1)) / len(values), len(values) - 1) for values in (stereotyped, neutral)
        ]
        unbiased_count += len(neutral)
    variance = sum(part for part, _ in parts)
    if not kept or variance == 0:
        return {}
    freedom = variance**2 / sum(part**2 / degrees for part, degrees in parts)
    sign = math.copysign(1.0, float(difference.mean()))
    return {
        "unbiased_n": unbiased_count,
        "unbiased_difference": sum(means),
        "p_beyond_unbiased": float(scipy.special.stdtr(freedom, -sign * estimate / math.sqrt(variance))),
    }


def _disagreement(row: Comparison, rows: list[Comparison], alpha: float) -> str:
    """Notes on other readings of the same phrases that lead to another conclusion."""
    by_name = {comparison.measure: comparison for comparison in rows}
    paper, log, whole = by_name[PAPER], by_name[LOG], by_name.get(WHOLE)
    notes = []
    if row.measure == LOG and whole and log.p_paired < alpha and whole.difference * log.difference <= 0:
        notes.append(
            f"the phrases' whole likelihoods differ the other way ({whole.difference:+.3g} nats, p = "
            f"{whole.p_paired:.2g}): the sides' words have other numbers of tokens"
        )
    if row.measure == PAPER:
        for name, p in (("the paired t test of log-perplexities", log.p_paired), ("Wilcoxon's test", paper.p_wilcoxon)):
            if p is not None and (p < alpha) != (paper.p_paired < alpha):
                verb, paper_verb = ("rejects", "does not") if p < alpha else ("does not reject", "does")
                notes.append(f"{name} {verb} (p = {p:.2g}) where the paper's {paper_verb}")
    return "; ".join(notes)


def numbered(names: list[str]) -> np.ndarray:
    """A number for each name, in the order in which they first occur."""
    numbers: dict[str, int] = {}
    return np.array([numbers.setdefault(name, len(numbers)) for name in names], dtype=np.int64)
