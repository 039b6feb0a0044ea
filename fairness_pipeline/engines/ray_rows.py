"""Scores chunks of texts with a pool of Ray actors, each of which loads the model once.

Ray Data does not fit: it restarts an actor and its chunk without end, so that a text that kills the process is never
named, and it wraps our errors in its own.
"""

import math
import time
import traceback
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import ray

from fairness_pipeline.engines.ray_cluster import (
    Visit,
    check_visit,
    environment,
    join,
    nodes,
    nonce,
    reason,
    use_environment,
    visit,
)
from fairness_pipeline.engines.settings import RaySettings
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.guard import Files, declared, only
from fairness_pipeline.foundation.threads import one_thread
from fairness_pipeline.workspace.distinct import HERE, Check, Chunks, LazyScorer

_IN_FLIGHT = 2
"""Chunks that an actor has at once, so that the next one is there when it ends one."""
_DEATHS = 3
_WAIT = 1.0  # seconds
_PATIENCE = 15.0
"""Seconds to wait without a node that could hold an actor; a lost node may come back."""
_SHOWN = 80


class RayRows:
    """Scores chunks on a Ray cluster. Chunks that load no model or keep nothing, and single ones, stay in this process.

    Args:
        settings: The cluster.
        lake: The workspace's folder, which every node must see.
    """

    def __init__(self, settings: RaySettings, lake: Path) -> None:
        self._settings = settings
        self._lake = lake

    def score(
        self, chunks: Chunks, missing: Sequence[int], waiting: Callable[[str], None]
    ) -> Iterator[tuple[int, pa.Table]]:
        """Scores the chunks with the numbers `missing`; yields each as it is made, in any order.

        Raises:
            FairnessError: a chunk is refused, has ended three processes, or the cluster cannot do the work.
        """
        if not isinstance(chunks.scorer, LazyScorer) or chunks.folder is None or len(missing) < 2:
            yield from HERE.score(chunks, missing, waiting)
            return
        join(self._settings)
        with _Pool(chunks.scorer, self._lake, waiting) as pool:
            yield from pool.score(chunks, missing)

    def examine(self, scorer: LazyScorer) -> dict[str, Any]:
        """The figures of the scorer's `examination`, found by a process of the cluster.

        Raises:
            FairnessError: the examination is refused, or the cluster cannot do the work.
        """
        join(self._settings)
        with _Pool(scorer, self._lake, lambda note: None) as pool:
            return pool.examine()


class _Refused(NamedTuple):
    """Why a process failed: its error, whether that is meant for users, and its traceback."""

    message: str
    expected: bool
    trace: str

    def error(self) -> Exception:
        if self.expected:
            return FairnessError(self.message)
        error = RuntimeError(self.message)
        error.add_note(f"On the Ray cluster:\n{self.trace}")
        return error


class _Scoring:
    """The actor: one scorer, which loads its model at its first chunk."""

    def __init__(self, scorer: LazyScorer, nonce_file: Path, variables: dict[str, str], files: Files | None) -> None:
        use_environment(variables)
        self._scorer, self._files = scorer, files
        self._visit = visit(nonce_file)
        self._limits = ExitStack()  # kept, as they end with the object
        self._limits.enter_context(one_thread())

    def visit(self) -> Visit:
        return self._visit

    def make(self, texts: pa.Array, check: Check, folder: Path, size: int, number: int) -> _Refused | None:
        return _refusal(lambda: Chunks(texts, self._scorer, check, folder, size).make(number), self._files)

    def examine(self) -> dict[str, Any] | _Refused:
        figures: dict[str, Any] = {}
        return _refusal(lambda: figures.update(self._scorer.examination()), self._files) or figures


def _refusal(work: Callable[[], object], files: Files | None) -> _Refused | None:
    """Does the work, which may open these files alone; returns the error that stopped it."""
    try:
        with only(files):  # it refuses at its end, too
            work()
    except FairnessError as error:
        return _Refused(str(error), True, "")
    except Exception as error:
        return _Refused(f"{type(error).__name__}: {error}", False, traceback.format_exc())
    return None


@dataclass
class _Member:
    """An actor, the reference of its greeting until that has come, and the numbers of its chunks by reference."""

    actor: Any
    greetings: list[Any]
    chunks: dict[Any, int] = field(default_factory=dict)


class _Pool:
    """The actors that score the chunks of one scorer; as a context manager it ends them."""

    def __init__(self, scorer: LazyScorer, lake: Path, waiting: Callable[[str], None]) -> None:
        self._scorer = scorer
        self._report_waiting = waiting
        self._deaths: Counter[int] = Counter()
        self._unread: Counter[int] = Counter()
        self._failed_starts = 0
        self._members: list[_Member] = []
        self._waiting: deque[int] = deque()
        self._last_progress = time.monotonic()
        self._environment = environment()
        self._nonce_file = nonce(lake)
        self._gpus = _gpus_of(scorer)
        self._actor_class = _actor(scorer, self._gpus)

    def __enter__(self) -> "_Pool":
        return self

    def __exit__(self, *error: object) -> None:
        for member in self._members:
            ray.kill(member.actor)
        self._nonce_file.unlink(missing_ok=True)

    def examine(self) -> dict[str, Any]:
        """The figures of the scorer's examination."""
        while not self._members or self._members[0].greetings:
            self._start(1)
            for ref in self._awaited():
                self._ended(self._member_of(ref), ref)
        try:
            result = ray.get(self._members[0].actor.examine.remote())
        except ray.exceptions.RayActorError as error:
            raise FairnessError(f"the process that examined the model ended ({reason(error)})") from None
        if isinstance(result, _Refused):
            raise result.error()
        figures: dict[str, Any] = result
        return figures

    def score(self, chunks: Chunks, missing: Sequence[int]) -> Iterator[tuple[int, pa.Table]]:
        """Yields each chunk as it is made."""
        self._chunks, left = chunks, len(missing)
        self._waiting = deque(missing)
        self._texts = ray.put(chunks.texts)  # sent once per node; the arguments of a chunk are small
        while left:
            self._start(left)
            self._hand_out()
            for ref in self._awaited():
                number = self._ended(self._member_of(ref), ref)
                part = None if number is None else chunks.kept(number)
                if number is not None and part is not None:
                    left -= 1
                    yield number, part
                elif number is not None:
                    self._again(number)

    def _member_of(self, ref: Any) -> "_Member":
        return next(member for member in self._members if ref in member.chunks or ref in member.greetings)

    def _awaited(self) -> list[Any]:
        """The next result of the actors, or none after a moment. Reports if no node is free; fails if none can be."""
        pending = [ref for member in self._members for ref in [*member.chunks, *member.greetings]]
        overdue = time.monotonic() - self._last_progress > _PATIENCE
        if not pending:
            if overdue:
                raise FairnessError(self._no_room())
            time.sleep(_WAIT)
            return []
        ready: list[Any] = ray.wait(pending, num_returns=1, timeout=_WAIT)[0]
        if ready or any(not member.greetings for member in self._members):
            self._last_progress = time.monotonic()
        elif overdue:
            self._report_waiting("waiting for free processors of the Ray cluster")
        return ready

    def _again(self, number: int) -> None:
        """Queues a chunk again whose file this process cannot read."""
        self._unread[number] += 1
        if self._unread[number] == _DEATHS:
            raise FairnessError(
                f"{self._chunks.folder}: files written there by the Ray cluster cannot be read by this process; let "
                "all nodes run as the same user, with the same folder mounted"
            )
        self._waiting.append(number)

    def _start(self, left: int) -> None:
        """Starts as many actors as the cluster holds, but no more than there are chunks."""
        for _ in range(min(self._room(), left) - len(self._members)):
            actor = self._actor_class.remote(self._scorer, self._nonce_file, self._environment, declared())
            self._members.append(_Member(actor, [actor.visit.remote()]))

    def _hand_out(self) -> None:
        for round_ in range(_IN_FLIGHT):
            for member in self._members:
                if self._waiting and not member.greetings and len(member.chunks) == round_:
                    number = self._waiting.popleft()
                    chunks = self._chunks
                    ref = member.actor.make.remote(self._texts, chunks.check, chunks.folder, chunks.size, number)
                    member.chunks[ref] = number

    def _ended(self, member: _Member, ref: Any) -> int | None:
        """The number of the chunk that was made; None if the actor greeted, or died."""
        try:
            result = ray.get(ref)
        except ray.exceptions.RayActorError as error:
            self._lost(member, error)
            return None
        if ref in member.greetings:
            check_visit(result)
            member.greetings.clear()
            self._failed_starts = 0
            return None
        number = member.chunks.pop(ref)
        if result is not None:
            raise result.error()
        return number

    def _lost(self, member: _Member, error: Exception) -> None:
        """Queues the chunks of a dead actor again; only the first, which it was scoring, can have killed it."""
        ray.kill(member.actor)  # if only the connection was lost, it may still write
        self._members.remove(member)
        numbers = list(member.chunks.values())
        self._waiting.extendleft(reversed(numbers))
        if member.greetings:
            self._failed_starts += 1
            if self._failed_starts == _DEATHS:
                raise FairnessError(f"processes on the Ray cluster end before they can work: {reason(error)}")
        for number in numbers[:1]:
            self._deaths[number] += 1
            if self._deaths[number] == _DEATHS:
                raise FairnessError(self._killing(number, error))

    def _killing(self, number: int, error: Exception) -> str:
        texts = self._chunks.texts_of(number)
        assert self._chunks.folder is not None
        path = self._chunks.folder / f"killing-{number:06d}.txt"
        path.write_text("\n".join(map(str, texts.to_pylist())), encoding="utf-8")
        return (
            f"{len(texts)} texts ended the process that scored them {_DEATHS} times ({reason(error)}), from "
            f"{texts[0].as_py()[:_SHOWN]!r} to {texts[-1].as_py()[:_SHOWN]!r}; all of them are in {path}. If memory "
            "ran out, make the model's batch smaller; all other scores are kept"
        )

    def _no_room(self) -> str:
        gpus = f" and {self._gpus:g} GPU" if self._gpus else ""
        return (
            f"no node of the Ray cluster has the {self._scorer.processors} processors{gpus} that the model's file "
            "asks for (threads, device); start one that has, or run with --engine embedded"
        )

    def _room(self) -> int:
        """The number of actors that the cluster's nodes could hold if nothing else ran there."""
        processors, gpus, room = self._scorer.processors, self._gpus, 0
        for node in nodes():
            resources = node["Resources"]
            room += math.floor(
                min(resources.get("CPU", 0) / processors, resources.get("GPU", 0) / gpus if gpus else math.inf)
            )
        return room


def _actor(scorer: LazyScorer, gpus: float) -> Any:
    """The class of the actors, with the resources that one takes. The pool handles deaths, so Ray restarts nothing."""
    return ray.remote(_Scoring).options(
        num_cpus=scorer.processors,
        num_gpus=gpus,
        max_restarts=0,
        max_task_retries=0,
        scheduling_strategy="SPREAD",
    )


def _gpus_of(scorer: LazyScorer) -> float:
    """The GPUs that a model takes: one, unless its file or the cluster has none."""
    if scorer.device == "auto":
        return float(any(node["Resources"].get("GPU", 0) for node in nodes()))
    return float(scorer.device == "cuda")
