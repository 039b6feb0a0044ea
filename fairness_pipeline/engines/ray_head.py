"""Queries the head of a Ray cluster without importing Ray, which reads the settings of its token only at import."""

import os
import tempfile
from pathlib import Path

_ALIVE = "/ray.rpc.NodeInfoGcsService/CheckAlive"
_CURRENT = Path(tempfile.gettempdir()) / "ray" / "ray_current_cluster"
"""The file to which `ray start` writes the address of the cluster that runs on this machine."""


def cluster_of_this_machine() -> str:
    """The address of the cluster that runs on this machine; empty if there is none."""
    address = os.environ.get("RAY_ADDRESS", "")
    return (address if ":" in address else "") or (_CURRENT.read_text().strip() if _CURRENT.is_file() else "")


def asks_for_a_token(address: str, seconds: float) -> bool | None:
    """Whether a head asks for a token; None if nothing answers, or something other than a head.

    Args:
        address: host:port.
        seconds: How long to wait.
    """
    import grpc  # type: ignore[import-untyped]

    with grpc.insecure_channel(address, [("grpc.enable_http_proxy", 0)]) as channel:
        try:
            grpc.channel_ready_future(channel).result(seconds)
            channel.unary_unary(_ALIVE)(b"", timeout=seconds)
        except grpc.FutureTimeoutError:
            return None
        except grpc.RpcError as error:
            return None if error.code() == grpc.StatusCode.UNIMPLEMENTED else True
    return False
