"""Scorers that other processes load, with what can go wrong there."""

import os
import signal
from functools import partial
from pathlib import Path

import pyarrow as pa

from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.paths import data_file
from fairness_pipeline.workspace.distinct import LazyScorer, Scorer

TEXTS = pa.array([f"text number {number}" for number in range(60)] * 2)
CHUNK = 6


def lengths(folder: Path, deadly: str = "", times: int = 0, refused: str = "") -> LazyScorer:
    """Scores the length of each text, in chunks of `CHUNK`; notes in `folder` which process scored which texts.

    Args:
        folder: Where the notes are written.
        deadly: A text at which the process is killed.
        times: How many processes it kills.
        refused: A text that it refuses.
    """
    scorer = LazyScorer(partial(load, folder, deadly, times, refused), device="cpu")
    scorer.CHUNK = CHUNK  # type: ignore[attr-defined]
    return scorer


def load(folder: Path, deadly: str, times: int, refused: str) -> Scorer:
    """Loads the scorer, in the process that scores."""
    return _Lengths(folder, deadly, times, refused)


def reading(name: str) -> LazyScorer:
    """A scorer that opens a data file for every chunk."""
    scorer = LazyScorer(partial(_Reading, name), device="cpu")
    scorer.CHUNK = CHUNK  # type: ignore[attr-defined]
    return scorer


class _Reading:
    def __init__(self, name: str) -> None:
        self._name = name

    def __call__(self, texts: pa.Table) -> pa.Table:
        return pa.table({"bytes": [len(data_file(self._name).read_bytes())] * texts.num_rows})


class _Lengths:
    def __init__(self, folder: Path, deadly: str, times: int, refused: str) -> None:
        self._folder, self._deadly, self._times, self._refused = folder, deadly, times, refused

    def __call__(self, texts: pa.Table) -> pa.Table:
        strings = texts["text"].to_pylist()
        if self._deadly in strings and len(list(self._folder.glob("death-*"))) < self._times:
            (self._folder / f"death-{os.getpid()}").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        if self._refused == "1/0":
            raise ZeroDivisionError("division by zero")
        if self._refused in strings:
            raise FairnessError(f"the model has no answer to: {self._refused!r}")
        for text in strings:
            with (self._folder / "scored").open("a") as file:
                file.write(f"{os.getpid()} {text}\n")
        return pa.table({"length": pa.array([len(text) for text in strings], pa.int64())})

    def examination(self) -> dict[str, object]:
        environment = {"key": os.environ.get("OUR_KEY"), "home": os.environ.get("FAIRNESS_HOME")}
        return {"process": os.getpid(), **environment}


def scored(folder: Path) -> list[tuple[str, str]]:
    """Which process scored which text, in order."""
    lines = (folder / "scored").read_text().splitlines()
    return [(number, text) for number, _, text in (line.partition(" ") for line in lines)]
