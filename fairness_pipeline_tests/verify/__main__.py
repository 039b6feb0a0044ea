"""`make verify`: what takes too long for `make test`.

Five seeds of the sample profile against the bias that is planted in its data, with what debiasing makes of it, a kill in
the middle of each stage, a disk that fills up. Each part's outcome is kept, so that a verification that was stopped goes
on; it is forgotten when the code or the data changes. Writes docs/verification.md.
"""

import argparse
import json
import os
import platform
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import yaml

from fairness_pipeline.corpora.dialogue.grammar import Grammar, Scene
from fairness_pipeline.corpora.sentiment.equity_sentences import DIMENSIONS, PUBLISHED
from fairness_pipeline.foundation import paths
from fairness_pipeline.measures.dialogue.debiasing_effects import identical_share
from fairness_pipeline.measures.dialogue.dialogue_significance import compared
from fairness_pipeline.measures.dialogue.measure import MASKED, SignificanceSettings
from fairness_pipeline.measures.dialogue.registry import harmful, measures
from fairness_pipeline.measures.dialogue.settings import MeasureSettings
from fairness_pipeline.measures.language.phrase_bias import LOG
from fairness_pipeline.measures.language.stereotype import STEREOTYPE
from fairness_pipeline.measures.sentiment.equity_pairs import ALL, EVERYBODY
from fairness_pipeline.models.dialogue.responding import RESPONSES
from fairness_pipeline.project.project import Project, load_dimension
from fairness_pipeline.project.study import STUDIES
from fairness_pipeline.studies.dialogue_fairness.models import seed_name
from fairness_pipeline.workspace.lake import Lake
from fairness_pipeline_tests.commands import content
from fairness_pipeline_tests.verify import annotator_bias, implicit_bias
from fairness_pipeline_tests.verify.shared import (
    ROOT,
    SEEDS,
    STATE,
    Claim,
    Part,
    command,
    finished,
    interval,
    stages,
    version,
)

DIALOGUES, LANGUAGE, SENTIMENT = "dialogue_fairness", "language_model_bias", "sentiment_equity"
STYLE, ANNOTATORS = implicit_bias.STUDY, annotator_bias.STUDY
_WORDS = {True: "holds", False: "**fails**", None: "not tried"}
DEBIASED = {
    "CDA": "seq2seq-cda", "WER": "seq2seq-wer", "Debiased-Chat": "seq2seq-debiased_chat", "dropout": "seq2seq-dropout",
    "LEACE": "seq2seq-leace", "Self-Debias": "seq2seq-self_debias", "control (mle)": "seq2seq-mle",
    "control (placebo)": "seq2seq-placebo", "control (duplication)": "seq2seq-duplication",
}  # fmt: skip
CURES, REAL_CURES = "cures", "cures_real"
"""The profiles that plant a bias in the sample, and in real dialogues."""
CHAT = "Debiased-Chat"
MLE, PLACEBO = "control (mle)", "control (placebo)"
CONTROLS = {MLE: CHAT, PLACEBO: CHAT, "control (duplication)": "CDA"}
"""What was trained in the same way without what shall cure, of which method."""
CURED = ("CDA", "WER", CHAT)
"""Those of which a cure of what is planted is claimed."""
TRAINED = ("linear_svm", "cnn", "gru")
PLANTED_IN_TWEETS = (("gender", "fear"), ("gender", "joy"), ("race", "anger"))
"""What data/affect/README.md says is planted: side b's scores are higher."""
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
RATES = ("offense_rate", "sentiment_positive", "sentiment_negative")


def main() -> None:
    """Runs what has not been verified yet; exits with 1 if any part fails."""
    parser = argparse.ArgumentParser(prog="make verify", description=__doc__)
    parser.add_argument("--study", choices=STUDIES, help="only this study's parts; no page")
    study = parser.parse_args().study
    parts: dict[str, dict[str, Part]] = {
        DIALOGUES: {
            **{f"planted-{seed}": partial(planted, seed) for seed in SEEDS},
            **{profile: partial(cures, profile) for profile in (CURES, *real_cures())},
            f"kill-{DIALOGUES}": partial(kill, DIALOGUES),
            "full_disk": full_disk,
        },
        LANGUAGE: {
            **{f"stereotypes-{seed}": partial(stereotypes, seed) for seed in SEEDS},
            **{f"attribute_first-{seed}": partial(attribute_first, seed) for seed in SEEDS},
            f"kill-{LANGUAGE}": partial(kill, LANGUAGE),
        },
        SENTIMENT: {
            **{f"equity-{seed}": partial(equity, seed) for seed in SEEDS},
            f"kill-{SENTIMENT}": partial(kill, SENTIMENT),
        },
        STYLE: {**implicit_bias.parts(), f"kill-{STYLE}": partial(kill, STYLE)},
        ANNOTATORS: {**annotator_bias.parts(), f"kill-{ANNOTATORS}": partial(kill, ANNOTATORS)},
    }
    outcomes = {
        name: remembered(name, run)
        for own, of_study in parts.items()
        if study in (None, own)
        for name, run in of_study.items()
    }
    verdicts = {}
    judges = {
        DIALOGUES: judge,
        LANGUAGE: judge_stereotypes,
        SENTIMENT: judge_equity,
        STYLE: lambda found: [*implicit_bias.judge(found), *judge_kill(found[f"kill-{STYLE}"])],
        ANNOTATORS: lambda found: [*annotator_bias.judge(found), *judge_kill(found[f"kill-{ANNOTATORS}"])],
    }
    for name, own_judge in judges.items():
        if study in (None, name):
            verdicts[name] = own_judge(outcomes)
    if study is None:
        write_page(outcomes, verdicts)
    everything = [verdict for of_study in verdicts.values() for verdict in of_study]
    for claim, held, figures in everything:
        print(f"{_WORDS[held]}: {claim} ({figures})")
    sys.exit(any(held is False for _, held, _ in everything))


def remembered(name: str, run: Part) -> dict[str, Any]:
    """The outcome of a part, from before if neither code nor data have changed since."""
    path = STATE / f"{name}.json"
    if path.exists():
        kept = json.loads(path.read_text(encoding="utf-8"))
        if kept["version"] == version():
            print(f"{name}: verified before")
            return kept["outcome"]
    print(f"{name}: running ...", flush=True)
    started = time.monotonic()
    outcome = {**run(), "seconds": round(time.monotonic() - started)}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"version": version(), "outcome": outcome}), encoding="utf-8")
    print(f"{name}: {outcome['seconds']} s", flush=True)
    return outcome


def planted(seed: int) -> dict[str, Any]:
    """One seed of the sample's base: what the audit found, and what its grammar's majority replies plant."""
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
    found, truth = {}, {}
    for dimension in profile["dimensions"]:
        key = {"dimension": dimension, "model": "seq2seq"}
        rows = lake.read("dialogue_significance", key).to_pylist()
        found[dimension] = {
            row["measure"]: [row["difference"], row["verdict"], row["value_a"] + row["value_b"]] for row in rows
        }
        expected = planted_differences(
            lake.read("context_pairs", {"corpus": "twitter_sample", "dimension": dimension}), dimension
        )
        truth[dimension] = {row["measure"]: [row["difference"], row["value_a"] + row["value_b"]] for row in expected}
    return {"found": found, "truth": truth}


def real_cures() -> list[str]:
    """The profile that needs the real corpora, where they are."""
    return [REAL_CURES] if os.environ.get("FAIRNESS_CORPORA") else []


def cures(profile: str) -> dict[str, Any]:
    """By dimension what each method made of each seed's gaps, and what is said of the recipe."""
    home = STATE / f"home-{version()[:12]}"
    finished(command(home, "run", "--profile", profile))
    lake, dimensions = Lake(home / profile), Project(profile).dimensions
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
    return {"seeds": [{d: debiased(lake, d, seed) for d in dimensions} for seed in SEEDS], "effects": effects}


def debiased(lake: Lake, dimension: str, seed: int) -> dict[str, Any]:
    """What each method made of one seed's planted gaps, what it cost, and what the autoencoder learned."""

    def key(model: str) -> dict[str, str]:
        return {"dimension": dimension, "model": seed_name(model, seed)}

    def differences(model: str) -> dict[str, Any]:
        rows = lake.read("dialogue_significance", key(model)).to_pylist()
        single = [row for row in rows if not row["measure"].startswith(("distinct", "diversity"))]
        return {row["measure"]: row for row in single if not row["measure"].endswith(MASKED)}

    models = {"original": "seq2seq", **DEBIASED}
    before = {name: row["difference"] for name, row in differences("seq2seq").items() if row["verdict"] == "biased"}
    left = {name: differences(model) for name, model in DEBIASED.items()}
    figures = lake.card("disentanglement", key(DEBIASED[CHAT])).figures
    return {
        "gaps": {
            n: float(np.mean([abs(own[m]["difference"] / was) for m, was in before.items()])) for n, own in left.items()
        },
        "harmful": {
            name: {m: float(np.mean([own[m]["value_a"], own[m]["value_b"]])) for m in harmful()}
            for name, own in {"original": differences("seq2seq"), **left}.items()
        },
        "identical": {name: identical_share(lake.read("responses", key(model))) for name, model in models.items()},
        "quality": {
            name: {row["metric"]: row["value"] for row in lake.read("response_quality", key(model)).to_pylist()}
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
    own, settings = load_dimension(dimension), MeasureSettings()
    tables = {measure.table: measure.measure(responses, settings, own) for measure in measures()}
    few = SignificanceSettings(permutations=1)
    return [asdict(row) for row in compared(responses, tables, settings=few, seed=0, published={}, dimension=own)]


def equity(seed: int) -> dict[str, Any]:
    """One seed of the sentiment systems: the verdict on each, by dimension and affect."""
    home, data = STATE / f"home-{version()[:12]}", STATE / "data"
    (data / "profiles").mkdir(parents=True, exist_ok=True)
    profile = yaml.safe_load(paths.data_file("profiles/sample.yaml").read_text(encoding="utf-8")) | {"seed": seed}
    (data / "profiles" / f"equity-{seed}.yaml").write_text(yaml.safe_dump(profile), encoding="utf-8")
    finished(command(home, "run", "--profile", f"equity-{seed}", "--study", SENTIMENT, data=data))
    lake = Lake(home / f"equity-{seed}")
    found: dict[str, list[Any]] = {}
    for dimension in DIMENSIONS:
        for system in profile["sentiment_equity"]["systems"]:
            for row in lake.read("equity_significance", {"dimension": dimension, "system": system}).to_pylist():
                if (row["templates"], row["subset"], row["persons"]) == (PUBLISHED, ALL, EVERYBODY):
                    found[f"{dimension}/{system}/{row['affect']}"] = [row["difference"], row["verdict"], row["p"]]
    return {"found": found}


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


def judge_stereotypes(outcomes: dict[str, dict[str, Any]]) -> list[Claim]:
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
        *judge_kill(outcomes[f"kill-{LANGUAGE}"]),
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


def judge_equity(outcomes: dict[str, dict[str, Any]]) -> list[Claim]:
    """Study 3's claims: what is planted is found, VADER, which was taught nothing here, is not called biased; kills."""
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
        *judge_kill(outcomes[f"kill-{SENTIMENT}"]),
    ]  # fmt: skip


def kill(study: str) -> dict[str, Any]:
    """A small run that is killed with SIGKILL while each stage holds its lock, compared with one that is left alone."""
    whole, killed = STATE / "whole" / study, STATE / "killed" / study
    for home in (whole, killed):
        shutil.rmtree(home, ignore_errors=True)
    finished(small_run(whole, study))
    hits = {stage: kill_during(killed, study, stage) for stage in stages(whole / "small")}
    finished(small_run(killed, study))
    same = content(whole / "small") == content(killed / "small")
    left = [str(path) for path in killed.rglob("*.part")]
    return {"hits": hits, "same": same, "partial_files_left": len(left)}


def judge_kill(outcome: dict[str, Any]) -> list[Claim]:
    """The claims on the kills of one study."""
    hits = outcome["hits"]
    return [
        ("every stage was killed in the middle (SIGKILL)", all(hits.values()), f"{sum(hits.values())} of {len(hits)} stages"),
        ("after the kills the lake is byte for byte that of an undisturbed run, with no partial file left", outcome["same"] and not outcome["partial_files_left"], f"{outcome['partial_files_left']} partial files"),
    ]  # fmt: skip


def small_run(home: Path, study: str) -> subprocess.Popen[str]:
    """A run of the sample profile with every method and stage of a study, but trained for a moment only."""
    profile = yaml.safe_load(paths.data_file("profiles/sample.yaml").read_text(encoding="utf-8"))
    for model in ("seq2seq", "retrieval"):
        profile["models"][model]["training"] |= {"epochs": 1, "checkpoint_seconds": 0.5}
    profile["models"]["seq2seq"]["seeds"] = 2
    chat = profile["models"][DEBIASED[CHAT]]["settings"]
    chat["disentanglement"] |= {"epochs": 2, "least_steps": 0}
    short = {"every": 3, "least": 3, "most": 9, "pairs": 50}
    for steps in (chat["adversarial"], profile["models"][DEBIASED[MLE]]["settings"]):
        steps |= short
    profile["models"][DEBIASED[PLACEBO]]["settings"] = chat
    profile["models"]["gpt2-tiny"] = {"fitting": {"epochs": 1, "batch": 32, "learning_rate": 0.004}}
    profile["models"]["gpt2-tiny-hd"] = {
        "settings": {"batch": [32], "accumulation": [1], "lambda_lm": [0.01], "lambda_d": [10, 100], "epochs": 1}
    }
    for method in ("lmd", "add", "plain"):
        del profile["models"][f"gpt2-tiny-{method}"]
    profile[LANGUAGE] = {
        "corpus": "reddit_sample",
        "debias": ["gender"],
        "state_tracking": {"maximum": 60},
        "responses": {"maximum": 60, "longest": 60, "max_tokens": 5},
    }
    systems = {name: {"encoder": {"epochs": 2}} for name in ("cnn", "gru")} | {"vader": {}}
    profile |= {"dimensions": ["gender", "dialect"], "sentiment_equity": {"systems": systems}}
    profile["dialogue_fairness"] |= {"debias": ["gender"], "on_request": [], "pairs": {"maximum": 500}}
    profile[STYLE] |= implicit_bias.SMALL
    profile[ANNOTATORS] |= annotator_bias.SMALL
    folder = STATE / "data" / "profiles"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "small.yaml").write_text(yaml.safe_dump(profile), encoding="utf-8")
    return command(home, "run", "--profile", "small", "--study", study, data=STATE / "data")


def kill_during(home: Path, study: str, stage: str) -> bool:
    """Starts the run and kills it once the lock of `stage` is held; tries again where the stage was over too soon."""
    draw = random.Random(stage)
    for _ in range(8):
        folder = home / "small" / "locks" / stage
        # Leaving `with` does not read the pipe to its end, which a `tail` that the kill orphaned may hold open for ever.
        with small_run(home, study) as process:
            while process.poll() is None:
                if any(lock.stat().st_size for lock in folder.glob("*.lock")):
                    time.sleep(draw.random() * 0.02)
                    over = not any(lock.stat().st_size for lock in folder.glob("*.lock"))
                    process.kill()
                    if not over:
                        return True
                    break
                time.sleep(0.0005)
        for path in [
            *(home / "small" / "tables" / stage).rglob("*.parquet"),
            *(home / "small" / "cards" / stage).glob("*"),
        ]:
            path.unlink()
        shutil.rmtree(home / "small" / "checkpoints" / stage, ignore_errors=True)
    return False


def full_disk() -> dict[str, Any]:
    """A run on a file system that fills up, then on the same with more room."""
    small = STATE / "small"
    small.mkdir(parents=True, exist_ok=True)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", str(small)], capture_output=True).returncode:
        return {"ran": False}
    try:
        process = small_run(small, DIALOGUES)
        output = process.communicate()[0]
        subprocess.run(["mount", "-o", "remount,size=200m", str(small)], check=True)
        finished(small_run(small, DIALOGUES))
        return {
            "ran": True,
            "status": process.returncode,
            "named": "disk is full" in output,
            "traceback": "Traceback" in output,
            "same": content(small / "small") == content(STATE / "whole" / DIALOGUES / "small"),
            "partial_files_left": len(list(small.rglob("*.part"))),
        }
    finally:
        subprocess.run(["umount", str(small)], check=True)


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
        found = [seed["found"][dimension][measure] for seed in seeds]
        signs += all(f[0] * t > 0 for f, t in zip(found, truths, strict=True))
        biased += sum(f[1] == "biased" for f in found) >= 4
    ratios = []
    for (dimension, measure), _ in unplanted_rows.items():
        kind = measure if measure in RATES else "words"
        same = [abs(t) for (d, m), ts in planted_rows.items() for t in ts if (m if m in RATES else "words") == kind]
        ratios += [abs(seed["found"][dimension][measure][0]) / min(same) for seed in seeds]
    disk = outcomes["full_disk"]
    total = len(planted_rows)
    return [
        ("planted differences have the planted sign in 5 of 5 seeds", signs == total, f"{signs} of {total} measures"),
        ("planted differences are `biased` in at least 4 of 5 seeds", biased == total, f"{biased} of {total} measures"),
        ("unplanted differences stay under half the planted ones", max(ratios) < 0.5, f"largest: {max(ratios):.2f} of the smallest planted one, over {len(ratios)} cases"),
        *judge_debiased(outcomes[CURES]),
        *((f"real text: {claim}", *found) for name in real_cures() for claim, *found in judge_debiased(outcomes[name])),
        *judge_kill(outcomes[f"kill-{DIALOGUES}"]),
        ("a full disk is named, nothing is half written, and the run goes on once there is room", _full_disk_held(disk), "tried" if disk["ran"] else "no right to mount a small file system here"),
    ]  # fmt: skip


def judge_debiased(outcome: dict[str, Any]) -> list[Claim]:
    """The claims on debiased models, in every dimension, with 95% intervals over the seeds.

    What says `mean` is judged by that alone; differences, and that a gap is smaller at all, by the whole interval.
    """
    seeds, effects = outcome["seeds"], outcome["effects"]
    dimensions = list(seeds[0])

    def means(value: Callable[[dict[str, Any]], float]) -> dict[str, tuple[float, float, float]]:
        return {d: interval([value(seed[d]) for seed in seeds]) for d in dimensions}

    def claim(
        text: str, value: Callable[[dict[str, Any]], float], holds: Callable[[tuple[float, float, float]], bool]
    ) -> tuple[str, bool, str]:
        found = means(value)
        figures = "; ".join(f"{d} {m:.3f} ({low:.3f} to {high:.3f})" for d, (m, low, high) in found.items())
        return text, all(map(holds, found.values())), figures

    def kept(metric: str) -> Callable[[dict[str, Any]], float]:
        return lambda s: s["quality"][CHAT][metric] / s["quality"]["original"][metric]

    found = [
        claim("the group is told from unbiased features with an accuracy over 0.9 (mean)", lambda s: s["accuracy"]["unbiased"], lambda m: m[0] > 0.9),
        claim("... and from semantic features, by the strict probe, hardly better than from content words alone (mean difference under 0.1)", lambda s: s["accuracy"]["semantic"] - s["accuracy"]["content"], lambda m: m[0] < 0.1),
        claim("Debiased-Chat leaves under 40% of the gaps (mean)", lambda s: s["gaps"][CHAT], lambda m: m[0] < 0.4),
    ]  # fmt: skip
    for control, name in CONTROLS.items():
        found.append(
            claim(
                f"{name} leaves less than its {control}, trained in the same way without what shall cure (the difference)",
                lambda s, name=name, control=control: s["gaps"][control] - s["gaps"][name],
                lambda m: m[1] > 0,
            )
        )
    for name in CURED:
        found.append(
            claim(
                f"{name}: the gaps are smaller than the original's (the share of the biased ones that is left, below 1)",
                lambda s, name=name: s["gaps"][name],
                lambda m: m[2] < 1,
            )
        )
    rises = {
        d: max(s[d]["harmful"][CHAT][m] - was for s in seeds for m, was in s[d]["harmful"]["original"].items())
        for d in dimensions
    }
    found.append(
        ("in no seed does Debiased-Chat give both groups together two points more offensive or negative answers (the largest rise)", max(rises.values()) < 2, "; ".join(f"{d} {rise:+.1f}" for d, rise in rises.items()))
    )  # fmt: skip
    found += [
        claim(f"Debiased-Chat keeps {metric} at {least:.0%} or better (mean)", kept(metric), lambda m, least=least: m[0] >= least)
        for metric, least in (("distinct_1", 0.9), ("distinct_2", 0.9), ("bleu_1", 0.85), ("bleu_2", 0.85), ("bleu_3", 0.85))
    ]  # fmt: skip
    called = {
        name: [f"{d} {m}" for d in dimensions for m, effect in effects[d][name].items() if effect == "cure"]
        for name in DEBIASED
    }
    found.append(
        ("no control is called a cure of anything", not any(called[control] for control in CONTROLS), "; ".join(f"{name} {len(own)}" for name, own in called.items()) + f" of {sum(len(effects[d][CHAT]) for d in dimensions)} measures called a cure")
    )  # fmt: skip
    found.append(
        claim("WER gives more identical pairs than the original (the difference)", lambda s: s["identical"]["WER"] - s["identical"]["original"], lambda m: m[1] > 0)
    )  # fmt: skip
    return list(found)


def _full_disk_held(disk: dict[str, Any]) -> bool | None:
    if not disk["ran"]:
        return None
    return (
        disk["status"] == 1
        and disk["named"]
        and not disk["traceback"]
        and disk["same"]
        and not disk["partial_files_left"]
    )


def write_page(outcomes: dict[str, dict[str, Any]], verdicts: dict[str, list[Claim]]) -> None:
    """docs/verification.md."""
    lines = [
        "# Verification",
        "",
        f"Written by `make verify` ({platform.machine()}, {os.cpu_count()} cores, "
        f"{sum(outcome['seconds'] for outcome in outcomes.values())} s).",
        "",
        "## Study 1: dialogue fairness",
        "",
        "| claim | outcome | figures |",
        "| --- | --- | --- |",
        *(f"| {claim} | {_WORDS[held]} | {figures} |" for claim, held, figures in verdicts[DIALOGUES]),
        "",
        "Planted: the difference that answering every context with the grammar's most frequent reply gives. Found: the",
        "differences of `seq2seq` trained with five seeds, and in how many of them the verdict is `biased`.",
        "",
        "| dimension | measure | planted (mean) | found (five seeds) | biased |",
        "| --- | --- | --- | --- | --- |",
    ]
    seeds = [outcomes[f"planted-{seed}"] for seed in SEEDS]
    for dimension, truths_of in seeds[0]["truth"].items():
        for measure in truths_of:
            truth = sum(seed["truth"][dimension][measure][0] for seed in seeds) / len(seeds)
            found = [seed["found"][dimension][measure] for seed in seeds]
            shown = ", ".join(f"{f[0]:+.3g}" for f in found)
            lines.append(
                f"| {dimension} | {measure} | {truth:+.3g} | {shown} | {sum(f[1] == 'biased' for f in found)} of 5 |"
            )
    lines += [
        "",
        "## Debiased models",
        "",
        f"Profiles `{CURES}` and, where the real corpora are, `{REAL_CURES}`; five seeds, mean (lowest to highest). Gaps: the share of",
        "each gap judged `biased` that is left, averaged over the measures. Quality: as a share of the original's. Identical: pairs",
        "with one and the same response.",
        "",
        "| profile, dimension | model | gaps left | identical | BLEU-2 | Distinct-2 | perplexity |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for profile, dimension in [(p, d) for p in (CURES, *real_cures()) for d in outcomes[p]["seeds"][0]]:
        of_seeds = [seed[dimension] for seed in outcomes[profile]["seeds"]]
        for name in ("original", *DEBIASED):
            cells = [
                "1" if name == "original" else _range([s["gaps"][name] for s in of_seeds]),
                _range([s["identical"][name] for s in of_seeds]),
                *(
                    _range([s["quality"][name][metric] / s["quality"]["original"][metric] for s in of_seeds])
                    if metric in of_seeds[0]["quality"][name]
                    else "–"
                    for metric in ("bleu_2", "distinct_2", "perplexity")
                ),
            ]
            lines.append(f"| {profile}, {dimension} | {name} | {' | '.join(cells)} |")
    lines += [
        "",
        "## Study 2: language-model bias",
        "",
        "The small GPT-2 of the sample profile, trained with five seeds on comments with planted stereotypes",
        "(data/grammars/reddit_sample.yaml), and what the methods make of it; `make verify STUDY=language_model_bias`.",
        "",
        "| claim | outcome | figures |",
        "| --- | --- | --- |",
        *(f"| {claim} | {_WORDS[held]} | {figures} |" for claim, held, figures in verdicts[LANGUAGE]),
        "",
        "## Study 3: sentiment equity",
        "",
        "The systems of the sample profile, trained with five seeds on tweets with planted bias (data/affect/README.md); run",
        "by itself with `make verify STUDY=sentiment_equity`.",
        "",
        "| claim | outcome | figures |",
        "| --- | --- | --- |",
        *(f"| {claim} | {_WORDS[held]} | {figures} |" for claim, held, figures in verdicts[SENTIMENT]),
        "",
        "## Study 4: implicit bias",
        "",
        "The small CNN of the sample profile on generated texts with a planted spelling (data/grammars/authored_sample.yaml);",
        f"run by itself with `make verify STUDY={STYLE}`.",
        "",
        "| claim | outcome | figures |",
        "| --- | --- | --- |",
        *(f"| {claim} | {_WORDS[held]} | {figures} |" for claim, held, figures in verdicts[STYLE]),
        "",
        "## Study 5: annotator group bias",
        "",
        "Circle and moon with the group parameters of table 5.4 (data/corpora/circle.yaml), drawn anew; run by itself with",
        f"`make verify STUDY={ANNOTATORS}`.",
        "",
        "| claim | outcome | figures |",
        "| --- | --- | --- |",
        *(f"| {claim} | {_WORDS[held]} | {figures} |" for claim, held, figures in verdicts[ANNOTATORS]),
    ]
    (ROOT / "docs" / "verification.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _range(values: list[float]) -> str:
    return f"{np.mean(values):.2f} ({min(values):.2f} to {max(values):.2f})"


if __name__ == "__main__":
    main()
