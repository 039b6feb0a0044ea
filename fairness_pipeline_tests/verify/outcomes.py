"""Study 6: false alarms, power, coverage and `fair` of outcomes by group, simulated and on real answers."""

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
    f"{clusters} clusters, {groups} groups, {name}": {"clusters": clusters, "groups": groups, **own}
    for clusters in (8, 16, 40)
    for groups in (2, 8, 24)
    for name, own in (
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
    """What is run."""
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
    """Of each design without a difference how often each test rejects."""
    found = {}
    for number, (name, design) in enumerate(designs.items()):
        random = np.random.default_rng([number, 61])
        drawn = [_tests(simulated(random, **design), repeat) for repeat in range(repeats)]
        found[name] = np.sum(drawn, axis=0).tolist()
    return {"rejected": found, "repeats": repeats}


def real() -> dict[str, Any]:
    """Real answers whose labels are exchanged once per topic: no group differs, all else is as it is."""
    if not (folder := _corpora()):
        return {"tried": False}
    found = {}
    for model in MODELS:
        for outcome, cells in _answers(folder, model):
            random = np.random.default_rng(7)
            drawn = [_tests(exchanged(cells, random), repeat) for repeat in range(OF_REAL)]
            found[f"{model}, {outcome}"] = np.sum(drawn, axis=0).tolist()
    return {"tried": True, "rejected": found, "repeats": OF_REAL}


def power() -> dict[str, Any]:
    """Ten points planted in one group of real answers: how often it is found, and named; and others named."""
    if not (folder := _corpora()):
        return {"tried": False}
    found = {}
    for model in ("vicuna-7b-v1.3", "llama-2-7b-chat-hf", "gpt-4-0314"):
        cells = next(own for name, own in _answers(folder, model) if name == "agrees")
        for groups in (2, 8, 24):
            random, counts = np.random.default_rng([groups, 11]), np.zeros(3)
            for repeat in range(OF_REAL):
                own = exchanged(_some(cells, random.choice(24, groups, replace=False)), random)
                by_topic = random.uniform(0, 0.2, int(own.cluster.max()) + 1)
                value = np.minimum(1.0, own.value + by_topic[own.cluster[own.item]] * (own.group == 0))
                effects = effects_of(own._replace(value=value), repeat)
                named = effects.others < 0.05
                counts += effects.omnibus < 0.05, named[0], named[1:].any() and groups > 2
            found[f"{model}, {groups} groups"] = (counts / OF_REAL).tolist()
    return {"tried": True, "found": found}


def published() -> dict[str, Any]:
    """Whether docs/models.md says what the profile gives."""
    if not _corpora():
        return {"tried": False}
    return {"tried": True, "same": PAGE.read_text(encoding="utf-8").startswith(present())}


def announced() -> dict[str, Any]:
    """The gap that is said to be found four times in five, planted in one group: how often it is found."""
    found = {}
    for groups in (2, 3, 8, 24, 60):
        for clusters in (10, 40):
            random = np.random.default_rng([groups, clusters])
            design = {"groups": groups, "clusters": clusters, "rate": None}
            said = [effects_of(simulated(random, **design), 0).minimum_detectable(0.05) for _ in range(20)]
            count = 0
            for repeat in range(REPEATS // 2):
                cells = simulated(random, **design)
                value = cells.value + np.median(said) * (cells.group == 0)
                count += effects_of(cells._replace(value=value), repeat).omnibus < 0.05
            found[f"{groups} groups, {clusters} clusters"] = count / (REPEATS // 2)
    return {"found": found}


def _paired(cells: Cells, names: int) -> Cells:
    """Of each item one name of each group, which always meet."""
    assert cells.name is not None
    kept = cells.name % names == cells.item % names
    value, item, group, name = (own[kept] for own in (cells.value, cells.item, cells.group, cells.name))
    return cells._replace(value=value, item=item, group=group, name=name)


def names() -> dict[str, Any]:
    """Names that matter, and stand for groups that do not: how often a difference is called."""
    found = {}
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
        found[name] = int(np.sum(drawn))
        if design["clusters"] > FEWEST_ITEMS and design["rate"] is None:
            random = np.random.default_rng([number, 64])
            cells = (_paired(simulated(random, **design), design["names"]) for _ in range(REPEATS // 2))
            rejected = [effects_of(own, repeat).omnibus < 0.05 for repeat, own in enumerate(cells)]
            found[f"{name}, one name of each in an item"] = int(np.sum(rejected))
    guilty = {"names": 10, "clusters": 40, "items": 1, "groups": 2, "rate": 0.4, "by_name": 0.03, "planted": 0.1}
    random = np.random.default_rng(63)
    power_of = [effects_of(simulated(random, **guilty), repeat).omnibus < 0.05 for repeat in range(REPEATS // 2)]
    return {"rejected": found, "repeats": REPEATS // 2, "power": float(np.mean(power_of))}


def signed() -> dict[str, Any]:
    """Answers without a side, in templates that lean: how often a side is called, over all and in one of four groups."""
    found = {}
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
        found[f"{templates} templates"] = counts.astype(int).tolist()
    return {"rejected": found, "repeats": REPEATS}


def family() -> dict[str, Any]:
    """5 and 60 outcomes of a table without a difference, some rare: how often Holm over them lets one through. Of 60
    it is a p below what 999 draws know that decides."""
    called, random = [0, 0], np.random.default_rng(65)
    rates = (0.4, 0.1, 0.02, 0.7, None)
    for place, times in enumerate((1, 12)):
        for repeat in range(REPEATS):
            p = [effects_of(simulated(random, groups=8, rate=rate, draws=10), repeat).omnibus for rate in rates * times]
            called[place] += min(holm(p)) < 0.05
    return {"called": called, "repeats": REPEATS}


def crossed() -> dict[str, Any]:
    """Strong effects of both columns and none beyond: how often one beyond is called; and found when one is planted."""
    counts, random = np.zeros(2), np.random.default_rng(66)
    for repeat in range(REPEATS):
        cells = simulated(random, groups=8, rate=None, clusters=20)
        strong = np.array([0.0, 1.0, 2.0, 3.0])[cells.group // 2] + 2.0 * (cells.group % 2)
        for place, planted in enumerate((0.0, 1.5)):
            value = cells.value + strong + planted * (cells.group == 7)
            effects = effects_of(cells._replace(value=value), repeat)
            counts[place] += intersections(effects.fit, (4, 2), repeat).omnibus < 0.05
    return {"called": int(counts[0]), "found": counts[1] / REPEATS, "repeats": REPEATS}


def fairness() -> dict[str, Any]:
    """How often `fair` comes at the number of clusters that is said to do, and with one group at the margin."""
    found = {}
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
            for place, shift in enumerate((0.0, margin)):
                own = cells._replace(value=cells.value + shift * (cells.group == 0))
                counts[place] += effects_of(own, repeat).p_equivalence(margin).max() <= 0.05
        found[f"{groups} groups, {clusters} clusters"] = (counts / REPEATS).tolist()
    return {"found": found}


def floors() -> dict[str, Any]:
    """Rare answers, and one group beyond the others by exactly the margin: how often that comes out as fair."""
    found = {}
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
            said = random.random(int(cluster.max()) + 1) < margin  # clusters answer alike
            item, group = np.repeat(np.arange(items), groups), np.tile(np.arange(groups), items)
            value = (said[cluster[item]] & (group == groups - 1)).astype(float)
            kept = random.random(len(item)) >= missing * (group == groups - 1)
            if missing == 0.4:
                kept = random.random(len(item)) >= missing
            frame = pd.DataFrame({"i": item, "c": cluster[item], "g": group, "y": value})[kept]
            row = fp.audit(
                frame, item="i", cluster="c", group="g", outcome={"y": {"kind": "yes_no"}},
                margins={"y": {"absolute": 100 * margin}}, seed=repeat,
            ).iloc[0]  # fmt: skip
            count += row.verdict == "fair"
        found[name] = count / REPEATS
    return {"found": found}


def coverage() -> dict[str, Any]:
    """How often the intervals hold: of one pair, of all pairs together, of the largest gap."""
    found = {}
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
                own.low <= value <= own.high for value, own in zip(true, effects.intervals("contrasts"), strict=True)
            ]
            low, high = effects.errors(pairs(len(truth))[:1]).estimates()[0].interval(0.95)
            gap = effects.gap
            counts += low <= true[0] <= high, all(inside), gap.low <= np.ptp(truth) <= gap.high
        found[name] = (counts / REPEATS).tolist()
    return {"found": found}


def ratios() -> dict[str, Any]:
    """Eight groups of unequal size and one rate: how often one is shown below four fifths, and by the plain rule."""
    found = {}
    for rows, rate in ((500, 0.3), (5000, 0.1), (20000, 0.05)):
        random, counts = np.random.default_rng([rows, 69]), np.zeros(3)
        shares = np.array([0.3, 0.2, 0.15, 0.1, 0.1, 0.06, 0.05, 0.04])
        for _ in range(REPEATS):
            group = random.choice(8, rows, p=shares)
            for place, rates in enumerate((np.full(8, rate), np.where(np.arange(8) == 2, 0.6 * rate, rate))):
                selected = (random.random(rows) < rates[group]).astype(float)
                each = [Selected.of(selected[group == g], None) for g in range(8)]
                best = int(np.argmax([own.selected / own.rows for own in each]))
                highs = [
                    rate_ratio(each[g], each[best], *log_ratio_variance(selected, group, g, best, None), 1 - 0.05 / 7).high
                    for g in range(8) if g != best
                ]  # fmt: skip
                counts[place] += min(highs) < 0.8
                if place == 0:
                    shares_of = [own.selected / own.rows for own in each]
                    counts[2] += min(shares_of) / max(shares_of) < 0.8
        found[f"{rows:,} rows, {rate:.0%}"] = (counts / REPEATS).tolist()
    return {"found": found}


def judge(outcomes: dict[str, dict[str, Any]]) -> list[Claim]:
    """The study's claims."""
    claims: list[Claim] = []
    tests = ("any group", "each group against the others", "pairs")
    for part, said in (
        ("outcomes-null", "27 designs without a difference"),
        ("outcomes-real", "real answers with labels exchanged once per topic"),
    ):
        own = outcomes[part]
        if own.get("tried") is False:
            claims.append((f"{said}: false alarms of at most 5% on average", None, "no FAIRNESS_CORPORA"))
            continue
        total = own["repeats"] * len(own["rejected"])
        for place, test in enumerate(tests):
            counts = [each[place] for each in own["rejected"].values()]
            low, _ = binomtest(sum(counts), total).proportion_ci()
            worst = max(own["rejected"], key=lambda name: own["rejected"][name][place])
            figures = f"{sum(counts) / total:.1%}; at most {max(counts) / own['repeats']:.1%} ({worst})"
            claims.append(
                (f"{said}: '{test}' rejects in at most 5% on average (exact interval)", bool(low <= 0.05), figures)
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
        for name, (found, named, wrong) in outcomes["outcomes-power"]["found"].items():
            claims.append(
                (
                    f"10 points planted in one group, {name}: found in half of draws or more, others named in at most 10%",
                    found >= 0.5 and wrong <= 0.1,
                    f"found {found:.2f}, named {named:.2f}, others named {wrong:.2f}",
                )
            )
    own = outcomes["outcomes-models"]
    claims.append(("docs/models.md says what profile published_models gives", own.get("same"), "every figure"))
    found = outcomes["outcomes-announced"]["found"]
    least = min(found, key=found.get)
    claims.append(
        (
            "the gap that is said to be found four times in five is found in 68% or more",
            found[least] >= 0.68,
            f"on average {np.mean(list(found.values())):.0%}; at least {found[least]:.0%} ({least})",
        )
    )
    own = outcomes["outcomes-names"]
    total, called = own["repeats"] * len(own["rejected"]), sum(own["rejected"].values())
    low, _ = binomtest(called, total).proportion_ci()
    worst = max(own["rejected"], key=own["rejected"].get)
    claims.append(
        (
            "names that matter, groups that do not: called in at most 5% on average",
            bool(low <= 0.05),
            f"{called / total:.1%}; at most {own['rejected'][worst] / own['repeats']:.1%} ({worst})",
        )
    )
    claims.append(("ten names, ten points: found in half of draws or more", own["power"] >= 0.5, f"{own['power']:.2f}"))
    own = outcomes["outcomes-signed"]
    for place, test in enumerate(("over all", "in a group")):
        counts = [each[place] for each in own["rejected"].values()]
        low, _ = binomtest(sum(counts), own["repeats"] * len(counts)).proportion_ci()
        plain = max(each[2] for each in own["rejected"].values()) / own["repeats"]
        claims.append(
            (
                f"answers without a side in templates that lean: a side is called {test} in at most 5%",
                bool(low <= 0.05),
                f"{sum(counts) / (own['repeats'] * len(counts)):.1%}; rows as independent up to {plain:.0%}",
            )
        )
    for part, said in (
        ("outcomes-family", "five outcomes, Holm over them: one is called in at most 5%"),
        ("outcomes-family", "60 outcomes, Holm over them: one is called in at most 5%"),
        ("outcomes-crossed", "strong effects of both columns: one beyond them is called in at most 5%"),
    ):
        own = outcomes[part]
        called = own["called"][said.startswith("60")] if part == "outcomes-family" else own["called"]
        low, _ = binomtest(called, own["repeats"]).proportion_ci()
        claims.append((said, bool(low <= 0.05), f"{called} of {own['repeats']}"))
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
    for name, (one, every, gap) in outcomes["outcomes-coverage"]["found"].items():
        claims.append(
            (
                f"95% intervals, {name}: one pair, all pairs, the largest gap hold in 92% or more",
                min(one, every, gap) >= 0.92,
                f"{one:.1%}, {every:.1%}, {gap:.1%}",
            )
        )
    for name, (innocent, guilty, plain) in outcomes["outcomes-ratios"]["found"].items():
        claims.append(
            (
                f"eight groups of one rate, {name}: below 4/5 is shown in at most 5%",
                innocent <= 0.08,
                f"{innocent:.1%}; the plain rule {plain:.0%}; a true ratio of 0.6 is found in {guilty:.0%}",
            )
        )
    return claims


def _some(cells: Cells, groups: np.ndarray) -> Cells:
    """The cells of some groups."""
    kept = np.isin(cells.group, groups)
    place = {int(group): number for number, group in enumerate(groups)}
    numbers = np.array([place[int(group)] for group in cells.group[kept]])
    return Cells(cells.value[kept], cells.item[kept], numbers, cells.cluster, tuple(cells.groups[g] for g in groups))


def _corpora() -> Path | None:
    named = os.environ.get("FAIRNESS_CORPORA")
    return Path(named) / _FOLDER if named and (Path(named) / _FOLDER).is_dir() else None


def _answers(folder: Path, model: str) -> Iterator[tuple[str, Cells]]:
    """A model's published answers to 16 topics of three templates about 24 groups, 25 draws each."""
    with gzip.open(folder / f"{model}_benign.csv.gz", "rt", encoding="utf-8") as stream:
        rows = pd.read_csv(stream, usecols=["topic", "template", "group", "agreement", "answer"])
    measures: dict[str, Callable[[pd.DataFrame], pd.Series]] = {
        "agrees": lambda own: (own["agreement"] == 1).astype(float),
        "disagrees": lambda own: (own["agreement"] == -1).astype(float),
        "words": lambda own: own["answer"].fillna("").str.split().str.len().astype(float),
    }
    for name, measure in measures.items():
        table = rows.assign(value=measure(rows)).groupby(["topic", "template", "group"])["value"].mean().reset_index()
        item, _ = pd.factorize(table["template"])
        group, groups = pd.factorize(table["group"])
        topic, _ = pd.factorize(table["topic"])
        cluster = np.zeros(item.max() + 1, dtype=np.int64)
        cluster[item] = topic
        yield name, Cells(table["value"].to_numpy(), item, group, cluster, tuple(groups))
