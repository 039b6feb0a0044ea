"""Joins a Ray cluster, and checks that its nodes can work on this lake."""

import logging
import os
import platform
import re
import socket
import uuid
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

import ray

from fairness_pipeline.engines.ray_head import asks_for_a_token, cluster_of_this_machine
from fairness_pipeline.engines.settings import AUTO, LOCAL, RaySettings
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.paths import cache_folder

_SECONDS = 5.0
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_PASSED_ON = ("FAIRNESS_", "HF_", "TRANSFORMERS_", "NLTK_")
_MACHINE_SPECIFIC = (
    "CONDA_", "CUDA_", "LD_", "MKL_", "NVIDIA_", "OMP_", "OPENBLAS_", "PYTHON", "RAY_", "SLURM_", "TMP", "VIRTUAL_ENV",
    "XDG_",
)  # fmt: skip
_SAME = ("fairness-pipeline", "ray", "torch", "transformers", "tokenizers", "numpy", "scipy", "pyarrow", "scikit-learn")


class Visit(NamedTuple):
    """The report of a process on a node: its versions, and the lake if it does not see that, else an empty string."""

    node: str
    versions: dict[str, str]
    unseen: str


def join(settings: RaySettings) -> None:
    """Joins the cluster, once per process.

    Raises:
        FairnessError: nothing answers at the address within five seconds, or the cluster has another version of Ray or
            Python.
    """
    if ray.is_initialized():
        return
    address = settings.address if settings.address == LOCAL else _answering(settings.address)
    # A process without a GPU of its own sees those of its node, for trainings; it is Ray's future default.
    gpu_visibility = {"RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}
    os.environ.update(gpu_visibility)
    options: dict[str, Any] = {"include_dashboard": False} if address == LOCAL else {}
    try:
        ray.init(
            address=address,
            runtime_env={"env_vars": gpu_visibility},
            log_to_driver=False,
            logging_level=logging.ERROR,
            configure_logging=False,
            **options,
        )
    except (RuntimeError, ConnectionError, ValueError) as error:
        if "ersion mismatch" in str(error):
            raise FairnessError(f"the Ray cluster at {address} has other versions than this process: {error}") from None
        raise FairnessError(
            f"the Ray cluster at {address} cannot be joined: {error}. This machine must be a node of it (ray start "
            f"--address={address}), with the head's token: RAY_AUTH_MODE=token, and RAY_AUTH_TOKEN or ~/.ray/auth_token"
        ) from None


def environment() -> dict[str, str]:
    """The variables that a process of the cluster needs: keys of endpoints, the database, this project's settings.

    They are passed as an argument, because Ray writes its `runtime_env` into files that everybody can read.
    """
    variables = {name: value for name, value in os.environ.items() if not name.startswith(_MACHINE_SPECIFIC)}
    paths = {
        name: str(Path(variables[name]).expanduser().resolve()) for name in ("FAIRNESS_DATA",) if variables.get(name)
    }
    return {**variables, **paths, "FAIRNESS_HOME": str(cache_folder().parent)}


def use_environment(given: dict[str, str]) -> None:
    """Sets the variables that `environment` gave elsewhere. Those that the node has stay, except `_PASSED_ON`."""
    for name, value in given.items():
        if name.startswith(_PASSED_ON) or name not in os.environ:
            os.environ[name] = value


def described() -> str:
    """The cluster that this process has joined, in words."""
    alive = nodes()
    gpus = sum(node["Resources"].get("GPU", 0) for node in alive)
    return (
        f"{ray.get_runtime_context().gcs_address}: {len(alive)} node{'s' * (len(alive) != 1)}, "
        f"{processors()} processors" + (f", {gpus:g} GPUs" if gpus else "")
    )


def nodes() -> list[dict[str, Any]]:
    """The nodes that are alive, as Ray describes them."""
    all_nodes: list[dict[str, Any]] = ray.nodes()  # type: ignore[no-untyped-call]
    return [node for node in all_nodes if node["Alive"]]


def processors() -> int:
    """The processors of all nodes together, at least 1."""
    return max(1, int(sum(node["Resources"].get("CPU", 0) for node in nodes())))


def nonce(lake: Path) -> Path:
    """Creates a file in the lake, which a node that sees the lake can read. The caller deletes it.

    Raises:
        FairnessError: the lake cannot be written.
    """
    folder = lake / "locks"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / f".seen-by-{socket.gethostname()}-{uuid.uuid4().hex}"
        file.write_text(file.name, encoding="ascii")
    except OSError as error:
        raise FairnessError(f"{folder}: cannot be written: {error.strerror}") from None
    return file


def visit(seen: Path) -> Visit:
    """Reports the versions of this process on a node, and whether it sees the file that the driver wrote."""
    try:
        visible = seen.read_text(encoding="ascii") == seen.name
    except (OSError, UnicodeDecodeError):
        visible = False
    return Visit(socket.gethostname(), versions(), "" if visible else str(seen.parent.parent))


@cache
def versions() -> dict[str, str]:
    """The versions that must be the same on all nodes, so that results are the same to the byte."""
    versions_by_name = {"python": platform.python_version()}
    for name in _SAME:
        try:
            versions_by_name[name] = version(name)
        except PackageNotFoundError:
            versions_by_name[name] = "missing"
    return versions_by_name


def check_visit(visited: Visit) -> None:
    """Raises FairnessError if the node does not see the lake, or has other versions than this process."""
    if visited.unseen:
        raise FairnessError(
            f"the node {visited.node} does not see the lake {visited.unseen}: mount the shared folder there at the "
            "same path, or start the nodes where it is mounted"
        )
    here = versions()
    if differs := [name for name, value in visited.versions.items() if value != here[name]]:
        differences = ", ".join(f"{name} {visited.versions[name]} (here {here[name]})" for name in differs)
        raise FairnessError(f"the node {visited.node} has other versions: {differences}; install the same on all nodes")


def reason(error: Exception) -> str:
    """Why a process of the cluster ended: the first line of Ray's message, or the error at its end."""
    lines = [_COLOUR.sub("", line).strip() for line in str(error).splitlines()]
    lines = [line for line in lines if line] or [type(error).__name__]
    return lines[-1 if "Traceback" in str(error) or "creation task" in lines[0] else 0].rstrip(".:")


def _answering(address: str) -> str:
    """The address of the cluster's head, after checking that it answers."""
    head = address
    if address == AUTO:
        head = cluster_of_this_machine()
        if not head:
            raise FairnessError(
                "engine.ray.address: auto: no Ray cluster runs on this machine; start one (ray start --head), give "
                "host:port of its head, or 'local' for one that this command starts"
            )
    host, _, port = head.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_SECONDS).close()
    except (OSError, ValueError) as error:
        raise FairnessError(
            f"no Ray cluster answers at {head} ({getattr(error, 'strerror', None) or error}); start one there "
            "(ray start --head), or give the address of one that runs"
        ) from None
    if os.environ.get("RAY_USE_TLS", "0") == "0" and asks_for_a_token(head, _SECONDS) is None:
        raise FairnessError(
            f"what answers at {head} is no head of a Ray cluster; its port is that of `ray start --head --port` (6379 "
            "unless it is named), not that of Ray's client (10001) or dashboard (8265)"
        )
    return head
