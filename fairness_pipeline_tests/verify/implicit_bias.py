"""Verifies study 4: a planted spelling is found, explained and cured; without one nothing is found."""

from functools import partial
from typing import Any

import numpy as np
import yaml
from scipy.stats import binomtest

from fairness_pipeline.explanation.agreement import rank_correlation
from fairness_pipeline.foundation import paths
from fairness_pipeline.studies.implicit_bias.results import top_words
from fairness_pipeline.workspace.lake import Lake
from fairness_pipeline_tests.verify.shared import SEEDS, STATE, Claim, Part, command, finished, interval, version

STUDY = "implicit_bias"
SMALL = {
    "maximum": 200,
    "classifiers": {
        "cnn": {
            "network": {"embedding": 12, "filters": 8, "hidden": 12, "vocabulary": 400},
            "fitting": {"learning_rate": 0.01, "epochs": 3, "checkpoint_seconds": 0.2}, "seeds": 2,
        },
        "cnn-ins_weigh": {},
        "cnn-debiased_tc": {"settings": {"hidden": 8, "epochs": 2}},
    },
    "balance_rates": ["4:1", "1:1"],
    "explain": ["cnn"],
    "explainer": {"hidden": 8, "epochs": 1, "texts": 20, "steps": 4},
}  # fmt: skip
"""The changes that a killed run makes to the sample's section: it trains for a moment only."""
METHODS = ("cnn-data_aug", "cnn-ins_weigh", "cnn-debiased_tc")
UNPLANTED = 120
"""Draws of the corpus without a spelling that tells the group."""


def parts() -> dict[str, Part]:
    """The parts by name."""
    return {**{f"style-{seed}": partial(style, seed) for seed in SEEDS}, "style-none": no_style}


def style(seed: int) -> dict[str, Any]:
    """One seed of the sample profile: splits, first weights and order are its own."""
    profile = yaml.safe_load(paths.data_file("profiles/sample.yaml").read_text(encoding="utf-8"))
    section = profile[STUDY]
    lake = _made(f"style-{seed}", {"description": "verified", "seed": seed, "dimensions": ["gender"], STUDY: section})
    key = {"corpus": "authored_sample", "classifier": "cnn"}

    def metrics(classifier: str) -> dict[str, float]:
        rows = lake.read("classifier_metrics", {**key, "classifier": classifier}).to_pylist()
        return {row["metric"]: row["value"] for row in rows}

    def verdict(classifier: str) -> str:
        rows = lake.read("classifier_fairness", {**key, "classifier": classifier}).to_pylist()
        return next(row["verdict"] for row in rows if row["measure"] == "dp_rate")

    def rate(name: str) -> dict[str, float]:
        """The means over its trainings."""
        table = lake.read("balance_rates", {"corpus": "authored_sample", "rate": name})
        return {column: float(np.mean(table[column].to_numpy())) for column in table.column_names}

    rates = {name: rate(name) for name in ("4-1", "1-1", "1-4")}
    saliency = lake.read("saliency", key)
    return {
        "metrics": {name: metrics(name) for name in ("cnn", *METHODS)},
        "verdicts": {name: verdict(name) for name in ("cnn", *METHODS)},
        "rates": rates,
        "top": {kind: [word for word, _, _ in top_words(saliency, kind)] for kind in ("label_l2x", "group_l2x")},
        "lift": _lift(saliency),
        "agreement": {
            task: rank_correlation(*([np.array(shares) for shares in saliency[f"{task}_{kind}"].to_pylist()] for kind in ("l2x", "gradients")))
            for task in ("label", "group")
        },
    }  # fmt: skip


def _lift(saliency: Any) -> float:
    """The saliency of group b's spellings for the label, in multiples of an even share: 1 is nothing special."""
    grammar = yaml.safe_load(paths.data_file("grammars/authored_sample.yaml").read_text(encoding="utf-8"))
    cue = {word for pair in grammar["spellings"] for word in pair}
    lifts = [
        share * len(words)
        for words, shares in zip(saliency["words"].to_pylist(), saliency["label_l2x"].to_pylist(), strict=True)
        for word, share in zip(words, shares, strict=True)
        if word in cue
    ]
    return float(np.mean(lifts))


def no_style() -> dict[str, Any]:
    """The same CNN trained on other draws of a corpus in which no spelling tells the group: the intervals of DPR."""
    for kind in ("grammars", "corpora"):
        (STATE / "data" / kind).mkdir(parents=True, exist_ok=True)
    grammar, corpus, profile = (
        yaml.safe_load(paths.data_file(name).read_text(encoding="utf-8"))
        for name in ("grammars/authored_sample.yaml", "corpora/authored_sample.yaml", "profiles/sample.yaml")
    )
    _write("grammars/no_style", grammar | {"styled": 0.5})
    names = [f"no_style_{number}" for number in range(UNPLANTED)]
    for number, name in enumerate(names):
        source = {"file": "grammars/no_style.yaml", "texts": 5000, "seed": 100 + number}
        _write(f"corpora/{name}", corpus | {"grammar": source})
    cnn = profile[STUDY]["classifiers"]["cnn"] | {"seeds": 1}
    section = {"corpora": names, "maximum": 700, "splits": profile[STUDY]["splits"], "classifiers": {"cnn": cnn}}
    lake = _made("style-none", {"description": "verified", "seed": 1, "dimensions": ["gender"], STUDY: section})
    rows = [lake.read("classifier_fairness", {"corpus": name, "classifier": "cnn"}).to_pylist() for name in names]
    dp_rows = [row for of_corpus in rows for row in of_corpus if row["measure"] == "dp_rate"]
    return {
        "covered": sum(row["ci_low"] <= 0 <= row["ci_high"] for row in dp_rows),
        "biased": sum(any(row["verdict"] == "biased" for row in of_corpus) for of_corpus in rows),
        "mean": float(np.mean([row["difference"] for row in dp_rows])),
    }


def judge(outcomes: dict[str, dict[str, Any]]) -> list[Claim]:
    """The study's claims."""
    seeds, none = [outcomes[f"style-{seed}"] for seed in SEEDS], outcomes["style-none"]
    gap = interval([abs(s["rates"]["4-1"]["dp_difference"]) - abs(s["rates"]["1-1"]["dp_difference"]) for s in seeds])
    apart = {kind: interval([s["rates"]["1-1"][kind] - s["rates"]["4-1"][kind] for s in seeds]) for kind in ("js_l2x", "js_gradients")}  # fmt: skip
    left = {m: interval([s["metrics"][m]["dpd"] / s["metrics"]["cnn"]["dpd"] for s in seeds]) for m in METHODS}
    cost = {
        m: interval([s["metrics"][m]["accuracy"] - s["metrics"]["cnn"]["accuracy"] for s in seeds]) for m in METHODS
    }
    grammar = yaml.safe_load(paths.data_file("grammars/authored_sample.yaml").read_text(encoding="utf-8"))
    cue = {word for pair in grammar["spellings"] for word in pair}
    telling = {word for kind in ("positive", "negative") for word in grammar[kind]}
    group_cues = [len(cue & set(s["top"]["group_l2x"])) for s in seeds]
    label_words = [len(telling & set(s["top"]["label_l2x"])) for s in seeds]
    agreed = {task: float(np.mean([s["agreement"][task] for s in seeds])) for task in ("label", "group")}
    biased = sum(s["verdicts"]["cnn"] == "biased" for s in seeds)
    after = {m: sum(s["verdicts"][m] == "biased" for s in seeds) for m in METHODS}
    low, high = binomtest(none["covered"], UNPLANTED).proportion_ci()
    return [
        ("DPD at 4:1 is more than 10 points above that at 1:1 (mean), and above it with the whole interval", gap[1] > 0 and gap[0] > 10, _formatted(gap)),
        ("the CNN trained at 4:1 is `biased` in DPR in 5 of 5 seeds", biased == len(SEEDS), f"{biased} of 5; after the methods: " + ", ".join(f"{m} {n}" for m, n in after.items())),
        ("the words for the label and for the group overlap more at 4:1 than at 1:1 (JS lower, by L2X and by gradients)", all(v[1] > 0 for v in apart.values()), "; ".join(f"{k} {_formatted(v)}" for k, v in apart.items())),
        ("the planted spellings make most of the explainer's top ten words for the group", min(group_cues) >= 6, f"{group_cues} of 10; words that tell the label make {label_words} of its top ten; L2X and gradients correlate {agreed['label']:.2f} (label), {agreed['group']:.2f} (group)"),
        ("Debiased-TC leaves at most half of DPD", left["cnn-debiased_tc"][2] < 0.5, "; ".join(f"{m} {_formatted(v)}" for m, v in left.items())),
        ("Debiased-TC costs at most three points of accuracy", cost["cnn-debiased_tc"][1] > -3, "; ".join(f"{m} {_formatted(v)}" for m, v in cost.items())),
        ("with no spelling planted 95% is among the rates at which the 95% interval of DPR's difference may hold 0 (exact interval)", low <= 0.95 <= high, f"{none['covered']} of {UNPLANTED} ({100 * low:.0f} to {100 * high:.0f}%); mean difference {none['mean']:+.2f} points; any rate `biased` in {none['biased']}"),
    ]  # fmt: skip


def _formatted(bounds: tuple[float, float, float]) -> str:
    return f"{bounds[0]:.2f} ({bounds[1]:.2f} to {bounds[2]:.2f})"


def _made(name: str, profile: dict[str, Any]) -> Lake:
    home = STATE / f"home-{version()[:12]}"
    _write(f"profiles/{name}", profile)
    finished(command(home, "run", "--profile", name, "--study", STUDY, data=STATE / "data"))
    return Lake(home / name)


def _write(name: str, content: dict[str, Any]) -> None:
    path = STATE / "data" / f"{name}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(content), encoding="utf-8")
