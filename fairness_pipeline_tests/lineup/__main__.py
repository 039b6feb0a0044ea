"""Runs the whole line-up for `make verify`; each system's outcome is saved, so that a stopped run can resume.

Writes docs/line-up.md. `python -m fairness_pipeline_tests.lineup --study S --draws N` runs a part.
"""

import argparse
import json
import multiprocessing
import os
import sys
import time
from pathlib import Path
from typing import Any

from fairness_pipeline.statistics.verdicts import DIFFERS, DIFFERS_BY_LENGTH
from fairness_pipeline_tests.lineup import power
from fairness_pipeline_tests.lineup.any_difference import HARMS
from fairness_pipeline_tests.lineup.everybody import drawn, systems
from fairness_pipeline_tests.lineup.shared import SAID_SO, Outcome, System, wrong
from fairness_pipeline_tests.verify.shared import ROOT, STATE, version

DRAWS = 20
TITLES = {
    "dialogue_fairness": "Study 1: dialogue fairness",
    "language_model_bias": "Study 2: language-model bias",
    "sentiment_equity": "Study 3: sentiment equity",
    "implicit_bias": "Study 4: implicit bias in text classification",
    "annotator_bias": "Study 5: annotator group bias",
    "outcomes": "Study 6: outcomes by group",
}
_DETERMINISTIC = ("AFINN", "TextBlob")


def main() -> int:
    """Judges the systems that have no saved outcome, writes the page, and prints wrong outcomes."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--study", choices=TITLES)
    parser.add_argument("--draws", type=int, default=DRAWS)
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    arguments = parser.parse_args()
    file = STATE / "line-up.json"
    current_version, state = f"{version(Path(__file__).parent)}-{arguments.draws}", _load(file)
    if state.get("version") != current_version:
        state = {"version": current_version, "outcomes": {}, "power": {}}
    selected = [system for system in systems() if arguments.study in (None, system.study)]
    todo = [
        (system.key, 1 if system.name in _DETERMINISTIC else arguments.draws)
        for system in selected
        if system.key not in state["outcomes"]
    ]
    started = time.monotonic()
    with multiprocessing.get_context("spawn").Pool(arguments.workers) as pool:
        for number, (key, result) in enumerate(pool.imap_unordered(drawn, todo), start=1):
            state["outcomes"][key] = result
            _save(file, state)
            print(f"[{number}/{len(todo)}] {key}: {result['verdicts']}", flush=True)
    if arguments.study in (None, "dialogue_fairness") and not state["power"]:
        state["power"] = {case.name: shares for case, shares in power.table()}
        _save(file, state)
    outcomes = {system.key: Outcome(**state["outcomes"][system.key]) for system in selected}
    bad = [f"{system.key}: {reason}" for system in selected if (reason := wrong(system, outcomes[system.key]))]
    if arguments.study is None:
        write_page(list(systems()), outcomes, state["power"], arguments.draws)
    print(f"{len(selected)} systems in {time.monotonic() - started:.0f} s; {len(bad)} not as they should be")
    for line in bad:
        print(f"  {line}", file=sys.stderr)
    return 1 if bad else 0


def _load(file: Path) -> dict[str, Any]:
    return json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}


def _save(file: Path, state: dict[str, Any]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    temporary = file.with_suffix(".tmp")
    temporary.write_text(json.dumps(state, indent=1), encoding="utf-8")
    temporary.replace(file)


def write_page(all_systems: list[System], outcomes: dict[str, Outcome], powers: dict[str, Any], draws: int) -> None:
    """Writes docs/line-up.md."""
    lines = [
        "# The line-up",
        "",
        "Systems of known truth, innocent and guilty, judged by the rules of each study: `make verify`, or",
        f"`python -m fairness_pipeline_tests.lineup`, which writes this page. {draws} draws each, whose sizes are drawn at random;",
        "lexicons that draw nothing are judged once.",
        "",
        "*Biased* is the share of draws in which a verdict is `biased` or `differs`. For an innocent system it is the largest share of any row (at",
        "most 5% is wanted, within the chance of so many draws: up to three of 20). For a guilty one it is the share in the rows that",
        "should be biased. *Hangs on few*: guilty of a few words, names or attributes, which proves no bias of a group.",
        "*Only a control could tell*: innocent, but only a control could show it, and that is too small: `biased` must say so.",
        "The other columns count the verdicts of all rows of all draws.",
        "",
    ]
    for study, title in TITLES.items():
        lines += [
            f"## {title}", "",
            "| where | system | truth | biased | wanted | biased rows | control too small | differs | length not excluded | artefact | fair | fair on average | inconclusive | nothing to judge |",
            "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
        ]  # fmt: skip
        for system in (entry for entry in all_systems if entry.study == study and entry.key in outcomes):
            result = outcomes[system.key]
            share = result.found if system.truth == "guilty" else result.biased
            required = {"guilty": f"{system.power:.0%} or more", "hangs on few": "–"}.get(system.truth, "5% or less")
            mark = " **(wrong)**" if wrong(system, result) else ""
            counts = [
                result.verdicts.get(name, 0)
                for name in (
                    "biased",
                    SAID_SO,
                    DIFFERS,
                    DIFFERS_BY_LENGTH,
                    "artefact",
                    "fair",
                    "fair on average",
                    "inconclusive",
                    "nothing to judge",
                )
            ]
            lines.append(
                f"| {system.where} | {system.name} | {system.truth} | {share:.0%}{mark} | {required} | "
                f"{' | '.join(map(str, counts))} |"
            )
        lines.append("")
        if study == "dialogue_fairness":
            lines += [_gates(all_systems, outcomes), ""]
    lines += [
        "## What study 1 can find",
        "",
        f"A measure of {power.BASE:.0%}, {power.WORDS} words used evenly, Holm's first step of {power.FAMILY} measures, {power.DRAWS} draws: the share that is",
        "`biased`, and the share that is `fair`.",
        "",
        "| difference | " + " | ".join(f"{pairs:,} pairs" for pairs in power.PAIRS) + " |",
        "| --- |" + " --- |" * len(power.PAIRS),
        *(
            f"| {name} | " + " | ".join(f"{biased:.0%} biased, {fair:.0%} fair" for biased, fair in shares) + " |"
            for name, shares in powers.items()
        ),
    ]
    (ROOT / "docs" / "line-up.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _gates(all_systems: list[System], outcomes: dict[str, Outcome]) -> str:
    """Says how often a gate closes on any row of an innocent system of study 1, and what lists find of the harms."""
    of_study = [system for system in all_systems if system.study == "dialogue_fairness"]
    innocent = [outcomes[system.key] for system in of_study if system.truth == "innocent"]
    harms = [outcomes[system.key] for system in of_study if system.name in HARMS]
    closed, total = (
        round(sum(result.any * result.draws for result in innocent)),
        sum(result.draws for result in innocent),
    )
    by_lists, draws = sum(result.verdicts.get("biased", 0) for result in harms), sum(result.draws for result in harms)
    differing = sum(result.verdicts.get(DIFFERS, 0) for result in harms)
    return (
        f"A gate closes on some row, `biased` or `differs`, in {closed} of {total:,} draws of innocent systems "
        f"({closed / total:.1%}). Of {draws:,} draws of harms that no list holds, {differing:,} are `differs`; the measures by "
        f"lists have {by_lists} `biased` rows in them."
    )


if __name__ == "__main__":
    sys.exit(main())
