"""The viewer: every pair behind every verdict, in a folder that any browser opens."""

import json
import shutil
import subprocess
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fairness_pipeline.project.project import Project
from fairness_pipeline.reporting.results import shown_verdict
from fairness_pipeline.reporting.samples import Samples
from fairness_pipeline.reporting.viewer.bundle import PAGE, _order, _write_page, _write_pairs
from fairness_pipeline.workspace.lake import Lake
from fairness_pipeline_tests.browser import Browser, wait
from fairness_pipeline_tests.commands import command, process, run
from fairness_pipeline_tests.reporting.pairs import pairs_make_the_verdicts

HOSTILE = [
    "</script><script>document.title='broken'</script>",
    "<img src=x onerror=\"document.title='broken'\">",
    "\u2028\u2029 &lt;b&gt; \\u003c \u0000 \ud800",
    "'); document.title='broken'; ('",
]


def content(script: Path) -> Any:
    """The data that a script passes to the viewer."""
    text = script.read_text(encoding="utf-8")
    return json.loads(text[text.index("(") + 1 : text.rindex(")")])


def test_every_pair_is_there_and_makes_its_verdict(made: Project, tmp_path: Path) -> None:
    pairs_make_the_verdicts(made, fewest=12)
    target = tmp_path / "pages"
    done = command("view", "--output", str(target))
    assert done.returncode == 0 and "2 audits" in done.stdout and "may offend" in done.stdout
    sets = content(target / "data" / "catalogue.js")["sets"]
    lake = Lake(made.workspace)
    for entry in sets:
        responses = lake.read("responses", entry["key"]).to_pylist()
        expected = {(str(row["pair_id"]), row["side"], row["context"], row["response"]) for row in responses}
        index, page = (content(target / "data" / entry["folder"] / f"{name}.js") for name in ("index", "0"))
        assert entry["n"] == len(responses) / 2 <= PAGE
        listed = {
            (pair, side, question, answer)
            for side in "ab"
            for pair, question, answer in zip(
                index[1]["ids"], page[2][f"asked_{side}"], page[2][f"answer_{side}"], strict=True
            )
        }
        assert listed == expected
        rows = {row["measure"]: row for row in lake.read("dialogue_significance", entry["key"]).to_pylist()}
        assert entry["verdicts"]
        assert all(row["verdict"] == shown_verdict(rows[row["measure"]]) for row in entry["verdicts"])
    before = {path: path.stat().st_mtime_ns for path in target.rglob("index.js")}
    assert command("view", "--output", str(target)).returncode == 0
    assert {path: path.stat().st_mtime_ns for path in target.rglob("index.js")} == before  # not written again


def test_an_earlier_run_is_shown_and_stale_audits_are_left_out(made: Project, data: Path, tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    assert command("view", "--output", str(first)).returncode == 0
    done = command("view", "--output", str(second), "--against", str(first))
    assert done.returncode == 0
    sets = content(second / "data" / "catalogue.js")["sets"]
    assert [bool(entry["run"]) for entry in sets] == [False, False, True, True]
    assert all((second / "data" / entry["folder"] / "index.js").exists() for entry in sets)
    refused = command("view", "--output", str(second), "--against", str(data))
    assert refused.returncode == 1 and "expected the folder of a viewer" in refused.stderr
    (first / "data" / "catalogue.js").write_text(
        (first / "data" / "catalogue.js")
        .read_text()
        .replace(f'"folder":"{sets[0]["folder"]}"', '"folder":"../../escaped"')
    )
    refused = command("view", "--output", str(second), "--against", str(first))
    assert refused.returncode == 1 and "expected the folder of a viewer" in refused.stderr
    refused = command("view", "--output", str(made.path))
    assert refused.returncode == 1 and "holds something else" in refused.stderr
    refused = command("view", "--output", str(data))
    assert refused.returncode == 1 and "holds something else" in refused.stderr
    shutil.rmtree(made.workspace / "tables" / "sentiment" / "dimension=gender")
    done = command("view", "--output", str(first))
    assert "1 audit left out, being out of date" in done.stdout and "1 audit:" in done.stdout
    assert len(list((first / "data").glob("dialogue*/"))) == 1  # what is not shown any more is removed
    shutil.rmtree(made.workspace / "tables" / "dialogue_significance")
    refused = command("view", "--output", str(first))
    assert refused.returncode == 1 and "fairness-pipeline run --profile" in refused.stderr


def test_the_worst_pairs_of_the_worst_measure_come_first() -> None:
    flag = np.array([0.0, 1.0, 0.0, 1.0]), np.array([0.0, 0.0, 0.0, 0.0])
    words = np.array([9.0, 1.0, 1.0, 5.0]), np.array([1.0, 1.0, 1.0, 1.0])
    values = {"offence": flag, "length": words}
    assert _order(values, {"offence": 1}, 4).tolist() == [3, 1, 0, 2]
    assert _order(values, {"offence": -1}, 4).tolist() == [0, 2, 3, 1]  # the other side is the one with more
    assert _order(values, {"offence": 0}, 4).tolist() == [3, 1, 0, 2]
    assert _order(values, {}, 4).tolist() == [3, 0, 1, 2]  # none is biased: all together, each by its widest
    assert _order({"length": (words[0], np.full(4, np.nan))}, {"length": 1}, 4).tolist() == [0, 3, 1, 2]


def hostile_pages(folder: Path) -> Path:
    """A viewer of 2,500 pairs, whose texts try to be more than text."""
    count = 2500
    texts = [f"{HOSTILE[i % len(HOSTILE)]} {i}" for i in range(count)]
    columns = dict.fromkeys(("word", "asked_a", "answer_a", "asked_b", "answer_b"), texts)
    safe = {name: [text.encode(errors="replace").decode() for text in column] for name, column in columns.items()}
    values = {"rate": (np.arange(count) % 2.0, np.zeros(count)), "length": (np.arange(count) * 1.0, np.ones(count))}
    rows = [
        {
            "measure": name,
            "label": HOSTILE[0],
            "verdict": "biased",
            "sign": 1,
            "difference": HOSTILE[1],
            "groups": HOSTILE[:2],
            "finding": "",
        }
        for name in values
    ]
    samples = Samples.of({"id": [str(i) for i in range(count)], **safe}, values)
    name = "hostile-000000000000"
    (folder / "data").mkdir(parents=True)
    _write_pairs(samples, rows, folder / "data" / name)
    entry = {
        "folder": name, "title": HOSTILE[0], "key": {"dimension": HOSTILE[1], "model": "m"}, "subject": "m",
        "groups": [HOSTILE[0], "b"], "degenerate": None, "verdicts": rows, "run": "", "n": count, "measures": [*values],
    }  # fmt: skip
    catalogue = {
        "profile": HOSTILE[0],
        "description": HOSTILE[1],
        "version": "0",
        "made": "now",
        "page": PAGE,
        "sets": [entry],
    }
    _write_page(folder, catalogue)
    return folder / "index.html"


def test_no_text_ends_a_script(tmp_path: Path) -> None:
    page = hostile_pages(tmp_path / "pages")
    for script in page.parent.rglob("*.js"):
        if script.name != "viewer.js":
            assert "<" not in script.read_text(encoding="utf-8")
    assert page.read_text(encoding="utf-8").count("<script") == 2


@pytest.mark.parametrize("size", [(1440, 900), (420, 900)])
def test_a_browser_shows_pairs_from_disk_and_hostile_text_as_text(tmp_path: Path, size: tuple[int, int]) -> None:
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("no Chromium here: the viewer is not looked at in a browser")
    page = hostile_pages(tmp_path / "pages")
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--virtual-time-budget=8000",
             f"--window-size={size[0]},{size[1]}", f"--user-data-dir={tmp_path / 'profile'}"]  # fmt: skip
    dom = subprocess.run(
        [chromium, *flags, "--dump-dom", page.as_uri()], capture_output=True, text=True, timeout=120
    ).stdout
    assert "2,500 of 2,500 pairs" in dom
    assert 3 <= dom.count('class="row"') < 20  # only those in sight
    assert "<title>broken" not in dom and "<img" not in dom
    assert dom.count("&lt;/script&gt;") > 3


@pytest.mark.verify
def test_filters_links_and_scrolling(tmp_path: Path) -> None:
    driver = shutil.which("chromedriver")
    if driver is None:
        pytest.skip("no chromedriver here: the viewer is not used in a browser")
    page = hostile_pages(tmp_path / "pages")
    browser = Browser(driver, tmp_path / "profile")

    def listed() -> str:
        return str(browser.run("document.getElementById('count').textContent"))

    try:
        browser.call("/url", {"url": page.as_uri()})
        wait(lambda: listed().startswith("2,500 of"))
        browser.run("(document.getElementById('list').scrollTop = 1e9, 1)")
        last = "/ 0(\\s|$)/.test([...document.querySelectorAll('.row')].at(-1).innerText)"
        wait(lambda: browser.run(last))  # not flagged, and shorter on side a
        browser.run(
            "(document.getElementById('of-measure').value = 'rate', document.getElementById('of-measure').onchange(), 1)"
        )
        browser.run("(document.querySelector('.check input').click(), 1)")
        wait(lambda: listed().startswith("1,250 of"))  # every other pair differs in it
        browser.run(
            "((box = document.querySelector('input[type=search]')) => (box.value = '249', box.onchange()))(), 1"
        )
        wait(lambda: listed().startswith("8 of"))  # 249, 1249, 2249, 2491 ... of those that differ
        browser.run("(document.querySelector('.row').click(), 1)")
        link = wait(lambda: browser.run("document.querySelector('dialog input')?.value"))
        heading = browser.run("document.querySelector('dialog h2').textContent")
        browser.call("/url", {"url": "about:blank"})
        browser.call("/url", {"url": link})
        wait(lambda: browser.run("document.querySelector('dialog h2')?.textContent") == heading)
        assert browser.run("document.title").startswith("Pairs: ")
    finally:
        browser.close()


@pytest.mark.verify
def test_it_is_served_to_this_machine_alone(made: Project) -> None:
    served = process("view", "--port", "8123")
    try:
        assert served.stdout is not None
        while not (line := served.stdout.readline()).startswith("http://"):
            assert line
        with urllib.request.urlopen("http://127.0.0.1:8123/data/catalogue.js") as answer:
            assert answer.read().startswith(b"viewer.catalogue(")
        for method in ("GET", "HEAD"):
            elsewhere = urllib.request.Request(
                "http://127.0.0.1:8123/", headers={"Host": "evil.example:8123"}, method=method
            )
            with pytest.raises(urllib.error.HTTPError, match="403"):
                urllib.request.urlopen(elsewhere)
    finally:
        served.terminate()
        assert served.wait(20) == 0


def test_nothing_made_says_what_to_do(tiny: Project) -> None:
    done = command("view")
    assert done.returncode == 1 and "fairness-pipeline run --profile" in done.stderr
    assert not run("--select", "twitter_dialogues").returncode
    assert command("view").returncode == 1
