"""Verifies study 6: false alarms, power, coverage and `fair` of outcomes by group, simulated and on real answers."""

import gzip
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import binomtest

import fairness_pipeline as fp
from fairness_pipeline.measures.outcomes.group_effects import GroupEffects
from fairness_pipeline.statistics.corrections import holm
from fairness_pipeline.statistics.group_names import FEWEST_ITEMS
from fairness_pipeline.statistics.groups import Cells, pairs
from fairness_pipeline.statistics.rate_ratios import Selected, log_ratio_variance, rate_ratio
from fairness_pipeline.statistics.relabelling import intersections
from fairness_pipeline.statistics.signed import signed_means
from fairness_pipeline_tests.measures.outcomes.planted import exchanged, simulated
from fairness_pipeline_tests.models_page import PAGE, present
from fairness_pipeline_tests.verify.shared import Claim, Part

STUDY = "outcomes"
REPEATS, OF_REAL = 200, 60
MODELS = ("gpt-3.5-turbo-0301", "gpt-4-0314", "llama-2-7b-chat-hf", "vicuna-7b-v1.3", "falcon-7b-instruct")
_FOLDER = "model_outputs/decodingtrust"
_DESIGNS: dict[str, dict[str, Any]] = {
    f"{clusters} clusters, {groups} groups, {name}": {"clusters": clusters, "groups": groups, **design}
    for clusters in (8, 16, 40)
    for groups in (2, 8, 24)
    for name, design in (
        ("40%", {"rate": 0.4}),
        ("2%", {"rate": 0.02, "draws": 25}),
        ("unequal clusters, 20% missing", {"rate": 0.4, "unequal": True, "missing": 0.2}),
    )
}
_HARD: dict[str, dict[str, Any]] = {
    f"one spread tripled and skewed, {clusters} clusters, {groups} groups": {
        "clusters": clusters, "groups": groups, "rate": None, "spread_of_first": 3.0, "skewed": True,
    }
    for clusters in (16, 40)
    for groups in (2, 8)
} | {"60 groups, 16 clusters": {"groups": 60, "rate": 0.3}, "60 groups, 2%": {"groups": 60, "rate": 0.02, "draws": 25}}  # fmt: skip


def parts() -> dict[str, Part]:
    """The parts by name."""
    return {
        "outcomes-null": lambda: _rejections(_DESIGNS, REPEATS),
        "outcomes-hard": lambda: _rejections(_HARD, REPEATS),
        "outcomes-real": real,
        "outcomes-power": power,
        "outcomes-announced": announced,
        "outcomes-names": names,
        "outcomes-signed": signed,
        "outcomes-family": family,
        "outcomes-crossed": crossed,
        "outcomes-fair": fairness,
        "outcomes-floors": floors,
        "outcomes-coverage": coverage,
        "outcomes-ratios": ratios,
        "outcomes-models": published,
    }


def effects_of(cells: Cells, seed: int) -> GroupEffects:
    """The groups' effects, with all pairs listed."""
    return GroupEffects(cells, *np.triu_indices(len(cells.groups), 1), seed)


def _tests(cells: Cells, seed: int) -> tuple[bool, bool, bool]:
    """Whether the omnibus test, any group, and any pair are significant at 5%."""
    effects = effects_of(cells, seed)
    return effects.omnibus < 0.05, bool(effects.others.min() < 0.05), bool(effects.contrasts.min() < 0.05)


def _rejections(designs: dict[str, dict[str, Any]], repeats: int) -> dict[str, Any]:
    """How often each test rejects in each design without a difference."""
    rejected = {}
    for number, (name, design) in enumerate(designs.items()):
        random = np.random.default_rng([number, 61])
        drawn = [_tests(simulated(random, **design), repeat) for repeat in range(repeats)]
        rejected[name] = np.sum(drawn, axis=0).tolist()
    return {"rejected": rejected, "repeats": repeats}


def real() -> dict[str, Any]:
    """Real answers whose labels are exchanged once per topic: no group differs, all else is unchanged."""
    if not (folder := _corpora()):
        return {"tried": False}
    rejected = {}
    for model in MODELS:
        for outcome, cells in _answers(folder, model):
            random = np.random.default_rng(7)
            drawn = [_tests(exchanged(cells, random), repeat) for repeat in range(OF_REAL)]
            rejected[f"{model}, {outcome}"] = np.sum(drawn, axis=0).tolist()
    return {"tried": True, "rejected": rejected, "repeats": OF_REAL}


def power() -> dict[str, Any]:
    """Ten points planted in one group of real answers: how often it is found, and named; and others named."""
    if not (folder := _corpora()):
        return {"tried": False}
    shares = {}
    for model in ("vicuna-7b-v1.3", "llama-2-7b-chat-hf", "gpt-4-0314"):
        cells = next(answers for name, answers in _answers(folder, model) if name == "agrees")
        for groups in (2, 8, 24):
            random, counts = np.random.default_rng([groups, 11]), np.zeros(3)
            for repeat in range(OF_REAL):
                relabelled = exchanged(_some(cells, random.choice(24, groups, replace=False)), random)
                by_topic = random.uniform(0, 0.2, int(relabelled.cluster.max()) + 1)
                value = np.minimum(
                    1.0, relabelled.value + by_topic[relabelled.cluster[relabelled.item]] * (relabelled.group == 0)
                )
                effects = effects_of(relabelled._replace(value=value), repeat)
                named = effects.others < 0.05
                counts += effects.omnibus < 0.05, named[0], named[1:].any() and groups > 2
            shares[f"{model}, {groups} groups"] = (counts / OF_REAL).tolist()
    return {"tried": True, "found": shares}


def published() -> dict[str, Any]:
    """Whether docs/models.md says what the profile gives."""
    if not _corpora():
        return {"tried": False}
    return {"tried": True, "same": PAGE.read_text(encoding="utf-8").startswith(present())}


def announced() -> dict[str, Any]:
    """Plants the gap that is announced to be found four times in five in one group: how often it is found."""
    shares = {}
    for groups in (2, 3, 8, 24, 60):
        for clusters in (10, 40):
            random = np.random.default_rng([groups, clusters])
            design = {"groups": groups, "clusters": clusters, "rate": None}
            announced_gaps = [effects_of(simulated(random, **design), 0).minimum_detectable(0.05) for _ in range(20)]
            count = 0
            for repeat in range(REPEATS // 2):
                cells = simulated(random, **design)
                value = cells.value + np.median(announced_gaps) * (cells.group == 0)
                count += effects_of(cells._replace(value=value), repeat).omnibus < 0.05
            shares[f"{groups} groups, {clusters} clusters"] = count / (REPEATS // 2)
    return {"found": shares}


def _paired(cells: Cells, names: int) -> Cells:
    """One name of each group per item, so that the same names always meet."""
    assert cells.name is not None
    selected = cells.name % names == cells.item % names
    value, item, group, name = (column[selected] for column in (cells.value, cells.item, cells.group, cells.name))
    return cells._replace(value=value, item=item, group=group, name=name)


def names() -> dict[str, Any]:
    """Names that matter, and stand for groups that do not: how often a difference is called."""
    counts = {}
    designs = {
        f"{count} names, {items} items, {groups} groups, {rate or 'numbers'}": {
            "names": count, "clusters": items, "items": 1, "groups": groups, "rate": rate, "by_name": 0.1 if rate else 0.5,
            "by_cluster": float(items > FEWEST_ITEMS),
        }
        for count in (5, 10, 30)
        for items in (6, 40)
        for groups in (2, 8)
        for rate in (0.4, None)
    }  # fmt: skip
    for number, (name, design) in enumerate(designs.items()):
        random = np.random.default_rng([number, 62])
        drawn = [effects_of(simulated(random, **design), repeat).omnibus < 0.05 for repeat in range(REPEATS // 2)]
        counts[name] = int(np.sum(drawn))
        if design["clusters"] > FEWEST_ITEMS and design["rate"] is None:
            random = np.random.default_rng([number, 64])
            cells = (_paired(simulated(random, **design), design["names"]) for _ in range(REPEATS // 2))
            rejected = [effects_of(paired, repeat).omnibus < 0.05 for repeat, paired in enumerate(cells)]
            counts[f"{name}, one name of each in an item"] = int(np.sum(rejected))
    guilty = {"names": 10, "clusters": 40, "items": 1, "groups": 2, "rate": 0.4, "by_name": 0.03, "planted": 0.1}
    random = np.random.default_rng(63)
    power_of = [effects_of(simulated(random, **guilty), repeat).omnibus < 0.05 for repeat in range(REPEATS // 2)]
    return {"rejected": counts, "repeats": REPEATS // 2, "power": float(np.mean(power_of))}


def signed() -> dict[str, Any]:
    """Answers without a side, in templates that lean: how often a side is called, over all or in one of four groups."""
    rejected = {}
    for templates in (4, 8, 13, 25):
        random, counts = np.random.default_rng([templates, 64]), np.zeros(3)
        for repeat in range(REPEATS):
            cluster = np.repeat(np.arange(templates), random.integers(8, 40, templates))
            lean = random.normal(0, 0.5, templates)[cluster]
            value = np.sign(random.normal(lean, 1)) * (random.random(len(cluster)) < 0.6)
            group = (np.arange(templates) % 4)[cluster]
            means = signed_means(value.__getitem__, cluster, group, ("a", "b", "c", "d"), repeat)
            plain = abs(value.mean()) > 1.96 * value.std() / len(value) ** 0.5
            counts += means.p[0] < 0.05, min(means.p[1:]) < 0.05, plain
        rejected[f"{templates} templates"] = counts.astype(int).tolist()
    return {"rejected": rejected, "repeats": REPEATS}


def family() -> dict[str, Any]:
    """5 and 60 outcomes of a table without a difference, some rare: how often Holm over them rejects any. With 60, only
    a p below what 999 draws can show rejects."""
    called, random = [0, 0], np.random.default_rng(65)
    rates = (0.4, 0.1, 0.02, 0.7, None)
    for index, times in enumerate((1, 12)):
        for repeat in range(REPEATS):
            p = [effects_of(simulated(random, groups=8, rate=rate, draws=10), repeat).omnibus for rate in rates * times]
            called[index] += min(holm(p)) < 0.05
    return {"called": called, "repeats": REPEATS}


def crossed() -> dict[str, Any]:
    """Strong effects of both columns and none beyond: how often one is called, and how often a planted one is found."""
    counts, random = np.zeros(2), np.random.default_rng(66)
    for repeat in range(REPEATS):
        cells = simulated(random, groups=8, rate=None, clusters=20)
        strong = np.array([0.0, 1.0, 2.0, 3.0])[cells.group // 2] + 2.0 * (cells.group % 2)
        for index, planted in enumerate((0.0, 1.5)):
            value = cells.value + strong + planted * (cells.group == 7)
            effects = effects_of(cells._replace(value=value), repeat)
            counts[index] += intersections(effects.fit, (4, 2), repeat).omnibus < 0.05
    return {"called": int(counts[0]), "found": counts[1] / REPEATS, "repeats": REPEATS}


def fairness() -> dict[str, Any]:
    """How often the verdict is `fair` with the stated number of clusters, and with one group at the margin."""
    shares = {}
    for groups in (2, 3, 8, 24):
        random = np.random.default_rng([groups, 67])
        margin = 0.5
        needed = [
            effects_of(simulated(random, groups=groups, rate=None, clusters=40), 0).needed(margin) for _ in range(20)
        ]
        clusters = int(np.median(needed))  # type: ignore[arg-type]
        counts = np.zeros(2)
        for repeat in range(REPEATS):
            cells = simulated(random, groups=groups, rate=None, clusters=clusters)
            for index, shift in enumerate((0.0, margin)):
                shifted = cells._replace(value=cells.value + shift * (cells.group == 0))
                counts[index] += effects_of(shifted, repeat).p_equivalence(margin).max() <= 0.05
        shares[f"{groups} groups, {clusters} clusters"] = (counts / REPEATS).tolist()
    return {"found": shares}


def floors() -> dict[str, Any]:
    """Rare answers, and one group beyond the others by exactly the margin: how often that comes out as fair."""
    shares = {}
    for name, (groups, items, margin, missing, sizes) in {
        "two groups, 2% against 0, 500 items": (2, 500, 0.02, 0.0, 1),
        "two groups, 2% against 0, 700 items": (2, 700, 0.02, 0.0, 1),
        "three groups, 4% against 0, 300 items, 40% missing": (3, 300, 0.04, 0.4, 1),
        "a third group in 60 of 400 items, 4% against 0": (3, 400, 0.04, 0.85, 1),
        "two groups, 5% against 0, 4 clusters of 60 items and 700 of one": (2, 940, 0.05, 0.0, 60),
    }.items():
        random, count = np.random.default_rng([items, 70]), 0
        for repeat in range(REPEATS):
            cluster = np.arange(items) if sizes == 1 else np.append(np.repeat(np.arange(4), 60), np.arange(4, 704))
            answers = random.random(int(cluster.max()) + 1) < margin  # clusters answer alike
            item, group = np.repeat(np.arange(items), groups), np.tile(np.arange(groups), items)
            value = (answers[cluster[item]] & (group == groups - 1)).astype(float)
            selected = random.random(len(item)) >= missing * (group == groups - 1)
            if missing == 0.4:
                selected = random.random(len(item)) >= missing
            frame = pd.DataFrame({"i": item, "c": cluster[item], "g": group, "y": value})[selected]
            row = fp.audit(
                frame, item="i", cluster="c", group="g", outcome={"y": {"kind": "yes_no"}},
                margins={"y": {"absolute": 100 * margin}}, seed=repeat,
            ).iloc[0]  # fmt: skip
            count += row.verdict == "fair"
        shares[name] = count / REPEATS
    return {"found": shares}


def coverage() -> dict[str, Any]:
    """How often the intervals hold: of one pair, of all pairs together, of the largest gap."""
    shares = {}
    for name, design in {
        "8 groups, 16 clusters": {"groups": 8, "rate": None},
        "24 groups, 16 clusters": {"groups": 24, "rate": None},
        "8 groups, unequal clusters, 20% missing": {"groups": 8, "rate": None, "unequal": True, "missing": 0.2},
        "2 groups, 40%": {"groups": 2, "rate": 0.4},
    }.items():
        random, counts = np.random.default_rng(68), np.zeros(3)
        for repeat in range(REPEATS):
            cells = simulated(random, **design)
            truth = (
                np.linspace(0, 1, len(cells.groups)) if name.startswith("8 groups, 16") else np.zeros(len(cells.groups))
            )
            effects = effects_of(cells._replace(value=cells.value + truth[cells.group]), repeat)
            true = pairs(len(truth)) @ truth
            inside = [
                interval.low <= value <= interval.high
                for value, interval in zip(true, effects.intervals("contrasts"), strict=True)
            ]
            low, high = effects.errors(pairs(len(truth))[:1]).estimates()[0].interval(0.95)
            gap = effects.gap
            counts += low <= true[0] <= high, all(inside), gap.low <= np.ptp(truth) <= gap.high
        shares[name] = (counts / REPEATS).tolist()
    return {"found": shares}


def ratios() -> dict[str, Any]:
    """Eight groups of unequal size and one rate: how often one is shown below four fifths, and by the plain rule."""
    frequencies = {}
    for rows, rate in ((500, 0.3), (5000, 0.1), (20000, 0.05)):
        random, counts = np.random.default_rng([rows, 69]), np.zeros(3)
        shares = np.array([0.3, 0.2, 0.15, 0.1, 0.1, 0.06, 0.05, 0.04])
        for _ in range(REPEATS):
            group = random.choice(8, rows, p=shares)
            for index, rates in enumerate((np.full(8, rate), np.where(np.arange(8) == 2, 0.6 * rate, rate))):
                selected = (random.random(rows) < rates[group]).astype(float)
                by_group = [Selected.of(selected[group == g], None) for g in range(8)]
                best = int(np.argmax([selection.selected / selection.rows for selection in by_group]))
                highs = [
                    rate_ratio(by_group[g], by_group[best], *log_ratio_variance(selected, group, g, best, None), 1 - 0.05 / 7).high
                    for g in range(8) if g != best
                ]  # fmt: skip
                counts[index] += min(highs) < 0.8
                if index == 0:
                    shares_of = [selection.selected / selection.rows for selection in by_group]
                    counts[2] += min(shares_of) / max(shares_of) < 0.8
        frequencies[f"{rows:,} rows, {rate:.0%}"] = (counts / REPEATS).tolist()
    return {"found": frequencies}


def judge(outcomes: dict[str, dict[str, Any]]) -> list[Claim]:
    """The study's claims."""
    claims: list[Claim] = []
    tests = ("any group", "each group against the others", "pairs")
    for part, condition in (
        ("outcomes-null", "27 designs without a difference"),
        ("outcomes-real", "real answers with labels exchanged once per topic"),
    ):
        results = outcomes[part]
        if results.get("tried") is False:
            claims.append((f"{condition}: false alarms of at most 5% on average", None, "no FAIRNESS_CORPORA"))
            continue
        total = results["repeats"] * len(results["rejected"])
        for index, test in enumerate(tests):
            counts = [rejections[index] for rejections in results["rejected"].values()]
            low, _ = binomtest(sum(counts), total).proportion_ci()
            worst = max(results["rejected"], key=lambda name: results["rejected"][name][index])
            figures = f"{sum(counts) / total:.1%}; at most {max(counts) / results['repeats']:.1%} ({worst})"
            claims.append(
                (f"{condition}: '{test}' rejects in at most 5% on average (exact interval)", bool(low <= 0.05), figures)
            )
    for name, counts in outcomes["outcomes-hard"]["rejected"].items():
        worst = max(counts) / outcomes["outcomes-hard"]["repeats"]
        claims.append(
            (
                f"{name}: no test rejects in more than 12%",
                worst <= 0.12,
                ", ".join(f"{n / outcomes['outcomes-hard']['repeats']:.1%}" for n in counts),
            )
        )
    if outcomes["outcomes-power"].get("tried"):
        for name, (detected, named, wrong) in outcomes["outcomes-power"]["found"].items():
            claims.append(
                (
                    f"10 points planted in one group, {name}: found in half of draws or more, others named in at most 10%",
                    detected >= 0.5 and wrong <= 0.1,
                    f"found {detected:.2f}, named {named:.2f}, others named {wrong:.2f}",
                )
            )
    results = outcomes["outcomes-models"]
    claims.append(("docs/models.md says what profile published_models gives", results.get("same"), "every figure"))
    shares = outcomes["outcomes-announced"]["found"]
    least = min(shares, key=shares.get)
    claims.append(
        (
            "the gap that is said to be found four times in five is found in 68% or more",
            shares[least] >= 0.68,
            f"on average {np.mean(list(shares.values())):.0%}; at least {shares[least]:.0%} ({least})",
        )
    )
    results = outcomes["outcomes-names"]
    total, called = results["repeats"] * len(results["rejected"]), sum(results["rejected"].values())
    low, _ = binomtest(called, total).proportion_ci()
    worst = max(results["rejected"], key=results["rejected"].get)
    claims.append(
        (
            "names that matter, groups that do not: called in at most 5% on average",
            bool(low <= 0.05),
            f"{called / total:.1%}; at most {results['rejected'][worst] / results['repeats']:.1%} ({worst})",
        )
    )
    claims.append(
        ("ten names, ten points: found in half of draws or more", results["power"] >= 0.5, f"{results['power']:.2f}")
    )
    results = outcomes["outcomes-signed"]
    for index, test in enumerate(("over all", "in a group")):
        counts = [rejections[index] for rejections in results["rejected"].values()]
        low, _ = binomtest(sum(counts), results["repeats"] * len(counts)).proportion_ci()
        plain = max(rejections[2] for rejections in results["rejected"].values()) / results["repeats"]
        claims.append(
            (
                f"answers without a side in templates that lean: a side is called {test} in at most 5%",
                bool(low <= 0.05),
                f"{sum(counts) / (results['repeats'] * len(counts)):.1%}; rows as independent up to {plain:.0%}",
            )
        )
    for part, condition in (
        ("outcomes-family", "five outcomes, Holm over them: one is called in at most 5%"),
        ("outcomes-family", "60 outcomes, Holm over them: one is called in at most 5%"),
        ("outcomes-crossed", "strong effects of both columns: one beyond them is called in at most 5%"),
    ):
        results = outcomes[part]
        called = results["called"][condition.startswith("60")] if part == "outcomes-family" else results["called"]
        low, _ = binomtest(called, results["repeats"]).proportion_ci()
        claims.append((condition, bool(low <= 0.05), f"{called} of {results['repeats']}"))
    claims.append(
        (
            "an effect beyond both columns of 1.5 standard deviations is found in 80% or more",
            outcomes["outcomes-crossed"]["found"] >= 0.8,
            f"{outcomes['outcomes-crossed']['found']:.2f}",
        )
    )
    for name, (right, at_margin) in outcomes["outcomes-fair"]["found"].items():
        claims.append(
            (
                f"fair, {name}: at the number that is said to do in 65% or more; with a group at the margin in at most 7.5%",
                right >= 0.65 and at_margin <= 0.075,
                f"{right:.1%} and {at_margin:.1%}",
            )
        )
    for name, share in outcomes["outcomes-floors"]["found"].items():
        claims.append((f"at a gap of exactly the margin, {name}: fair in at most 7.5%", share <= 0.075, f"{share:.1%}"))
    for name, (single, every, gap) in outcomes["outcomes-coverage"]["found"].items():
        claims.append(
            (
                f"95% intervals, {name}: one pair, all pairs, the largest gap hold in 92% or more",
                min(single, every, gap) >= 0.92,
                f"{single:.1%}, {every:.1%}, {gap:.1%}",
            )
        )
    for name, (innocent, guilty, plain) in outcomes["outcomes-ratios"]["found"].items():
        claims.append(
            (
                f"eight groups of one rate, {name}: below 4/5 is shown in at most 8%",
                innocent <= 0.08,
                f"{innocent:.1%}; the plain rule {plain:.0%}; a true ratio of 0.6 is found in {guilty:.0%}",
            )
        )
    return claims


def _some(cells: Cells, groups: np.ndarray) -> Cells:
    """The cells of some groups."""
    selected = np.isin(cells.group, groups)
    numbering = {int(group): number for number, group in enumerate(groups)}
    numbers = np.array([numbering[int(group)] for group in cells.group[selected]])
    return Cells(
        cells.value[selected], cells.item[selected], numbers, cells.cluster, tuple(cells.groups[g] for g in groups)
    )


def _corpora() -> Path | None:
    corpora = os.environ.get("FAIRNESS_CORPORA")
    return Path(corpora) / _FOLDER if corpora and (Path(corpora) / _FOLDER).is_dir() else None


def _answers(folder: Path, model: str) -> Iterator[tuple[str, Cells]]:
    """A model's published answers to 16 topics of three templates about 24 groups, 25 draws each."""
    with gzip.open(folder / f"{model}_benign.csv.gz", "rt", encoding="utf-8") as stream:
        rows = pd.read_csv(stream, usecols=["topic", "template", "group", "agreement", "answer"])
    measures: dict[str, Callable[[pd.DataFrame], pd.Series]] = {
        "agrees": lambda answers: (answers["agreement"] == 1).astype(float),
        "disagrees": lambda answers: (answers["agreement"] == -1).astype(float),
        "words": lambda answers: answers["answer"].fillna("").str.split().str.len().astype(float),
    }
    for name, measure in measures.items():
        table = rows.assign(value=measure(rows)).groupby(["topic", "template", "group"])["value"].mean().reset_index()
        item, _ = pd.factorize(table["template"])
        group, groups = pd.factorize(table["group"])
        topic, _ = pd.factorize(table["topic"])
        cluster = np.zeros(item.max() + 1, dtype=np.int64)
        cluster[item] = topic
        yield name, Cells(table["value"].to_numpy(), item, group, cluster, tuple(groups))
