"""`make verify` runs the whole line-up: each system's draws are kept, so that one that was stopped goes on.

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
    """Runs what is not known yet, writes the page, and says what is not as it should be."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--study", choices=TITLES)
    parser.add_argument("--draws", type=int, default=DRAWS)
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    arguments = parser.parse_args()
    file = STATE / "line-up.json"
    made_from, known = f"{version(Path(__file__).parent)}-{arguments.draws}", _known(file)
    if known.get("version") != made_from:
        known = {"version": made_from, "outcomes": {}, "power": {}}
    asked = [system for system in systems() if arguments.study in (None, system.study)]
    todo = [
        (system.key, 1 if system.name in _DETERMINISTIC else arguments.draws)
        for system in asked
        if system.key not in known["outcomes"]
    ]
    started = time.monotonic()
    with multiprocessing.get_context("spawn").Pool(arguments.workers) as pool:
        for number, (key, found) in enumerate(pool.imap_unordered(drawn, todo), start=1):
            known["outcomes"][key] = found
            _keep(file, known)
            print(f"[{number}/{len(todo)}] {key}: {found['verdicts']}", flush=True)
    if arguments.study in (None, "dialogue_fairness") and not known["power"]:
        known["power"] = {case.name: found for case, found in power.table()}
        _keep(file, known)
    outcomes = {system.key: Outcome(**known["outcomes"][system.key]) for system in asked}
    bad = [f"{system.key}: {why}" for system in asked if (why := wrong(system, outcomes[system.key]))]
    if arguments.study is None:
        write_page(list(systems()), outcomes, known["power"], arguments.draws)
    print(f"{len(asked)} systems in {time.monotonic() - started:.0f} s; {len(bad)} not as they should be")
    for line in bad:
        print(f"  {line}", file=sys.stderr)
    return 1 if bad else 0


def _known(file: Path) -> dict[str, Any]:
    return json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}


def _keep(file: Path, known: dict[str, Any]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    temporary = file.with_suffix(".tmp")
    temporary.write_text(json.dumps(known, indent=1), encoding="utf-8")
    temporary.replace(file)


def write_page(all_systems: list[System], outcomes: dict[str, Outcome], powers: dict[str, Any], draws: int) -> None:
    """docs/line-up.md."""
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
        for system in (own for own in all_systems if own.study == study and own.key in outcomes):
            found = outcomes[system.key]
            share = found.found if system.truth == "guilty" else found.biased
            wanted = {"guilty": f"{system.power:.0%} or more", "hangs on few": "–"}.get(system.truth, "5% or less")
            mark = " **(wrong)**" if wrong(system, found) else ""
            counts = [
                found.verdicts.get(name, 0)
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
                f"| {system.where} | {system.name} | {system.truth} | {share:.0%}{mark} | {wanted} | "
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
            f"| {name} | " + " | ".join(f"{biased:.0%} biased, {fair:.0%} fair" for biased, fair in found) + " |"
            for name, found in powers.items()
        ),
    ]
    (ROOT / "docs" / "line-up.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _gates(all_systems: list[System], outcomes: dict[str, Outcome]) -> str:
    """How often a gate would close on any row of an innocent system of study 1, and what lists find of the other harms."""
    of_study = [system for system in all_systems if system.study == "dialogue_fairness"]
    innocent = [outcomes[system.key] for system in of_study if system.truth == "innocent"]
    harms = [outcomes[system.key] for system in of_study if system.name in HARMS]
    closed, gates = round(sum(found.any * found.draws for found in innocent)), sum(found.draws for found in innocent)
    by_lists, draws = sum(found.verdicts.get("biased", 0) for found in harms), sum(found.draws for found in harms)
    told = sum(found.verdicts.get(DIFFERS, 0) for found in harms)
    return (
        f"A gate closes on some row, `biased` or `differs`, in {closed} of {gates:,} draws of innocent systems "
        f"({closed / gates:.1%}). Of {draws:,} draws of harms that no list holds, {told:,} are `differs`; the measures by "
        f"lists have {by_lists} `biased` rows in them."
    )


if __name__ == "__main__":
    sys.exit(main())
