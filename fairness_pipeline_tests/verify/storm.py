"""Kills runs at random moments, with records in files and in Postgres, and a node of a Ray cluster.

Each part says how often something was killed; the lake must come out byte for byte as that of an undisturbed run.
"""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from fairness_pipeline.engines.ray_rows import RayRows
from fairness_pipeline.engines.settings import RaySettings
from fairness_pipeline.models.language.registry import perplexity_scorer
from fairness_pipeline.workspace.distinct import CHUNK, LazyScorer, Scorer, each_distinct
from fairness_pipeline.workspace.postgres import POSTGRES
from fairness_pipeline_tests.commands import content
from fairness_pipeline_tests.models.language.tiny import specification, trained
from fairness_pipeline_tests.postgres_server import started
from fairness_pipeline_tests.verify import power
from fairness_pipeline_tests.verify.kills import small_run
from fairness_pipeline_tests.verify.power import power_cuts
from fairness_pipeline_tests.verify.shared import SENTIMENT, STATE, Claim, Part, finished

KILLS, PAIRED = 50, 10
MINUTES, MEMORY = 5, 600
"""Minutes of fuzzing; its most memory in MiB, of which the libraries take 200."""
PAIRS = 300_000
_WORKERS = ("--workers", "4")
_STATUSES = """
from fairness_pipeline.defs.instance import open_instance
from fairness_pipeline.project.project import Project
with open_instance(Project("small")) as instance:
    print(*(record.dagster_run.status.value for record in instance.get_run_records()))
"""
_PEOPLE = ("christians", "jews"), ("jews", "muslims")
_WORDS = "greedy loud tall busy early tired new and all these days phone bike again".split()


def parts() -> dict[str, Part]:
    """The parts by name."""
    return {
        "storm-files": partial(_killed, False),
        "storm-postgres": partial(_killed, True),
        "storm-two": _two_at_once,
        "storm-power": power_cuts,
        "storm-ray": _nodes,
        "storm-fuzz": _anything,
    }


def judge(outcomes: dict[str, dict[str, Any]]) -> list[Claim]:
    """The claims on the storm."""
    claims: list[Claim] = []
    for name, where in (("storm-files", "SQLite and leases"), ("storm-postgres", "Postgres")):
        outcome = outcomes[name]
        held = outcome["same"] and not outcome["partial_files_left"] and not outcome["unfinished"]
        claims.append(
            (f"{where}: after SIGKILL at random moments, four workers, the lake is byte for byte that of an undisturbed run, "
             "and no run is left as started", held and outcome["kills"] == KILLS,
             f"{outcome['kills']} kills, {outcome['partial_files_left']} partial files, {outcome['unfinished']} runs unfinished")
        )  # fmt: skip
    outcome = outcomes["storm-two"]
    claims.append(
        ("two runs at once on one Postgres, of which one is killed: the other makes all, byte for byte, and no run is left as "
         "started", outcome["same"] and outcome["others_finished"] == outcome["kills"] == PAIRED and not outcome["unfinished"],
         f"{outcome['kills']} kills, {outcome['others_finished']} others finished, {outcome['unfinished']} runs unfinished")
    )  # fmt: skip
    claims.append(power.judge(outcomes["storm-power"]))
    outcome = outcomes["storm-fuzz"]
    claims.append(
        ("whatever a server sends is a reply or a clear error, in bounded memory, and without the key",
         outcome["tried"] > 0 and outcome["peak_mib"] < MEMORY, f"{outcome['tried']:,} responses drawn, {outcome['peak_mib']} MiB at most")
    )  # fmt: skip
    outcome = outcomes["storm-ray"]
    lost = outcome["scored"] - outcome["chunks"]
    claims.append(
        (f"Ray: {PAIRS:,} pairs through three nodes, one node lost and the driver killed, come out byte for byte as embedded",
         outcome["same"] and lost <= outcome["most_twice"], f"{outcome['chunks']} chunks, {lost} of them scored twice")
    )  # fmt: skip
    return claims


def _killed(in_postgres: bool) -> dict[str, Any]:
    """A small run of a study, killed with SIGKILL at random moments until it was hit often enough, then left alone."""
    whole, stormed = STATE / "whole" / "storm", STATE / f"stormed-{in_postgres}"
    for home in (whole, stormed):
        shutil.rmtree(home, ignore_errors=True)
    finished(small_run(whole, SENTIMENT))
    undisturbed = content(whole / "small")
    with _records(in_postgres):
        draw, kills = random.Random(in_postgres), 0
        while kills < KILLS:
            process = small_run(stormed, SENTIMENT, *_WORKERS)
            deadline = time.monotonic() + draw.uniform(1.0, 9.0)
            while process.poll() is None and time.monotonic() < deadline:
                time.sleep(0.01)
            if process.poll() is None:
                process.kill()
                kills += 1
            process.wait()
            if not draw.randrange(4):  # so that there is something to make again
                _lose_some(stormed / "small", draw)
        finished(small_run(stormed, SENTIMENT, *_WORKERS))
        unfinished = _unfinished(stormed)
    return {
        "kills": kills,
        "same": content(stormed / "small") == undisturbed,
        "partial_files_left": len(list(stormed.rglob("*.part"))),
        "unfinished": unfinished,
    }


def _unfinished(home: Path) -> int:
    """How many of Dagster's runs have not ended."""
    statuses = subprocess.run(
        [sys.executable, "-c", _STATUSES], capture_output=True, text=True, check=True,
        env={**os.environ, "FAIRNESS_HOME": str(home), "FAIRNESS_DATA": str(STATE / "data")},
    ).stdout.split()  # fmt: skip
    return sum(status not in ("SUCCESS", "FAILURE", "CANCELED") for status in statuses)


def _two_at_once() -> dict[str, Any]:
    """Two runs of the same profile at once with one Postgres; one is killed, the other has to finish."""
    whole, stormed = STATE / "whole" / "two", STATE / "stormed-two"
    for home in (whole, stormed):
        shutil.rmtree(home, ignore_errors=True)
    finished(small_run(whole, SENTIMENT))
    draw, kills, finished_survivors = random.Random(2), 0, 0
    with _records(True):
        while kills < PAIRED:
            killed, survivor = (small_run(stormed, SENTIMENT, "--workers", "2") for _ in range(2))
            time.sleep(draw.uniform(2.0, 7.0))
            if killed.poll() is None:
                killed.kill()
                kills += 1
                finished_survivors += ", 0 not made, " in finished(survivor)
                killed.wait()
            else:
                finished(killed)
                finished(survivor)
            shutil.rmtree(stormed / "small" / "tables", ignore_errors=True)
        finished(small_run(stormed, SENTIMENT, *_WORKERS))
        unfinished = _unfinished(stormed)
    same = content(stormed / "small") == content(whole / "small")
    return {"kills": kills, "others_finished": finished_survivors, "same": same, "unfinished": unfinished}


def _anything() -> dict[str, Any]:
    """Fuzzes a server's responses for `MINUTES`; see `fuzz`."""
    words = [sys.executable, "-m", "fairness_pipeline_tests.verify.fuzz", "--minutes", str(MINUTES)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"a response was found:\n{done.stdout}{done.stderr}")
    report: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return {"tried": report["drawn"] + report["sought"], "peak_mib": report["peak_mib"]}


@contextmanager
def _records(in_postgres: bool) -> Iterator[None]:
    """Puts Dagster's records into a separate database, or into files."""
    if not in_postgres:
        yield
        return
    with started() as server:
        os.environ[POSTGRES] = server.database()
        try:
            yield
        finally:
            del os.environ[POSTGRES]


def _lose_some(workspace: Path, draw: random.Random) -> None:
    """Deletes three tables or cards."""
    made = sorted([*(workspace / "tables").rglob("*.parquet"), *(workspace / "cards").rglob("*.json")])
    for path in draw.sample(made, min(3, len(made))):
        path.unlink()


def _nodes() -> dict[str, Any]:
    """Scores many pairs on three nodes, of which one is lost; then the driver is killed, and another goes on."""
    from ray.cluster_utils import Cluster

    home = STATE / "storm-ray"
    shutil.rmtree(home, ignore_errors=True)
    trained(home / "model")
    embedded = score(home)
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    try:
        for _ in range(2):
            cluster.add_node(num_cpus=1)
        driver = _driver(home, cluster.address)
        _wait_until(home, 0.25, driver)
        cluster.remove_node(cluster.list_all_nodes()[-1], allow_graceful=False)
        _wait_until(home, 0.5, driver)
        driver.send_signal(signal.SIGKILL)
        driver.wait()
        assert _driver(home, cluster.address).wait() == 0
    finally:
        cluster.shutdown()
    on_ray = pa.ipc.open_file(home / "scored.arrow").read_all()
    return {
        "same": on_ray.equals(embedded),
        "chunks": len(list((home / "work").glob("scored-*.parquet"))),
        "scored": len((home / "log").read_text().splitlines()),
        "most_twice": 1 + 3,  # of the node that was lost, and of the three at work when the driver was killed
    }


def score(home: Path, address: str | None = None) -> pa.Table:
    """The perplexities, on a cluster or here.

    Args:
        home: Holds the model.
        address: The cluster's; None for this process.
    """
    if address is None:
        return each_distinct(_texts(), _load(home, None))
    scorer = LazyScorer(partial(_load, home, home / "log"), device="cpu")
    (home / "work").mkdir(exist_ok=True)
    return each_distinct(_texts(), scorer, folder=home / "work", engine=RayRows(RaySettings(address=address), home))


def _load(home: Path, log: Path | None) -> Scorer:
    """The model; it writes a line for each chunk that it has scored."""
    scorer = perplexity_scorer(specification(), home / "model")

    def logged(texts: pa.Table) -> pa.Table:
        scores = scorer(texts)
        if log:
            with log.open("a") as file:
                file.write(f"{os.getpid()}\n")
        return scores

    return logged


def _texts() -> pa.Array:
    """Both sides of many pairs, all of them distinct."""
    draw = random.Random(5)
    ends = [" ".join(draw.choices(_WORDS, k=9)) for _ in range(PAIRS)]
    people = draw.choices(_PEOPLE, k=PAIRS)
    return pa.array([f"{pair[side]} are {end}" for pair, end in zip(people, ends, strict=True) for side in (0, 1)])


def _driver(home: Path, address: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen([sys.executable, "-m", __name__, str(home), address])


def _wait_until(home: Path, share: float, driver: "subprocess.Popen[bytes]") -> None:
    """Waits until this share of the chunks is made."""
    count = share * len(_texts()) / CHUNK
    while driver.poll() is None and len(list((home / "work").glob("scored-*.parquet"))) < count:
        time.sleep(0.1)
    assert driver.poll() is None, "the driver ended before the storm"


if __name__ == "__main__":
    scored = score(Path(sys.argv[1]), sys.argv[2])
    with (
        pa.OSFile(str(Path(sys.argv[1]) / "scored.arrow"), "wb") as file,
        pa.ipc.new_file(file, scored.schema) as writer,
    ):
        writer.write_table(scored)
