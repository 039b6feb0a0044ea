"""Planted stereotypes and debiased language models, over seeds."""

from functools import partial
from typing import Any

import numpy as np
import yaml

from fairness_pipeline.foundation import paths
from fairness_pipeline.measures.language.phrase_bias import LOG
from fairness_pipeline.measures.language.stereotype import STEREOTYPE
from fairness_pipeline.workspace.lake import Lake
from fairness_pipeline_tests.verify.shared import (
    DIALOGUES,
    LANGUAGE,
    SEEDS,
    SENTIMENT,
    STATE,
    STYLE,
    Claim,
    Part,
    command,
    finished,
    interval,
    version,
)

PLANTED_STEREOTYPES, UNPLANTED = ("religion1", "gender", "orientation"), ("religion2", "race")
"""In which dimensions data/grammars/reddit_sample.yaml plants a stereotype of side b, and in which none."""
LANGUAGE_METHODS = ("lmd", "add", "hd", "cda", "plain")
ATTRIBUTE_FIRST = {
    "assertions": ["{opening} {attribute} {group} are here {tail}", "{attribute} {group} are here {tail}"],
    "myths": ["it is a myth that {attribute} {group} are here {tail}"],
}
"""Frames that say the stereotype before the group: what a language model thinks of the group then follows from it."""
FIRST_DIMENSIONS = ("religion1", "orientation")
"""Those whose planted stereotypes are adjectives."""
WHOLE_HD = "hd-all"
"""HD with the directions that explain 99% of what tells the groups apart, not half."""


def stereotypes(seed: int) -> dict[str, Any]:
    """One seed of the small language model: its gap in each dimension, and what each method and the control leave."""
    profile = yaml.safe_load(paths.data_file("profiles/sample.yaml").read_text(encoding="utf-8"))
    profile[LANGUAGE]["debias"] = list(PLANTED_STEREOTYPES)
    return language_models(f"stereotypes-{seed}", profile | {"seed": seed}, LANGUAGE_METHODS)


def attribute_first(seed: int) -> dict[str, Any]:
    """The same, where the stereotype is said before the group."""
    for kind in ("corpora", "grammars", "models"):
        (STATE / "data" / kind).mkdir(parents=True, exist_ok=True)
    corpus, grammar, profile = (
        yaml.safe_load(paths.data_file(name).read_text(encoding="utf-8"))
        for name in ("corpora/reddit_sample.yaml", "grammars/reddit_sample.yaml", "profiles/sample.yaml")
    )
    grammar |= ATTRIBUTE_FIRST
    grammar["dimensions"] = {d: grammar["dimensions"][d] for d in (*FIRST_DIMENSIONS, *UNPLANTED)}
    corpus["grammar"]["file"] = "grammars/attribute_first.yaml"
    models = {name: own for name, own in profile["models"].items() if name.startswith("gpt2-tiny")}
    models[f"gpt2-tiny-{WHOLE_HD}"] = {"settings": {**models["gpt2-tiny-hd"]["settings"], "explained": 0.99}}
    profile |= {"seed": seed, "models": models, "dimensions": [*FIRST_DIMENSIONS, *UNPLANTED]}
    profile[LANGUAGE] |= {"corpus": "attribute_first", "debias": list(FIRST_DIMENSIONS)}
    written = {
        "grammars/attribute_first": grammar,
        "corpora/attribute_first": corpus,
        f"models/gpt2-tiny-{WHOLE_HD}": {"base": "gpt2-tiny", "debiasing": "hd"},
    }
    for name, made in written.items():
        (STATE / "data" / f"{name}.yaml").write_text(yaml.safe_dump(made), encoding="utf-8")
    own = {name: section for name, section in profile.items() if name not in (DIALOGUES, SENTIMENT, STYLE)}
    return language_models(f"attribute_first-{seed}", own, (*LANGUAGE_METHODS, WHOLE_HD))


def language_models(name: str, profile: dict[str, Any], methods: tuple[str, ...]) -> dict[str, Any]:
    """Runs a profile of the small language model: of base and methods the row that the verdict hangs on."""
    home, data = STATE / f"home-{version()[:12]}", STATE / "data"
    (data / "profiles").mkdir(parents=True, exist_ok=True)
    (data / "profiles" / f"{name}.yaml").write_text(yaml.safe_dump(profile), encoding="utf-8")
    finished(command(home, "run", "--profile", name, "--study", LANGUAGE, "--select", "language_model_bias", data=data))
    lake = Lake(home / name)

    def row(dimension: str, model: str) -> list[Any]:
        rows = lake.read("language_model_bias", {"dimension": dimension, "model": model}).to_pylist()
        own, stereotype = (next(r for r in rows if r["measure"] == name) for name in (LOG, STEREOTYPE))
        return [own["difference"], stereotype["verdict"], own["p_targets"], own["unbiased_difference"]]

    debiased = profile[LANGUAGE]["debias"]
    return {
        "base": {d: row(d, "gpt2-tiny") for d in (*debiased, *UNPLANTED)},
        "left": {m: {d: row(d, f"gpt2-tiny-{m}") for d in debiased} for m in methods},
    }


def judge(outcomes: dict[str, dict[str, Any]]) -> list[Claim]:
    """Study 2's claims: what is planted is found and nothing else as large; counterfactuals cure beyond the control."""
    seeds = [outcomes[f"stereotypes-{seed}"] for seed in SEEDS]
    planted_gaps = {d: [seed["base"][d] for seed in seeds] for d in PLANTED_STEREOTYPES}
    signs = sum(all(gap[0] > 0 for gap in own) for own in planted_gaps.values())
    biased = {d: sum(gap[1] == "biased" for gap in own) for d, own in planted_gaps.items()}
    survive = sum(gap[2] is not None and gap[2] < 0.05 for own in planted_gaps.values() for gap in own)
    means = {d: float(np.mean([seed["base"][d][0] for seed in seeds])) for d in (*PLANTED_STEREOTYPES, *UNPLANTED)}
    least = min(means[d] for d in PLANTED_STEREOTYPES)
    widest = max(abs(means[d]) for d in UNPLANTED)
    called = sum(seed["base"][d][1] == "biased" for seed in seeds for d in UNPLANTED)

    shares = shares_left(seeds, PLANTED_STEREOTYPES, LANGUAGE_METHODS)
    beyond = {
        method: interval(
            [
                float(
                    np.mean([abs(s["left"]["plain"][d][0]) - abs(s["left"][method][d][0]) for d in PLANTED_STEREOTYPES])
                )
                for s in seeds
            ]
        )
        for method in LANGUAGE_METHODS[:-1]
    }
    first = [outcomes[f"attribute_first-{seed}"] for seed in SEEDS]
    gaps_first = {
        method: [float(np.mean([abs(seed["left"][method][d][0]) for d in FIRST_DIMENSIONS])) for seed in first]
        for method in (*LANGUAGE_METHODS, WHOLE_HD)
    }
    whole_beyond = {
        other: interval([theirs - own for theirs, own in zip(gaps_first[other], gaps_first[WHOLE_HD], strict=True)])
        for other in ("hd", "plain")
    }
    total_first = len(FIRST_DIMENSIONS) * len(SEEDS)
    cured = {
        method: sum(seed["left"][method][d][1] != "biased" for seed in first for d in FIRST_DIMENSIONS)
        for method in (*LANGUAGE_METHODS, WHOLE_HD)
    }
    was = sum(seed["base"][d][1] == "biased" for seed in first for d in FIRST_DIMENSIONS)
    more = "; ".join(f"{m} {v[0]:+.3f} ({v[1]:+.3f} to {v[2]:+.3f})" for m, v in beyond.items())
    total = len(PLANTED_STEREOTYPES)
    return [
        ("planted stereotypes have the planted sign in 5 of 5 seeds", signs == total, f"{signs} of {total} dimensions"),
        ("planted stereotypes are `biased` in at least 4 of 5 seeds", min(biased.values()) >= 4, "; ".join(f"{d} {n} of 5" for d, n in biased.items()) + f"; {survive} of {total * len(SEEDS)} hold with a target word's phrases as one"),
        ("gaps where nothing is planted stay under half the least planted one (means over seeds)", widest < least / 2, f"{widest:.3f} against {least:.3f}; `biased`, as a trained network always differs a little, in {called} of {len(UNPLANTED) * len(SEEDS)}"),
        ("CDA leaves less of the planted gaps than its control, fine-tuning without a cure (the difference)", beyond["cda"][1] > 0, more),
        ("CDA leaves less than a quarter of the planted gaps", shares["cda"][2] < 0.25, f"{told(shares)}, which is the control"),
        ("where the stereotype is said before the group, HD with the directions that explain 99% leaves less than with those that explain half, and than the control (the differences)", min(found[1] for found in whole_beyond.values()) > 0, "; ".join(f"{m} {v[0]:+.3f} ({v[1]:+.3f} to {v[2]:+.3f})" for m, v in whole_beyond.items()) + "; left, mean: " + ", ".join(f"{m} {np.mean(own):.3f}" for m, own in gaps_first.items())),
        ("there CDA and that HD leave at most one gap in five `biased`", min(cured["cda"], cured[WHOLE_HD]) >= 0.8 * total_first, f"not `biased`, of {total_first}: the base {total_first - was}; " + "; ".join(f"{m} {n}" for m, n in cured.items())),
    ]  # fmt: skip


def shares_left(
    seeds: list[dict[str, Any]], dimensions: tuple[str, ...], methods: tuple[str, ...]
) -> dict[str, tuple[float, float, float]]:
    """Of each method the share of the base's gaps that it leaves: mean and interval over seeds."""
    return {
        method: interval(
            [
                float(np.mean([abs(seed["left"][method][d][0]) / abs(seed["base"][d][0]) for d in dimensions]))
                for seed in seeds
            ]
        )
        for method in methods
    }


def told(shares: dict[str, tuple[float, float, float]]) -> str:
    """The shares in words."""
    return "; ".join(f"{m} {v[0]:.2f} ({v[1]:.2f} to {v[2]:.2f})" for m, v in shares.items())


def parts() -> dict[str, Part]:
    """What is run, by name."""
    found: dict[str, Part] = {f"stereotypes-{seed}": partial(stereotypes, seed) for seed in SEEDS}
    return found | {f"attribute_first-{seed}": partial(attribute_first, seed) for seed in SEEDS}
