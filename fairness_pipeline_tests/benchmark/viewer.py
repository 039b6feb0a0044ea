"""How long the viewer's pages take in Chromium (Debian's chromium-driver) at 300,000 pairs, opened from disk."""

import random
import shutil
import tempfile
import time
from pathlib import Path

import numpy as np

from fairness_pipeline.reporting.samples import Samples
from fairness_pipeline.reporting.viewer.bundle import PAGE, _write_page, _write_pairs
from fairness_pipeline_tests.benchmark.shared import PAIRS
from fairness_pipeline_tests.browser import Browser, wait

_MEASURES = 8
_SET = "made-000000000000"
_WORDS = (
    "the a of to and in is it you that he was for on are with they be at one have this from or had by hot but".split()
)


def viewer() -> dict[str, float]:
    """Seconds to write the pages, to the first pairs, for a filter and for a search; 0 where there is no driver."""
    driver = shutil.which("chromedriver")
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        page = _pages(Path(folder) / "pages")
        found = {"written": time.perf_counter() - started}
        if driver is None:
            return found | dict.fromkeys(("first", "filter", "search"), 0.0)
        browser = Browser(driver, Path(folder) / "profile")
        try:
            started = time.perf_counter()
            browser.call("/url", {"url": page.as_uri()})
            wait(lambda: browser.run("document.querySelectorAll('.row .answer').length"))
            found["first"] = time.perf_counter() - started
            filters = [_timed(browser, what) for what in ("state.measure='m1'", "state.differ=true", "state.order='b'")]
            return found | {"filter": max(filters), "search": _timed(browser, "state.text='hot hot'")}
        finally:
            browser.close()


def _timed(browser: Browser, what: str) -> float:
    started = time.perf_counter()
    browser.run(f"({what}, window.done = 0, filter().then(() => window.done = 1), 1)")
    wait(lambda: browser.run("window.done"))
    return time.perf_counter() - started


def _pages(folder: Path) -> Path:
    draw, numbers = random.Random(1), np.random.default_rng(1)
    asked = [" ".join(draw.choices(_WORDS, k=12)) for _ in range(PAIRS)]
    answers = [[" ".join(draw.choices(_WORDS, k=14)) for _ in range(PAIRS)] for _ in "ab"]
    columns = {
        "id": [str(i) for i in range(PAIRS)], "word": [f"w{i % 100} / v{i % 100}" for i in range(PAIRS)],
        "asked_a": asked, "answer_a": answers[0], "asked_b": asked, "answer_b": answers[1],
    }  # fmt: skip
    names = [f"m{i}" for i in range(_MEASURES)]
    values = {name: (numbers.integers(0, 2, PAIRS), numbers.integers(0, 2, PAIRS)) for name in names}
    rows = [
        {
            "measure": name,
            "label": name,
            "verdict": "biased",
            "sign": 1,
            "difference": "",
            "groups": ["a", "b"],
            "finding": "",
        }
        for name in names
    ]
    (folder / "data").mkdir(parents=True)
    _write_pairs(Samples.of(columns, values), rows, folder / "data" / _SET)
    own = {
        "folder": _SET, "title": "made", "key": {"dimension": "gender", "model": "m"}, "subject": "m", "groups": ["a", "b"],
        "degenerate": None, "verdicts": rows, "run": "", "n": PAIRS, "measures": names,
    }  # fmt: skip
    _write_page(folder, {"profile": "made", "description": "", "version": "", "made": "", "page": PAGE, "sets": [own]})
    return folder / "index.html"
