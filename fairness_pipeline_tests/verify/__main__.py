"""`make verify`: what takes too long for `make test`.

Several seeds of the sample profile against the bias that is planted in its data, with what debiasing makes of it, a
kill in the middle of each stage, a disk that fills up. Each part's outcome is stored, so that a stopped verification
can go on; it is discarded when the code or the data changes. Writes docs/verification.md and docs/storm.md.
"""

import argparse
import json
import sys
import time
from functools import partial
from typing import Any

from fairness_pipeline.project.study import STUDIES
from fairness_pipeline_tests.verify import (
    annotator_bias,
    damage,
    dialogue_fairness,
    implicit_bias,
    language_model_bias,
    outcomes,
    sentiment_equity,
    storm,
)
from fairness_pipeline_tests.verify.kills import full_disk, judge_disk, judge_kill, kill
from fairness_pipeline_tests.verify.page import WORDS, write_page, write_storm
from fairness_pipeline_tests.verify.shared import DIALOGUES, STATE, Part, version

VERIFIED = dict(
    zip(
        STUDIES,
        (dialogue_fairness, language_model_bias, sentiment_equity, implicit_bias, annotator_bias, outcomes),
        strict=True,
    )
)
STORM = "storm"


def main() -> None:
    """Runs what has not been verified yet; exits with 1 if any part fails."""
    parser = argparse.ArgumentParser(prog="make verify", description=__doc__)
    parser.add_argument("--study", choices=STUDIES, help="only this study's parts; no page")
    parser.add_argument("--storm", action="store_true", help="only the storm; writes docs/storm.md")
    arguments = parser.parse_args()
    study = STORM if arguments.storm else arguments.study
    parts: dict[str, dict[str, Part]] = {
        name: {**module.parts(), f"kill-{name}": partial(kill, name)} for name, module in VERIFIED.items()
    }
    parts[DIALOGUES]["full_disk"] = full_disk
    parts[STORM] = {**storm.parts(), **damage.parts()}
    results = {
        name: remembered(name, run)
        for owner, of_study in parts.items()
        if study in (None, owner)
        for name, run in of_study.items()
    }
    verdicts = {
        name: [*module.judge(results), *judge_kill(results[f"kill-{name}"])]
        for name, module in VERIFIED.items()
        if study in (None, name)
    }
    if DIALOGUES in verdicts:
        verdicts[DIALOGUES].append(judge_disk(results["full_disk"]))
    if study in (None, STORM):
        verdicts[STORM] = [*storm.judge(results), *damage.judge(results)]
        write_storm({name: results[name] for name in parts[STORM]}, verdicts[STORM])
    if study is None:
        write_page(results, verdicts)
    everything = [verdict for of_study in verdicts.values() for verdict in of_study]
    for claim, held, figures in everything:
        print(f"{WORDS[held]}: {claim} ({figures})")
    sys.exit(any(held is False for _, held, _ in everything))


def remembered(name: str, run: Part) -> dict[str, Any]:
    """The outcome of a part: the stored one if neither code nor data have changed since."""
    path = STATE / f"{name}.json"
    if path.exists():
        stored = json.loads(path.read_text(encoding="utf-8"))
        if stored["version"] == version():
            print(f"{name}: verified before")
            return stored["outcome"]
    print(f"{name}: running ...", flush=True)
    started = time.monotonic()
    outcome = {**run(), "seconds": round(time.monotonic() - started)}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"version": version(), "outcome": outcome}), encoding="utf-8")
    print(f"{name}: {outcome['seconds']} s", flush=True)
    return outcome


if __name__ == "__main__":
    main()
