"""Writes the pages `docs/verification.md` and `docs/storm.md`."""

import os
import platform
from typing import Any

from fairness_pipeline_tests.verify.dialogue_fairness import CURES, DEBIASED, REAL_CURES, real_cures, spread
from fairness_pipeline_tests.verify.language_model_bias import LANGUAGE_SEEDS
from fairness_pipeline_tests.verify.shared import (
    ANNOTATORS,
    DIALOGUES,
    LANGUAGE,
    OUTCOMES,
    ROOT,
    SEEDS,
    SENTIMENT,
    STYLE,
    Claim,
)

WORDS = {True: "holds", False: "**fails**", None: "not tried"}


def write_page(outcomes: dict[str, dict[str, Any]], verdicts: dict[str, list[Claim]]) -> None:
    """Writes docs/verification.md."""
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
        *(f"| {claim} | {WORDS[held]} | {figures} |" for claim, held, figures in verdicts[DIALOGUES]),
        "",
        "Planted: the difference if every context gets the grammar's most frequent reply. Found: the",
        "differences of `seq2seq` trained with five seeds, and in how many of them the verdict is `biased`.",
        "",
        "| dimension | measure | planted (mean) | found (five seeds) | biased |",
        "| --- | --- | --- | --- | --- |",
    ]
    seeds = [outcomes[f"planted-{seed}"] for seed in SEEDS]
    for dimension, truths_of in seeds[0]["truth"].items():
        for measure in truths_of:
            truth = sum(seed["truth"][dimension][measure][0] for seed in seeds) / len(seeds)
            rows = [seed["found"][dimension][measure] for seed in seeds]
            differences = ", ".join(f"{f[0]:+.3g}" for f in rows)
            lines.append(
                f"| {dimension} | {measure} | {truth:+.3g} | {differences} | {sum(f[1] == 'biased' for f in rows)} of 5 |"
            )
    lines += [
        "",
        "## Debiased models",
        "",
        f"Profiles `{CURES}` and, where the real corpora are, `{REAL_CURES}`; five seeds, mean (lowest to highest). Gaps: the share of",
        "each gap judged `biased` that is left, averaged over the measures. Quality: as a share of the original's. Identical: pairs",
        "whose two responses are the same.",
        "",
        "| profile, dimension | model | gaps left | identical | BLEU-2 | Distinct-2 | perplexity |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for profile, dimension in [(p, d) for p in (CURES, *real_cures()) for d in outcomes[p]["seeds"][0]]:
        of_seeds = [seed[dimension] for seed in outcomes[profile]["seeds"]]
        for name in ("original", *DEBIASED):
            cells = [
                "1" if name == "original" else spread([s["gaps"][name] for s in of_seeds]),
                spread([s["identical"][name] for s in of_seeds]),
                *(
                    spread([s["quality"][name][metric] / s["quality"]["original"][metric] for s in of_seeds])
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
        f"The small GPT-2 of the sample profile, trained with {len(LANGUAGE_SEEDS)} seeds on comments with planted stereotypes",
        "(data/grammars/reddit_sample.yaml), and what the methods make of it; `make verify STUDY=language_model_bias`.",
        "",
        "| claim | outcome | figures |",
        "| --- | --- | --- |",
        *(f"| {claim} | {WORDS[held]} | {figures} |" for claim, held, figures in verdicts[LANGUAGE]),
        "",
        "## Study 3: sentiment equity",
        "",
        "The systems of the sample profile, trained with five seeds on tweets with planted bias (data/affect/README.md); run",
        "by itself with `make verify STUDY=sentiment_equity`.",
        "",
        "| claim | outcome | figures |",
        "| --- | --- | --- |",
        *(f"| {claim} | {WORDS[held]} | {figures} |" for claim, held, figures in verdicts[SENTIMENT]),
        "",
        "## Study 4: implicit bias",
        "",
        "The small CNN of the sample profile on generated texts with a planted spelling (data/grammars/authored_sample.yaml);",
        f"run by itself with `make verify STUDY={STYLE}`.",
        "",
        "| claim | outcome | figures |",
        "| --- | --- | --- |",
        *(f"| {claim} | {WORDS[held]} | {figures} |" for claim, held, figures in verdicts[STYLE]),
        "",
        "## Study 5: annotator group bias",
        "",
        "Circle and moon with the group parameters of table 5.4 (data/corpora/circle.yaml), drawn anew; run by itself with",
        f"`make verify STUDY={ANNOTATORS}`.",
        "",
        "| claim | outcome | figures |",
        "| --- | --- | --- |",
        *(f"| {claim} | {WORDS[held]} | {figures} |" for claim, held, figures in verdicts[ANNOTATORS]),
        "",
        *of_outcomes(verdicts[OUTCOMES]),
    ]
    (ROOT / "docs" / "verification.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


def of_outcomes(claims: list[Claim]) -> list[str]:
    """The section on study 6.

    Args:
        claims: The claims, and whether they hold.
    """
    return [
        "## Study 6: outcomes by group",
        "",
        "Simulated tables and published answers of five models (`FAIRNESS_CORPORA`), whose groups are known not to differ, or",
        f"to differ by what was planted; run by itself with `make verify STUDY={OUTCOMES}`.",
        "",
        "| claim | outcome | figures |",
        "| --- | --- | --- |",
        *(f"| {claim} | {WORDS[held]} | {figures} |" for claim, held, figures in claims),
    ]


def write_storm(outcomes: dict[str, dict[str, Any]], claims: list[Claim]) -> None:
    """Writes docs/storm.md.

    Args:
        outcomes: The outcomes of the storm's parts.
        claims: The claims, and whether they hold.
    """
    lines = [
        "# Storm",
        "",
        f"Written by `python -m fairness_pipeline_tests.verify --storm` ({platform.machine()}, {os.cpu_count()} cores, "
        f"{sum(outcome['seconds'] for outcome in outcomes.values())} s), which `make verify` calls too: runs that",
        "are killed, and a workspace that is damaged on purpose.",
        "",
        "| claim | outcome | figures |",
        "| --- | --- | --- |",
        *(f"| {claim} | {WORDS[held]} | {figures} |" for claim, held, figures in claims),
    ]
    (ROOT / "docs" / "storm.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
