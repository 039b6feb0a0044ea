"""Verifies planted bias and cures of dialogue models, over seeds."""

import os
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import yaml

from fairness_pipeline.corpora.dialogue.grammar import Grammar, Scene
from fairness_pipeline.foundation import paths
from fairness_pipeline.measures.dialogue.debiasing_effects import identical_share
from fairness_pipeline.measures.dialogue.dialogue_significance import compared
from fairness_pipeline.measures.dialogue.measure import MASKED, SignificanceSettings, deciding
from fairness_pipeline.measures.dialogue.naming import NAMES_OTHER
from fairness_pipeline.measures.dialogue.recipe_effects import MOST_MISNAMED
from fairness_pipeline.measures.dialogue.registry import harmful, is_gap, measures
from fairness_pipeline.measures.dialogue.settings import MeasureSettings
from fairness_pipeline.models.dialogue.responding import RESPONSES
from fairness_pipeline.project.project import Project, load_dimension
from fairness_pipeline.studies.dialogue_fairness.debiasing_section import quality_of
from fairness_pipeline.studies.dialogue_fairness.models import seed_name
from fairness_pipeline.studies.dialogue_fairness.profile import DialoguePart
from fairness_pipeline.workspace.lake import Lake
from fairness_pipeline_tests.verify.shared import (
    DIALOGUES,
    SEEDS,
    STATE,
    Claim,
    Part,
    command,
    finished,
    interval,
    version,
)

DEBIASED = {
    "CDA": "seq2seq-cda", "WER": "seq2seq-wer", "filtered training": "seq2seq-filtered_training",
    "Debiased-Chat": "seq2seq-debiased_chat", "dropout": "seq2seq-dropout",
    "LEACE": "seq2seq-leace", "Self-Debias": "seq2seq-self_debias", "control (mle)": "seq2seq-mle",
    "control (random filter)": "seq2seq-random_filter", "control (placebo)": "seq2seq-placebo",
    "control (duplication)": "seq2seq-duplication",
}  # fmt: skip
CURES, REAL_CURES = "cures", "cures_real"
"""The profiles that plant a bias in the sample, and in real dialogues."""
CHAT, FILTERED = "Debiased-Chat", "filtered training"
MLE, PLACEBO = "control (mle)", "control (placebo)"
CONTROLS = {MLE: FILTERED, "control (random filter)": FILTERED, PLACEBO: CHAT, "control (duplication)": "CDA"}
"""The same training without the debiasing term, and a method that it controls."""
CURED = ("CDA", "WER", FILTERED, CHAT)
"""The methods that are claimed to make planted gaps smaller."""
RATES = ("offense_rate", "sentiment_positive", "sentiment_negative")


def planted(seed: int) -> dict[str, Any]:
    """One seed of the sample's base: the differences that the audit found, and those that the majority replies plant."""
    home, data = STATE / f"home-{version()[:12]}", STATE / "data"  # tables of other code prove nothing
    (data / "profiles").mkdir(parents=True, exist_ok=True)
    profile = yaml.safe_load(paths.data_file("profiles/sample.yaml").read_text(encoding="utf-8"))
    profile["seed"] = seed
    for model in ("retrieval", "retrieval-filtered", *DEBIASED.values()):
        del profile["models"][model]
    profile["dialogue_fairness"]["on_request"] = []
    (data / "profiles" / f"planted-{seed}.yaml").write_text(yaml.safe_dump(profile), encoding="utf-8")
    finished(command(home, "run", "--profile", f"planted-{seed}", "--study", DIALOGUES, data=data))
    lake = Lake(home / f"planted-{seed}")
    differences, truth = {}, {}
    for dimension in profile["dimensions"]:
        key = {"dimension": dimension, "model": "seq2seq"}
        rows = lake.read("dialogue_significance", key).to_pylist()
        differences[dimension] = {
            row["measure"]: [row["difference"], row["verdict"], row["value_a"] + row["value_b"]] for row in rows
        }
        expected = planted_differences(
            lake.read("context_pairs", {"corpus": "twitter_sample", "dimension": dimension}), dimension
        )
        truth[dimension] = {row["measure"]: [row["difference"], row["value_a"] + row["value_b"]] for row in expected}
    return {"found": differences, "truth": truth}


def real_cures() -> list[str]:
    """The profile that needs the real corpora; none without them."""
    return [REAL_CURES] if os.environ.get("FAIRNESS_CORPORA") else []


def cures(profile: str) -> dict[str, Any]:
    """What each method leaves of each seed's gaps, and the effects of the recipes, by dimension."""
    home = STATE / f"home-{version()[:12]}"
    finished(command(home, "run", "--profile", profile))
    lake, project = Lake(home / profile), Project(profile)
    dimensions, part = project.dimensions, project.parts["dialogue_fairness"]
    effects = {
        dimension: {
            name: {
                row["measure"]: row["effect"]
                for row in lake.read("recipe_effects", {"dimension": dimension, "model": model}).to_pylist()
            }
            for name, model in DEBIASED.items()
        }
        for dimension in dimensions
    }
    return {"seeds": [{d: debiased(part, lake, d, seed) for d in dimensions} for seed in SEEDS], "effects": effects}


def debiased(part: DialoguePart, lake: Lake, dimension: str, seed: int) -> dict[str, Any]:
    """What each method leaves of one seed's planted gaps, what it costs, and what the autoencoder learned."""

    def key(model: str) -> dict[str, str]:
        return {"dimension": dimension, "model": seed_name(model, seed)}

    def differences(model: str) -> dict[str, Any]:
        rows = lake.read("dialogue_significance", key(model)).to_pylist()
        single = {row["measure"]: row for row in rows if not row["measure"].startswith(("distinct", "diversity"))}
        return {  # a cure is measured on the rows that decide the verdict
            name: {**deciding(single, name), "verdict": row["verdict"]}
            for name, row in single.items()
            if not name.endswith(MASKED)
        }

    models = {"original": "seq2seq", **DEBIASED}
    before = {
        name: row["difference"]
        for name, row in differences("seq2seq").items()
        if row["verdict"] == "biased" and is_gap(name) and row["difference"]
    }
    left = {name: differences(model) for name, model in DEBIASED.items()}
    figures = lake.card("disentanglement", key(DEBIASED[CHAT])).figures
    return {
        "gaps": {
            n: float(np.mean([abs(by_measure[m]["difference"] / was) for m, was in before.items()]))
            for n, by_measure in left.items()
        },
        "harmful": {
            name: {m: float(np.mean([by_measure[m]["value_a"], by_measure[m]["value_b"]])) for m in harmful()}
            for name, by_measure in {"original": differences("seq2seq"), **left}.items()
        },
        "naming": {
            name: (by_measure[NAMES_OTHER]["value_a"] + by_measure[NAMES_OTHER]["value_b"]) / 200
            for name, by_measure in {"original": differences("seq2seq"), **left}.items()
            if NAMES_OTHER in by_measure
        },
        "identical": {name: identical_share(lake.read("responses", key(model))) for name, model in models.items()},
        "quality": {
            name: {metric: row["value"] for metric, row in quality_of(part, lake, key(model)).items()}
            for name, model in models.items()
        },
        "accuracy": {name: figures[f"accuracy_{name}"] for name in ("unbiased", "semantic", "content")},
    }


def planted_differences(pairs: pa.Table, dimension: str) -> list[dict[str, Any]]:
    """The significance rows of a model that answers every context with the grammar's majority reply."""
    corpus = yaml.safe_load(paths.data_file("corpora/twitter_sample.yaml").read_text(encoding="utf-8"))["grammar"]
    grammar = Grammar.load(corpus["file"])
    scenes: dict[str, Scene] = {d.context: d.scene for d in grammar.generate(corpus["dialogues"], corpus["seed"])}
    rows = []
    for pair in pairs.to_pylist():
        scene = scenes[pair[f"context_{pair['source_side']}"]]
        for side in "ab":
            reply = grammar.majority_reply(scene._replace(dimension=dimension, side=side))
            rows.append(
                {"pair_id": pair["pair_id"], "side": side, "context": pair[f"context_{side}"], "response": reply}
            )
    responses = pa.Table.from_pylist(rows, schema=RESPONSES)
    specification, settings = load_dimension(dimension), MeasureSettings()
    tables = {
        measure.table: measure.measure(responses, measure.scoring(settings, specification)) for measure in measures()
    }
    few = SignificanceSettings(permutations=1)
    return [
        asdict(row) for row in compared(responses, tables, settings=few, seed=0, published={}, masked=specification)
    ]


def judge(outcomes: dict[str, dict[str, Any]]) -> list[Claim]:
    """Each claim, whether it holds (None: could not be tried here), and the figures behind it."""
    seeds = [outcomes[f"planted-{seed}"] for seed in SEEDS]
    planted_rows, unplanted_rows = {}, {}
    for dimension, truths_of in seeds[0]["truth"].items():
        for measure in truths_of:
            if measure in ("diversity", "distinct_1", "distinct_2") or measure.endswith(MASKED):
                continue
            truths = [seed["truth"][dimension][measure][0] for seed in seeds]
            (planted_rows if min(map(abs, truths)) > 0 else unplanted_rows)[dimension, measure] = truths
    signs = biased = 0
    for (dimension, measure), truths in planted_rows.items():
        results = [seed["found"][dimension][measure] for seed in seeds]
        signs += all(f[0] * t > 0 for f, t in zip(results, truths, strict=True))
        biased += sum(f[1] == "biased" for f in results) >= 4
    ratios = []
    for (dimension, measure), _ in unplanted_rows.items():
        kind = measure if measure in RATES else "words"
        same = [abs(t) for (d, m), ts in planted_rows.items() for t in ts if (m if m in RATES else "words") == kind]
        ratios += [abs(seed["found"][dimension][measure][0]) / min(same) for seed in seeds]
    total = len(planted_rows)
    return [
        ("planted differences have the planted sign in 5 of 5 seeds", signs == total, f"{signs} of {total} measures"),
        ("planted differences are `biased` in at least 4 of 5 seeds", biased == total, f"{biased} of {total} measures"),
        ("unplanted differences stay under half the planted ones", max(ratios) < 0.5, f"largest: {max(ratios):.2f} of the smallest planted one, over {len(ratios)} cases"),
        *judge_debiased(outcomes[CURES]),
        *((f"real text: {claim}", *rest) for name in real_cures() for claim, *rest in judge_debiased(outcomes[name])),
    ]  # fmt: skip


def judge_debiased(outcome: dict[str, Any]) -> list[Claim]:
    """The claims on debiased models, in every dimension, with 95% intervals over the seeds.

    Claims that say `mean` are judged by the mean alone; differences and smaller gaps, by the whole interval.
    """
    seeds, effects = outcome["seeds"], outcome["effects"]
    dimensions = list(seeds[0])

    def means(value: Callable[[dict[str, Any]], float]) -> dict[str, tuple[float, float, float]]:
        return {d: interval([value(seed[d]) for seed in seeds]) for d in dimensions}

    def claim(
        text: str, value: Callable[[dict[str, Any]], float], holds: Callable[[tuple[float, float, float]], bool]
    ) -> tuple[str, bool, str]:
        intervals = means(value)
        figures = "; ".join(f"{d} {m:.3f} ({low:.3f} to {high:.3f})" for d, (m, low, high) in intervals.items())
        return text, all(map(holds, intervals.values())), figures

    def kept(metric: str) -> Callable[[dict[str, Any]], float]:
        return lambda s: s["quality"][FILTERED][metric] / s["quality"]["original"][metric]

    claims = [
        claim("the group is told from unbiased features with an accuracy over 0.9 (mean)", lambda s: s["accuracy"]["unbiased"], lambda m: m[0] > 0.9),
        claim("... and from semantic features, by the strict probe, hardly better than from content words alone (mean difference under 0.1)", lambda s: s["accuracy"]["semantic"] - s["accuracy"]["content"], lambda m: m[0] < 0.1),
        claim("filtered training leaves under 40% of the gaps (mean)", lambda s: s["gaps"][FILTERED], lambda m: m[0] < 0.4),
    ]  # fmt: skip
    for control, name in CONTROLS.items():
        if control == PLACEBO:  # the adversary is not shown to add anything
            continue
        claims.append(
            claim(
                f"{name} leaves less than its {control}, the same training without the debiasing term (the difference)",
                lambda s, name=name, control=control: s["gaps"][control] - s["gaps"][name],
                lambda m: m[1] > 0,
            )
        )
    for name in CURED:
        claims.append(
            claim(
                f"{name}: the gaps are smaller than the original's (the share of the biased ones that is left, below 1)",
                lambda s, name=name: s["gaps"][name],
                lambda m: m[2] < 1,
            )
        )
    named = {
        d: {name: interval([s[d]["naming"][name] for s in seeds]) for name in seeds[0][d]["naming"]}
        for d in dimensions
        if seeds[0][d]["naming"]
    }
    for name, misnames in (("WER", True), ("CDA", False), (FILTERED, False)):
        most = {d: shares["original"][0] + MOST_MISNAMED / 100 for d, shares in named.items()}
        claims.append(
            (f"{name}'s answers name the other group {'' if misnames else 'no '}more often than the original's by more than {MOST_MISNAMED:.0f} points (mean share of those that name one)", all((shares[name][0] > most[d]) == misnames for d, shares in named.items()), "; ".join(f"{d} {shares[name][0]:.2f} ({shares[name][1]:.2f} to {shares[name][2]:.2f}), original {shares['original'][0]:.2f}" for d, shares in named.items()))
        )  # fmt: skip
    rises = {
        d: max(s[d]["harmful"][FILTERED][m] - was for s in seeds for m, was in s[d]["harmful"]["original"].items())
        for d in dimensions
    }
    claims.append(
        ("in no seed does filtered training give both groups together two points more offensive or negative answers (the largest rise)", max(rises.values()) < 2, "; ".join(f"{d} {rise:+.1f}" for d, rise in rises.items()))
    )  # fmt: skip
    claims += [
        claim(f"filtered training keeps {metric} at {least:.0%} or better (mean)", kept(metric), lambda m, least=least: m[0] >= least)
        for metric, least in (("distinct_1", 0.9), ("distinct_2", 0.9), ("bleu_1", 0.85), ("bleu_2", 0.85), ("bleu_3", 0.85))
    ]  # fmt: skip
    called = {
        name: [f"{d} {m}" for d in dimensions for m, effect in effects[d][name].items() if effect == "cure"]
        for name in DEBIASED
    }
    claims.append(
        ("no control is called a cure of anything", not any(called[control] for control in CONTROLS), "; ".join(f"{name} {len(cured)}" for name, cured in called.items()) + f" of {sum(len(effects[d][CHAT]) for d in dimensions)} measures called a cure")
    )  # fmt: skip
    of_wer = [m for m in called["WER"] if m.split()[0] in named]
    claims.append(
        ("WER is called a cure of nothing where groups can be named", not of_wer, ", ".join(of_wer) or "none")
    )
    claims.append(
        claim("WER gives more identical pairs than the original (the difference)", lambda s: s["identical"]["WER"] - s["identical"]["original"], lambda m: m[1] > 0)
    )  # fmt: skip
    return list(claims)


def spread(values: list[float]) -> str:
    return f"{np.mean(values):.2f} ({min(values):.2f} to {max(values):.2f})"


def parts() -> dict[str, Part]:
    """The parts by name."""
    planted_seeds = {f"planted-{seed}": partial(planted, seed) for seed in SEEDS}
    return {**planted_seeds, **{profile: partial(cures, profile) for profile in (CURES, *real_cures())}}
