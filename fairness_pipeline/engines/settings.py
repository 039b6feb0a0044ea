"""Chooses the engine of a profile. The engine changes where results are made, never what they are."""

import os
import re
import sys
from importlib.util import find_spec
from pathlib import Path

import pydantic

from fairness_pipeline.engines.ray_head import asks_for_a_token, cluster_of_this_machine
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.yaml_files import Positive, Specification

ENGINE = "FAIRNESS_ENGINE"
"""The environment variable that names an engine, `embedded` or `ray`; it overrides the profile."""
ADDRESS = "FAIRNESS_RAY_ADDRESS"
"""The environment variable with the address of a Ray cluster; it overrides the profile."""
ENGINES = ("embedded", "ray")
AUTO, LOCAL = "auto", "local"
_SECONDS = 2.0
"""How long to wait for a head that may not exist."""
_HOST_AND_PORT = re.compile(r"[A-Za-z0-9_.-]+:[0-9]{1,5}|\[[0-9A-Fa-f:]+\]:[0-9]{1,5}")


class RaySettings(Specification):
    """A Ray cluster."""

    address: str = AUTO
    """`auto` (the cluster that this machine belongs to), `local` (one for each command), or host:port of its head."""
    workers: Positive | None = None
    """The number of partitions made in parallel; by default that of the cluster's processors."""

    @pydantic.field_validator("address")
    @classmethod
    def _is_an_address(cls, address: str) -> str:
        return checked_address(address)


class EngineSettings(Specification):
    """The engine; without `ray`, this machine."""

    ray: RaySettings | None = None
    """A Ray cluster."""


def checked_address(address: str) -> str:
    """The address; raises ValueError, for pydantic and argparse, if it cannot be one."""
    if address.startswith("ray://"):
        raise ValueError(
            f"'{address}' is an address for Ray Client, which is not supported; run this command on a machine of the "
            "cluster with host:port of the head (by default port 6379)"
        )
    host_and_port = _HOST_AND_PORT.fullmatch(address) and int(address.rpartition(":")[2]) < 1 << 16
    if address not in (AUTO, LOCAL) and not host_and_port:
        raise ValueError(f"expected {AUTO}, {LOCAL} or host:port, found '{address}'")
    return address


def ray_of(settings: EngineSettings) -> RaySettings | None:
    """The Ray cluster to run on; None for this machine. The environment overrides the profile.

    Raises:
        FairnessError: a variable of the environment is wrong, or Ray is not installed.
    """
    engine, address = os.environ.get(ENGINE), os.environ.get(ADDRESS)
    if engine and engine not in ENGINES:
        raise FairnessError(f"{ENGINE}: expected {' or '.join(ENGINES)}, found '{engine}'")
    if engine == "embedded" or not (settings.ray or engine):
        return None
    if find_spec("ray") is None:
        raise FairnessError("the engine 'ray' is not installed; run: pip install 'fairness-pipeline[ray]'")
    cluster = settings.ray or RaySettings()
    try:
        cluster = cluster.model_copy(update={"address": checked_address(address)}) if address else cluster
    except ValueError as error:
        raise FairnessError(f"{ADDRESS}: {error}") from None
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    if "ray" not in sys.modules and "RAY_AUTH_MODE" not in os.environ:
        _use_token(cluster.address)
    return cluster


def _use_token(address: str) -> None:
    """Lets Ray use the token that this user has, as `ray start` does; Ray reads the mode once, when it is imported.

    It is not used for a cluster that asks for none, whose processes could not call back one that does.
    """
    token = os.environ.get("RAY_AUTH_TOKEN") or os.environ.get("RAY_AUTH_TOKEN_PATH")
    if not token and not (Path.home() / ".ray" / "auth_token").is_file():
        return
    head = "" if address == LOCAL else cluster_of_this_machine() if address == AUTO else address
    if not head or os.environ.get("RAY_USE_TLS", "0") != "0" or asks_for_a_token(head, _SECONDS) is not False:
        os.environ["RAY_AUTH_MODE"] = "token"
