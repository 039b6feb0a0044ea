"""Verifies study 3 over seeds: sentiment systems learn a planted difference."""

from functools import partial
from typing import Any

import numpy as np
import yaml

from fairness_pipeline.corpora.sentiment.equity_sentences import DIMENSIONS, PUBLISHED
from fairness_pipeline.foundation import paths
from fairness_pipeline.measures.sentiment.equity_pairs import ALL, EVERYBODY
from fairness_pipeline.workspace.lake import Lake
from fairness_pipeline_tests.verify.shared import (
    SEEDS,
    SENTIMENT,
    STATE,
    Claim,
    Part,
    command,
    finished,
    version,
)

TRAINED = ("linear_svm", "cnn", "gru")
PLANTED_IN_TWEETS = (("gender", "fear"), ("gender", "joy"), ("race", "anger"))
"""What data/affect/README.md says is planted: side b's scores are higher."""


def equity(seed: int) -> dict[str, Any]:
    """One seed of the sentiment systems: the verdict on each, by dimension and affect."""
    home, data = STATE / f"home-{version()[:12]}", STATE / "data"
    (data / "profiles").mkdir(parents=True, exist_ok=True)
    profile = yaml.safe_load(paths.data_file("profiles/sample.yaml").read_text(encoding="utf-8")) | {"seed": seed}
    (data / "profiles" / f"equity-{seed}.yaml").write_text(yaml.safe_dump(profile), encoding="utf-8")
    finished(command(home, "run", "--profile", f"equity-{seed}", "--study", SENTIMENT, data=data))
    lake = Lake(home / f"equity-{seed}")
    verdicts: dict[str, list[Any]] = {}
    for dimension in DIMENSIONS:
        for system in profile["sentiment_equity"]["systems"]:
            for row in lake.read("equity_significance", {"dimension": dimension, "system": system}).to_pylist():
                if (row["templates"], row["subset"], row["persons"]) == (PUBLISHED, ALL, EVERYBODY):
                    verdicts[f"{dimension}/{system}/{row['affect']}"] = [row["difference"], row["verdict"], row["p"]]
    return {"found": verdicts}


def judge(outcomes: dict[str, dict[str, Any]]) -> list[Claim]:
    """Study 3's claims: what is planted is found, and VADER, which is not trained here, is never called biased."""
    seeds = [outcomes[f"equity-{seed}"]["found"] for seed in SEEDS]
    names = [f"{dimension}/{system}/{affect}" for dimension, affect in PLANTED_IN_TWEETS for system in TRAINED]
    signs = sum(all(seed[name][0] < 0 for seed in seeds) for name in names)
    biased = sum(sum(seed[name][1] == "biased" for seed in seeds) >= 4 for name in names)
    vader = [seed[name] for seed in seeds for name in seed if "/vader/" in name]
    others = [row for seed in seeds for name, row in seed.items() if name not in names and "/vader/" not in name]
    widest = max(abs(row[0]) for row in others)
    least = min(abs(float(np.mean([seed[name][0] for seed in seeds]))) for name in names)
    share, paper = (f"{sum(chosen)} of {len(others)}" for chosen in (
        [row[1] == "biased" for row in others], [row[2] < 0.05 for row in others]
    ))  # fmt: skip
    return [
        ("planted bias has the planted sign in 5 of 5 seeds, in every trained system", signs == len(names), f"{signs} of {len(names)}"),
        ("planted bias is `biased` in at least 4 of 5 seeds, in every trained system", biased == len(names), f"{biased} of {len(names)}; where nothing is planted, trained systems are called biased in {share} cases, by the paper's test in {paper}"),
        ("unplanted differences stay under the least planted one (mean over seeds)", widest < least, f"{widest:.3f} under {least:.3f}"),
        ("VADER, trained on nothing here, is never `biased`", all(row[1] != "biased" for row in vader), f"{len(vader)} verdicts; the paper's test rejects in {sum(row[2] < 0.05 for row in vader)}"),
    ]  # fmt: skip


def parts() -> dict[str, Part]:
    """The parts by name."""
    return {f"equity-{seed}": partial(equity, seed) for seed in SEEDS}
