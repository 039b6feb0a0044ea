"""What an engine costs: processor time on a Ray cluster of this machine beside that of two workers; locks."""

import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pyarrow as pa

from fairness_pipeline.engines.ray_rows import RayRows
from fairness_pipeline.engines.settings import RaySettings
from fairness_pipeline.foundation.leases import leased
from fairness_pipeline.foundation.threads import one_thread
from fairness_pipeline.models.language import registry
from fairness_pipeline.workspace.distinct import each_distinct
from fairness_pipeline_tests.benchmark.shared import Ratio, rate
from fairness_pipeline_tests.models.language.tiny import TEXTS, specification

_TEXTS = 120_000
_SAMPLE = 0.2  # seconds
_WORDS = "greedy loud tall busy early tired new and all these days phone bike again".split()
_MODEL = specification(gpt2={"layers": 4, "heads": 4, "embedding": 128, "positions": 32, "vocabulary": 400})


def ray() -> Iterator[Ratio]:
    """Perplexities: two worker processes with half of the texts each, as `--workers 2` makes two partitions; then Ray."""
    with tempfile.TemporaryDirectory() as folder, one_thread():
        home = Path(folder)
        (home / "model").mkdir()
        registry.prepare(_MODEL, TEXTS, home / "model", 1)
        workers = _processor_seconds(lambda: _two_workers(home))
        settings = RaySettings(address="local")
        engine = RayRows(settings, home)
        (home / "first").mkdir()
        each_distinct(texts().slice(0, 5000), _scorer(home), folder=home / "first", engine=engine)  # starts the cluster
        (home / "work").mkdir()
        on_ray = _processor_seconds(lambda: each_distinct(texts(), _scorer(home), folder=home / "work", engine=engine))
        import ray as library

        library.shutdown()
    yield Ratio(
        "perplexities on a Ray cluster of this machine, beside --workers 2", "texts per processor second",
        _TEXTS / workers, _TEXTS / on_ray, 1 / 1.1, f"{workers:.0f} s and {on_ray:.0f} s of processor time",
    )  # fmt: skip


def locks() -> Iterator[Ratio]:
    """A lease taken and given back, beside `flock`, which holds on one machine only."""
    import fcntl

    with tempfile.TemporaryDirectory() as folder:

        def plain() -> None:
            for _ in range(1000):
                with (Path(folder) / "plain").open("a") as file:
                    fcntl.flock(file, fcntl.LOCK_EX)

        def here() -> None:
            for _ in range(1000):
                with leased(Path(folder) / "lease"):
                    pass

        yield Ratio("locks (a lease, beside flock)", "locks", rate(1000, plain, 3), rate(1000, here, 3), 0.0)


def texts() -> pa.Array:
    """Texts of ten words, nearly all distinct."""
    draw = random.Random(5)
    return pa.array([f"christians are {' '.join(draw.choices(_WORDS, k=9))}" for _ in range(_TEXTS)])


def half(home: Path, first: int) -> None:
    """What one of two workers does, in a process of its own."""
    with one_thread():
        each_distinct(texts().take(pa.array(range(first, _TEXTS, 2))), _scorer(home))


def _two_workers(home: Path) -> None:
    code = f"from {__name__} import *; half(Path({str(home)!r}), %d)"
    workers = [subprocess.Popen([sys.executable, "-W", "ignore", "-c", code % first]) for first in (0, 1)]
    assert not any(worker.wait() for worker in workers)


def _scorer(home: Path):  # type: ignore[no-untyped-def]
    return registry.perplexity_scorer(_MODEL, home / "model")


def _processor_seconds(work: Callable[[], object]) -> float:
    """Processor time of this process and of all that it has started, looked at often: who ends is not forgotten."""
    seen: dict[int, float] = {}
    ended = threading.Event()

    def look() -> None:
        me = psutil.Process()
        while not ended.wait(_SAMPLE):
            for process in [me, *me.children(recursive=True)]:
                try:
                    spent = process.cpu_times()
                    seen[process.pid] = spent.user + spent.system
                except psutil.Error:  # it has ended
                    pass

    watch = threading.Thread(target=look)
    watch.start()
    time.sleep(2 * _SAMPLE)
    before = sum(seen.values())
    work()
    time.sleep(2 * _SAMPLE)
    ended.set()
    watch.join()
    return sum(seen.values()) - before
