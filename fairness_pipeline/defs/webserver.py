"""Dagster's web server with a guard in front of it; `fairness-pipeline ui` starts it."""

import argparse
import socket

import dagster as dg
import uvicorn
from dagster_webserver.app import create_app_from_workspace_process_context
from starlette.applications import Starlette

from fairness_pipeline.defs.dagster_internals import GrpcServerTarget, WorkspaceProcessContext
from fairness_pipeline.defs.guard import Guard


def guarded_app(context: WorkspaceProcessContext, hosts: list[str]) -> Starlette:
    """Dagster's application behind a guard.

    Args:
        context: What Dagster serves.
        hosts: Further names under which the server may be reached.
    """
    app = create_app_from_workspace_process_context(context)
    app.add_middleware(Guard, hosts=["localhost", socket.gethostname(), socket.getfqdn(), *hosts])
    return app


def main() -> None:
    """Serves until it is ended."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--host", required=True)
    parser.add_argument("--port", type=int, required=True)
    definitions = parser.add_mutually_exclusive_group(required=True)
    definitions.add_argument("--socket", help="of the server with the definitions")
    definitions.add_argument("--server", metavar="HOST:PORT", help="of that server, where it is on another machine")
    parser.add_argument("--location", required=True, help="the name of the code location")
    parser.add_argument("--read-only", action="store_true")
    parser.add_argument("--trusted-host", action="append", default=[])
    arguments = parser.parse_args()
    host, _, port = (arguments.server or "localhost:").rpartition(":")
    target = GrpcServerTarget(host, int(port) if port else None, arguments.socket, arguments.location)
    with (
        dg.DagsterInstance.get() as instance,
        WorkspaceProcessContext(instance, target, version=dg.__version__, read_only=arguments.read_only) as context,
    ):
        app = guarded_app(context, [arguments.host, *arguments.trusted_host])
        uvicorn.run(app, host=arguments.host, port=arguments.port, log_level="warning")


if __name__ == "__main__":
    main()
