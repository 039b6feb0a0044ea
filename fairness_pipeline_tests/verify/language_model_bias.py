"""Verifies planted stereotypes and debiased language models, over seeds."""

from functools import partial
from typing import Any

import numpy as np
import yaml

from fairness_pipeline.foundation import paths
from fairness_pipeline.measures.language.stereotype import STEREOTYPE
from fairness_pipeline.workspace.lake import Lake
from fairness_pipeline_tests.verify.shared import (
    DIALOGUES,
    LANGUAGE,
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
"""The dimensions in which data/grammars/reddit_sample.yaml plants a stereotype of side b, and those without."""
LANGUAGE_METHODS = ("lmd", "add", "hd", "cda", "plain")
ATTRIBUTE_FIRST = {
    "assertions": ["{opening} {attribute} {group} are here {tail}", "{attribute} {group} are here {tail}"],
    "myths": ["it is a myth that {attribute} {group} are here {tail}"],
}
"""Frames that say the stereotype before the group: what a language model thinks of the group then follows from it."""
FIRST_DIMENSIONS = ("religion1", "orientation")
"""Those whose planted stereotypes are adjectives."""
LANGUAGE_SEEDS = tuple(range(1, 16))
"""The seeds over which a method is compared with its control."""
NOT_CURED = ("lmd", "add", "hd")
"""The methods that do not cure where the stereotype is said after the group."""
WITHIN = 0.1
"""The largest change of S, as a share of it, that does not matter."""
WHOLE_HD = "hd-all"
"""HD with the directions that explain 99% of what tells the groups apart, not half."""


def stereotypes(seed: int) -> dict[str, Any]:
    """One seed of the small language model: its S in each dimension, and what each method and the control leave."""
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
    models = {name: model for name, model in profile["models"].items() if name.startswith("gpt2-tiny")}
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
    sections = {name: section for name, section in profile.items() if name not in (DIALOGUES, SENTIMENT, STYLE)}
    return language_models(f"attribute_first-{seed}", sections, (*LANGUAGE_METHODS, WHOLE_HD))


def language_models(name: str, profile: dict[str, Any], methods: tuple[str, ...]) -> dict[str, Any]:
    """Runs a profile of the small language model: returns the deciding row of the base and of each method."""
    home, data = STATE / f"home-{version()[:12]}", STATE / "data"
    (data / "profiles").mkdir(parents=True, exist_ok=True)
    (data / "profiles" / f"{name}.yaml").write_text(yaml.safe_dump(profile), encoding="utf-8")
    finished(command(home, "run", "--profile", name, "--study", LANGUAGE, "--select", "language_model_bias", data=data))
    lake = Lake(home / name)

    def row(dimension: str, model: str) -> list[Any]:
        """S, its verdict, and its p with the phrases of a target word as one."""
        rows = lake.read("language_model_bias", {"dimension": dimension, "model": model}).to_pylist()
        stereotype = next(row for row in rows if row["measure"] == STEREOTYPE)
        return [stereotype["difference"], stereotype["verdict"], stereotype["p_targets"]]

    debiased = profile[LANGUAGE]["debias"]
    return {
        "base": {d: row(d, "gpt2-tiny") for d in (*debiased, *UNPLANTED)},
        "left": {m: {d: row(d, f"gpt2-tiny-{m}") for d in debiased} for m in methods},
    }


def judge(outcomes: dict[str, dict[str, Any]]) -> list[Claim]:
    """Study 2's claims on S: what is planted is found, and nothing else is as large; counterfactuals cure beyond the
    control, which is claimed of no other method."""
    seeds = [outcomes[f"stereotypes-{seed}"] for seed in LANGUAGE_SEEDS]
    planted_gaps = {d: [seed["base"][d] for seed in seeds] for d in PLANTED_STEREOTYPES}
    signs = sum(all(gap[0] > 0 for gap in gaps) for gaps in planted_gaps.values())
    biased = {d: sum(gap[1] == "biased" for gap in gaps) for d, gaps in planted_gaps.items()}
    survive = sum(gap[2] is not None and gap[2] < 0.05 for gaps in planted_gaps.values() for gap in gaps)
    means = {d: float(np.mean([seed["base"][d][0] for seed in seeds])) for d in (*PLANTED_STEREOTYPES, *UNPLANTED)}
    least = min(means[d] for d in PLANTED_STEREOTYPES)
    widest = max(abs(means[d]) for d in UNPLANTED)
    called = sum(seed["base"][d][1] == "biased" for seed in seeds for d in UNPLANTED)
    shares = shares_left(seeds, PLANTED_STEREOTYPES, LANGUAGE_METHODS)
    beyond = {name: beyond_control(seeds, PLANTED_STEREOTYPES, name) for name in LANGUAGE_METHODS[:-1]}

    first = [outcomes[f"attribute_first-{seed}"] for seed in LANGUAGE_SEEDS]
    first_shares = shares_left(first, FIRST_DIMENSIONS, (*LANGUAGE_METHODS, WHOLE_HD))
    first_beyond = {name: beyond_control(first, FIRST_DIMENSIONS, name) for name in (*LANGUAGE_METHODS[:-1], WHOLE_HD)}
    total, count = len(PLANTED_STEREOTYPES), len(LANGUAGE_SEEDS)
    return [
        ("S of planted stereotypes has the planted sign in every seed", signs == total, f"{signs} of {total} dimensions"),
        ("planted stereotypes are `biased` in four seeds of five", min(biased.values()) >= 0.8 * count, "; ".join(f"{d} {n} of {count}" for d, n in biased.items()) + f"; {survive} of {total * count} hold with a target word's phrases as one"),
        ("S where nothing is planted stays under half the least planted one (means over seeds)", widest < least / 2, f"{widest:.3f} against {least:.3f}; `biased` in {called} of {len(UNPLANTED) * count}"),
        ("CDA leaves less of S than its control, fine-tuning without a cure (the difference of the shares left)", beyond["cda"][1] > 0, as_text(beyond)),
        ("CDA leaves less than half of S", shares["cda"][2] < 0.5, f"{as_text(shares)}, which is the control"),
        ("LMD, ADD and HD leave S as it was, within a tenth (the share left; TOST)", all(map(as_before, (shares[name] for name in NOT_CURED))), as_text({name: shares[name] for name in NOT_CURED})),
        ("where the stereotype is said before the group, CDA leaves less of S than the control (the difference of the shares left)", first_beyond["cda"][1] > 0, f"{as_text(first_beyond)}; left: {as_text(first_shares)}"),
        ("there HD with the directions that explain 99% leaves less than the control", first_beyond[WHOLE_HD][1] > 0, as_text({WHOLE_HD: first_beyond[WHOLE_HD], "hd": first_beyond["hd"]})),
    ]  # fmt: skip


def shares_left(
    seeds: list[dict[str, Any]], dimensions: tuple[str, ...], methods: tuple[str, ...]
) -> dict[str, tuple[float, float, float]]:
    """The share of the base's S that each method leaves: mean and interval over seeds."""
    return {method: interval([_left(seed, dimensions, method) for seed in seeds]) for method in methods}


def beyond_control(seeds: list[dict[str, Any]], dimensions: tuple[str, ...], method: str) -> tuple[float, float, float]:
    """The share of S that the control leaves minus that of a method, seed by seed: mean and interval."""
    return interval([_left(seed, dimensions, "plain") - _left(seed, dimensions, method) for seed in seeds])


def as_before(share: tuple[float, float, float]) -> bool:
    """Whether two one-sided tests at 2.5% show the share that is left to be within `WITHIN` of 1."""
    return share[1] > 1 - WITHIN and share[2] < 1 + WITHIN


def _left(seed: dict[str, Any], dimensions: tuple[str, ...], method: str) -> float:
    return float(np.mean([abs(seed["left"][method][d][0]) / abs(seed["base"][d][0]) for d in dimensions]))


def as_text(shares: dict[str, tuple[float, float, float]]) -> str:
    """The shares in words."""
    return "; ".join(f"{m} {v[0]:+.2f} ({v[1]:+.2f} to {v[2]:+.2f})" for m, v in shares.items())


def parts() -> dict[str, Part]:
    """The parts by name."""
    planted: dict[str, Part] = {f"stereotypes-{seed}": partial(stereotypes, seed) for seed in LANGUAGE_SEEDS}
    return planted | {f"attribute_first-{seed}": partial(attribute_first, seed) for seed in LANGUAGE_SEEDS}
