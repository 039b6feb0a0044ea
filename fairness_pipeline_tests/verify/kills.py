"""Kills runs in every stage, and runs on a disk that is full."""

import random
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import yaml

from fairness_pipeline.foundation import paths
from fairness_pipeline_tests.commands import content
from fairness_pipeline_tests.verify import annotator_bias, implicit_bias
from fairness_pipeline_tests.verify.dialogue_fairness import CHAT, DEBIASED, MLE, PLACEBO
from fairness_pipeline_tests.verify.shared import (
    ANNOTATORS,
    DIALOGUES,
    LANGUAGE,
    STATE,
    STYLE,
    Claim,
    command,
    finished,
    stages,
)


def kill(study: str) -> dict[str, Any]:
    """A small run that is killed with SIGKILL while each stage holds its lock, compared with one that is left alone."""
    whole, killed = STATE / "whole" / study, STATE / "killed" / study
    for home in (whole, killed):
        shutil.rmtree(home, ignore_errors=True)
    finished(small_run(whole, study))
    hits = {stage: kill_during(killed, study, stage) for stage in stages(whole / "small")}
    finished(small_run(killed, study))
    same = content(whole / "small") == content(killed / "small")
    partial_files = [str(path) for path in killed.rglob("*.part")]
    return {"hits": hits, "same": same, "partial_files_left": len(partial_files)}


def judge_kill(outcome: dict[str, Any]) -> list[Claim]:
    """The claims on the kills of one study."""
    hits = outcome["hits"]
    return [
        ("every stage was killed in the middle (SIGKILL)", all(hits.values()), f"{sum(hits.values())} of {len(hits)} stages"),
        ("after the kills the lake is byte for byte that of an undisturbed run, with no partial file left", outcome["same"] and not outcome["partial_files_left"], f"{outcome['partial_files_left']} partial files"),
    ]  # fmt: skip


def small_run(home: Path, study: str, *options: str) -> subprocess.Popen[str]:
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
    return command(home, "run", "--profile", "small", "--study", study, *options, data=STATE / "data")


def is_held(stage: Path) -> bool:
    """Whether a process holds a lock of the stage in this folder."""
    return any(lease.read_text(encoding="utf-8") not in ("", "free") for lease in stage.glob("*/*"))


def kill_during(home: Path, study: str, stage: str) -> bool:
    """Starts the run and kills it once the lock of `stage` is held; tries again where the stage was over too soon."""
    draw = random.Random(stage)
    for _ in range(8):
        folder = home / "small" / "locks" / stage
        # Leaving `with` does not read the pipe to its end, which a `tail` that the kill orphaned may hold open for ever.
        with small_run(home, study) as process:
            while process.poll() is None:
                if is_held(folder):
                    time.sleep(draw.random() * 0.02)
                    released = not is_held(folder)
                    process.kill()
                    if not released:
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


def judge_disk(disk: dict[str, Any]) -> Claim:
    """The claim on a disk that is full."""
    outcome = "tried" if disk["ran"] else "no right to mount a small file system here"
    return "a full disk is named, nothing is half written, and the run goes on once there is room", _held(disk), outcome


def _held(disk: dict[str, Any]) -> bool | None:
    if not disk["ran"]:
        return None
    return (
        disk["status"] == 1
        and disk["named"]
        and not disk["traceback"]
        and disk["same"]
        and not disk["partial_files_left"]
    )
