"""Damages a workspace on purpose: flipped bits, cards that lie, broken records, files that vanish during a run.

What is damaged must be named or made anew, and never be read as something else; nothing may end in a traceback.
"""

import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from fairness_pipeline.cli.check import problems
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.lineage.lineage import Lineage
from fairness_pipeline.project.project import Project
from fairness_pipeline.workspace.lake import Key, Lake
from fairness_pipeline_tests.commands import content
from fairness_pipeline_tests.verify.kills import small_run
from fairness_pipeline_tests.verify.shared import ROOT, SENTIMENT, STATE, Claim, Part, command, finished, version

FLIPS, CARDS = 400, 50
_BAD_INPUTS = (
    "cli/test_bad_inputs.py", "foundation", "models/dialogue/test_imported.py", "models/sentiment/test_systems.py",
    "models/classifiers/test_classifiers.py", "corpora", "lexicons/test_dimensions.py",
)  # fmt: skip
_ENDPOINTS = ("models/dialogue/test_endpoint.py",)
_LINE = 200_000_000


def parts() -> dict[str, Part]:
    """The parts by name."""
    return {
        "damage-bits": _bits,
        "damage-cards": _cards,
        "damage-records": _records,
        "damage-meanwhile": _meanwhile,
        "damage-links": _links,
        "damage-inputs": _inputs,
        "damage-line": _long_line,
    }


def judge(outcomes: dict[str, dict[str, Any]]) -> list[Claim]:
    """The claims on damage."""
    bits, cards, records = (outcomes[f"damage-{name}"] for name in ("bits", "cards", "records"))
    meanwhile, links = outcomes["damage-meanwhile"], outcomes["damage-links"]
    locked = meanwhile["locked_out"]
    inputs, line = outcomes["damage-inputs"], outcomes["damage-line"]
    return [
        ("a flipped bit, in whichever table, model, card or report, is named by `check`, and no table is read as another",
         bits["named"] == bits["flips"] and not bits["read_as_another"],
         f"{bits['named']} of {bits['flips']} named, {bits['read_as_another']} read as another"),
        ("a damaged card vouches for nothing", cards["named"] == cards["cards"] and not cards["escaped"],
         f"{cards['named']} of {cards['cards']} named, {cards['escaped']} other errors"),
        ("damaged records of runs and a damaged history are named or made anew, and the lake stands",
         all(outcome["clear"] and outcome["same"] for outcome in records.values() if isinstance(outcome, dict)),
         "; ".join(f"{name}: {outcome['said']}" for name, outcome in records.items() if isinstance(outcome, dict))),
        ("files that are deleted while a run goes on are made again, in the end the same bytes",
         meanwhile["deleted"]["same"] and not meanwhile["deleted"]["traceback"], f"{meanwhile['deleted']['files']} files"),
        ("a right to write that is lost in the middle is named, and the run goes on once it is back",
         locked and locked["named"] and locked["same"], "tried" if locked else "root without chattr here"),
        ("a link out of the lake is no table, model or card; a home that is a link to another file system is",
         links["refused"] == links["links"] and links["same"], f"{links['refused']} of {links['links']} links refused"),
        ("what an endpoint may do, and wrong input, ends in a clear error or an answer", not inputs["failed"],
         f"{inputs['endpoint']} tests of endpoints, {inputs['bad']} tests of input, {inputs['failed']} failed"),
        (f"a line of {_LINE // 1_000_000} MB is refused by its number, in little memory", line["named"] and line["mib"] < 512,
         f"{line['mib']:.0f} MiB, {line['took']:.1f} s"),
    ]  # fmt: skip


@contextmanager
def _settings(home: Path) -> Iterator[None]:
    """Points this process to the workspaces in `home`."""
    variables = {"FAIRNESS_HOME": str(home), "FAIRNESS_DATA": str(STATE / "data")}
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


def _made(name: str) -> Path:
    """A copy of a home with a finished small run, for one part."""
    whole, home = STATE / "whole" / "damage", STATE / "damaged" / name
    made_by = whole / "version"
    if not (made_by.exists() and made_by.read_text(encoding="utf-8") == version()):
        shutil.rmtree(whole, ignore_errors=True)
        finished(small_run(whole, SENTIMENT))
        made_by.write_text(version(), encoding="utf-8")
    shutil.rmtree(home, ignore_errors=True)
    shutil.copytree(whole, home)
    return home


def _partitions(home: Path) -> tuple[Lake, list[tuple[str, Key]]]:
    with _settings(home):
        project = Project("small")
        lineage, lake = Lineage(project), Lake(project.workspace)
        partitions = [(name, key) for name in lineage.assets for key in lineage.keys(name) if lake.has(name, key)]
    return lake, partitions


def _files_of(lake: Lake, asset: str, key: Key) -> list[Path]:
    """All files of a partition: its table, or its card and what it lists."""
    table = lake.table_path(asset, key)
    if table.exists():
        return [table]
    card = lake.card(asset, key)
    assert card is not None, asset
    name = ",".join(f"{axis}={key[axis]}" for axis in sorted(key)) or "all"
    return [lake.root / "cards" / asset / f"{name}.json", *(lake.root / name for name in card.files)]


def _bits() -> dict[str, Any]:
    """Flips single bits, each alone: in each file of the workspace about equally often."""
    lake, made = _partitions(_made("bits"))
    owners = [(path, asset, key) for asset, key in made for path in _files_of(lake, asset, key)]
    draw, named, read_as_another = random.Random(1), 0, 0
    for path, asset, key in draw.choices(owners, k=FLIPS):
        whole, times = path.read_bytes(), path.stat()
        before = lake.read(asset, key) if path.suffix == ".parquet" and path == lake.table_path(asset, key) else None
        flipped = bytearray(whole)
        flipped[draw.randrange(len(whole))] ^= 1 << draw.randrange(8)
        path.write_bytes(flipped)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))  # as bit rot, which does not change the time
        named += bool(problems(lake, [(asset, key)]))
        if before is not None:
            with suppress(FairnessError):
                read_as_another += not lake.read(asset, key).equals(before) and lake.card(asset, key) is not None
        path.write_bytes(whole)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert not problems(lake, made)
    return {"flips": FLIPS, "files": len(owners), "named": named, "read_as_another": read_as_another}


Damage = Callable[[dict[str, Any], random.Random], object]


def _without(name: str) -> Damage:
    return lambda card, draw: {field: value for field, value in card.items() if field != name}


def _with(name: str, value: Any) -> Damage:
    return lambda card, draw: {**card, name: value}


_FIELDS = ("fingerprint", "inputs", "figures", "content", "files")
_DAMAGES: tuple[Damage, ...] = (
    *(_without(name) for name in _FIELDS if name != "figures"),
    *(_with(name, value) for name in _FIELDS for value in (None, 7, [], "x")),
    _with("files", {}),
    *(_with("seal", value) for value in (7, "x", "0" * 64)),
    *(
        lambda card, draw, name=name: {**card, "seal": "", name: {**card[name], "code_version": "0"}}
        for name in ("inputs", "figures")
    ),
    lambda card, draw: {**card, "seal": "", "fingerprint": "0" * 64},
    _with("files", {"../../../../etc/hostname": 5}),
    _with("files", {"/etc/hostname": 5}),
    lambda card, draw: {**card, "files": {name: size + 1 for name, size in card["files"].items()}},
    lambda card, draw: {**card, "figures": {**card["figures"], "better": 1.0}},
    lambda card, draw: {**card, "inputs": {**card["inputs"], "partition": {"model": "another"}}},
    lambda card, draw: {**card, "more": 1},
    lambda card, draw: [card],
    lambda card, draw: "card",
    lambda card, draw: json.dumps(card)[: draw.randrange(1, 40)].encode(),
    lambda card, draw: b"[" * 100_000,
    lambda card, draw: b'{"inputs":' * 50_000,
    lambda card, draw: b"",
    lambda card, draw: bytes(draw.randrange(256) for _ in range(500)),
    lambda card, draw: json.dumps(card).encode("utf-16")[3:],
)


def _cards() -> dict[str, Any]:
    """Damages cards of models and reports in many ways."""
    lake, made = _partitions(_made("cards"))
    owned = [partition for partition in made if not lake.table_path(*partition).exists()]
    draw, named, escaped = random.Random(2), 0, 0
    damages = [*_DAMAGES, *draw.choices(_DAMAGES, k=max(0, CARDS - len(_DAMAGES)))]
    for damage in damages:
        asset, key = draw.choice(owned)
        path = _files_of(lake, asset, key)[0]
        whole = path.read_bytes()
        damaged = damage(json.loads(whole), draw)
        path.write_bytes(damaged if isinstance(damaged, bytes) else json.dumps(damaged).encode())
        try:
            named += bool(problems(lake, [(asset, key)]))
        except Exception:
            escaped += 1
        path.write_bytes(whole)
    # Two partitions of one asset change places, cards and all.
    swapped = next((a, b) for a in owned for b in owned if a[0] == b[0] and a[1] != b[1])
    paths = [_files_of(lake, *partition)[0] for partition in swapped]
    contents = [path.read_bytes() for path in paths]
    for path, swapped_content in zip(paths, reversed(contents), strict=True):
        path.write_bytes(swapped_content)
    named += sum(bool(problems(lake, [partition])) for partition in swapped) == 2
    return {"cards": len(damages) + 1, "named": named, "escaped": escaped}


def _records() -> dict[str, Any]:
    """Damages files outside the lake, then runs, and checks that the lake is unchanged."""
    results: dict[str, Any] = {}
    for name, pattern, broken in (
        ("runs, garbage", "dagster/history/runs.db", b"garbage" * 100),
        ("runs, cut", "dagster/history/runs.db", None),
        ("events, garbage", "dagster/**/*.db", b"\0" * 5000),
        ("schedules, empty", "dagster/schedules/*.db", b""),
        ("history, cut", "history/*/*.parquet", None),
    ):
        home = _made("records")
        before = content(home / "small")
        paths = sorted((home / "small").glob(pattern))
        for path in paths:
            path.write_bytes(path.read_bytes()[:-100] if broken is None else broken)
        process = command(home, "run", "--profile", "small", "--study", SENTIMENT, "--force", data=STATE / "data")
        output = process.communicate()[0]
        again = None
        if process.returncode:  # it must have said what to do, and the lake must be unchanged
            shutil.rmtree(home / "small" / "dagster", ignore_errors=True)
            again = finished(small_run(home, SENTIMENT))
        results[name] = {
            "files": len(paths),
            "clear": bool(paths) and "Traceback" not in output,
            "same": content(home / "small") == before,
            "said": "named, and gone on with after the records were deleted" if again else "made anew",
        }
    return results


def _meanwhile() -> dict[str, Any]:
    """Deletes files during a run, and removes the right to write during another."""
    whole = _made("whole")
    undisturbed = content(whole / "small")
    home, draw = STATE / "damaged" / "deleted", random.Random(3)
    shutil.rmtree(home, ignore_errors=True)
    deleted, traceback = 0, False
    for _ in range(4):
        process = small_run(home, SENTIMENT, "--workers", "2")
        deadline = time.monotonic() + 60
        while process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.5)
            made = sorted((home / "small").glob("[tc]*/**/*.*"))
            for path in draw.sample(made, min(1, len(made))):
                if path.suffix in (".parquet", ".json") and not path.name.startswith("."):
                    path.unlink(missing_ok=True)
                    deleted += 1
        traceback |= "Traceback" in process.communicate()[0]
    finished(small_run(home, SENTIMENT))
    outcome = {"files": deleted, "same": content(home / "small") == undisturbed, "traceback": traceback}
    return {"deleted": outcome, "locked_out": _locked_out(undisturbed)}


def _locked_out(undisturbed: dict[str, bytes]) -> dict[str, Any] | None:
    """Removes the right to write tables in the middle; None where that cannot be done (root needs chattr)."""
    home = STATE / "damaged" / "locked"
    subprocess.run(["chattr", "-R", "-i", str(home)], capture_output=True)
    shutil.rmtree(home, ignore_errors=True)
    process = small_run(home, SENTIMENT)
    while process.poll() is None and len(list(home.rglob("*.parquet"))) < 4:
        time.sleep(0.05)
    tables = home / "small" / "tables"
    words = (
        (["chattr", "-R", "+i"], ["chattr", "-R", "-i"])
        if os.geteuid() == 0
        else (["chmod", "-R", "a-w"], ["chmod", "-R", "u+w"])
    )
    locked = subprocess.run([*words[0], str(tables)], capture_output=True).returncode == 0
    output = process.communicate()[0]
    subprocess.run([*words[1], str(tables)], capture_output=True)
    if not locked:
        return None
    finished(small_run(home, SENTIMENT))
    named = process.returncode == 1 and "Traceback" not in output and "cannot be read or written" in output
    return {"named": named, "same": content(home / "small") == undisturbed}


@contextmanager
def _mounted(name: str) -> Iterator[Path | None]:
    """Yields a separate file system; None where none may be mounted."""
    home = STATE / "damaged" / name
    home.mkdir(parents=True, exist_ok=True)
    words = ["mount", "-t", "tmpfs", "-o", "size=500m", "tmpfs", str(home)]
    if subprocess.run(words, capture_output=True).returncode:
        yield None
        return
    try:
        yield home
    finally:
        subprocess.run(["umount", "-l", str(home)], check=True)


def _links() -> dict[str, Any]:
    """Puts links in place of tables, models and reports; and runs in a home that is a link to another file system."""
    home = _made("links")
    undisturbed = content(home / "small")
    lake, made = _partitions(home)
    outside = STATE / "damaged" / "outside"
    outside.mkdir(parents=True, exist_ok=True)
    refused = 0
    draw = random.Random(4)
    chosen = [
        (path, asset, key)
        for asset, key in draw.sample(made, min(20, len(made)))
        for path in _files_of(lake, asset, key)
    ]
    for path, asset, key in chosen:
        target = outside / path.name
        shutil.move(path, target)
        path.symlink_to(target)
        refused += bool(problems(lake, [(asset, key)]))
        path.unlink()
        shutil.move(target, path)
    with _mounted("elsewhere") as mounted:
        folder = mounted or outside / "elsewhere"
        shutil.rmtree(folder / "home", ignore_errors=True)
        (folder / "home").mkdir(parents=True)
        link = STATE / "damaged" / "link"
        link.unlink(missing_ok=True)
        link.symlink_to(folder / "home")
        finished(small_run(link, SENTIMENT))
        same = content(link / "small") == undisturbed
    return {"links": len(chosen), "refused": refused, "same": same}


def _inputs() -> dict[str, Any]:
    """Runs and counts the tests of wrong input and of endpoints that misbehave."""
    results: dict[str, Any] = {"failed": 0}
    for name, files in (("endpoint", _ENDPOINTS), ("bad", _BAD_INPUTS)):
        words = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-o",
            "addopts=",
            *(f"fairness_pipeline_tests/{file}" for file in files),
        ]
        summary = subprocess.run(words, cwd=ROOT, capture_output=True, text=True).stdout.strip().splitlines()[-1]
        counts = {
            word.rstrip(","): int(number)
            for number, word in zip(summary.split(), summary.split()[1:], strict=False)
            if number.isdigit()
        }
        results[name] = counts.get("passed", 0)
        results["failed"] += (
            counts.get("failed", 0) + counts.get("error", 0) + counts.get("errors", 0) + ("passed" not in counts)
        )
    return results


def _long_line() -> dict[str, Any]:
    """Reads a file of annotations whose only line has 200 MB."""
    folder = STATE / "damaged" / "line"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "long.csv"
    with path.open("wb") as stream:
        for _ in range(_LINE // 1_000_000):
            stream.write(b"x" * 1_000_000)
    code = (
        "import resource, sys\n"
        "from pathlib import Path\n"
        "from fairness_pipeline.foundation.records import read_records\n"
        "empty = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "try:\n    list(read_records(Path(sys.argv[1])))\n"
        "except Exception as error:\n    print(type(error).__name__, error)\n"
        "print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - empty) / 1024)\n"
    )
    start = time.monotonic()
    output = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True).stdout.splitlines()
    path.unlink()
    named = "FairnessError" in output[0] and "long.csv, line 1: longer than" in output[0]
    return {"named": named, "mib": float(output[1]), "took": time.monotonic() - start}
