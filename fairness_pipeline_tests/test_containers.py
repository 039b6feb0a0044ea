"""Checks the files for containers: Dockerfile, docker-compose.yaml and docs/helm-values.yaml.

No test needs Docker or Kubernetes. What was checked once, by hand, when the files were written:

- docker-compose.yaml against the JSON schema of the Compose specification;
- docs/helm-values.yaml by rendering a copy of Dagster's chart with it (`helm template`, which checks the chart's own schema),
  the result against the schemas of Kubernetes 1.33, and the dagster.yaml in it with Dagster's own check of settings;
- how a node joins Ray with the token, and is refused with another, with Ray's own processes on one machine;
- that pip finds all libraries of the image as wheels, and that the wheel of the package is made from what is copied.

The image was not built, and no container has run.
"""

import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import cache
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from fairness_pipeline import __version__
from fairness_pipeline.cli import _parser
from fairness_pipeline.project.project import Project
from fairness_pipeline_tests import postgres_server
from fairness_pipeline_tests.defs.test_ui import Ui, wait

ROOT = Path(__file__).parents[1]
COMPOSE, HELM, DOCKERFILE = (ROOT / name for name in ("docker-compose.yaml", "docs/helm-values.yaml", "Dockerfile"))
FILES = (COMPOSE, HELM, DOCKERFILE)
GIVEN = {"POSTGRES_PASSWORD": "given", "RAY_AUTH_TOKEN": "given"}
"""The variables that must be exported before `docker compose up`."""
_VARIABLE = re.compile(r"\$(?:(?P<dollar>\$)|\{(?P<name>\w+)(?::(?P<sign>[-?])(?P<text>[^}]*))?\})")
_PATIENCE = 120.0


def text_of(file: Path) -> str:
    """The text of a file."""
    return file.read_text(encoding="utf-8")


def compose(variables: Mapping[str, str] = GIVEN) -> Any:
    """docker-compose.yaml as Compose reads it with these variables in the environment."""
    return interpolated(yaml.safe_load(text_of(COMPOSE)), variables)


def services() -> dict[str, Any]:
    """The services of docker-compose.yaml by their names."""
    return dict(compose()["services"])


def interpolated(value: Any, variables: Mapping[str, str]) -> Any:
    """The value with variables filled in as Compose does: `${NAME}`, `${NAME:-default}`, `${NAME:?error}`, `$$`."""
    if isinstance(value, dict):
        return {key: interpolated(child, variables) for key, child in value.items()}
    if isinstance(value, list):
        return [interpolated(child, variables) for child in value]
    return _VARIABLE.sub(lambda match: _filled(match, variables), value) if isinstance(value, str) else value


def _filled(match: re.Match[str], variables: Mapping[str, str]) -> str:
    """The replacement of one variable."""
    if match["dollar"]:
        return "$"
    if variables.get(match["name"]):
        return variables[match["name"]]
    if match["sign"] == "?":
        raise KeyError(f"{match['name']}: {match['text']}")
    return match["text"] or ""


def texts(value: Any) -> Iterator[str]:
    """All texts in a document, at any depth."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, (dict, list)):
        for child in value.values() if isinstance(value, dict) else value:
            yield from texts(child)


def settings(value: Any) -> Iterator[tuple[str, Any]]:
    """All keys that hold a single value, with that value, at any depth."""
    if isinstance(value, dict):
        for key, child in value.items():
            yield from settings(child) if isinstance(child, (dict, list)) else [(str(key), child)]
    elif isinstance(value, list):
        for child in value:
            yield from settings(child)


def calls() -> Iterator[list[str]]:
    """Every command line of our image: commands, checks of health, and the code server of the chart."""
    for service in services().values():
        if "build" in service:
            yield service["command"]
            yield from (words for words in [check_of_health(service)] if words)
    yield code_server_of_the_chart()


def check_of_health(service: Mapping[str, Any]) -> list[str]:
    """The words of a service's health check; of a shell's, those of its first command."""
    kind, *words = service.get("healthcheck", {}).get("test", ["NONE"])
    return shlex.split(words[0].split("&&")[0]) if kind == "CMD-SHELL" else words


def code_server_of_the_chart() -> list[str]:
    """The command that Dagster's chart makes of the values."""
    (deployment,) = yaml.safe_load(text_of(HELM))["dagster-user-deployments"]["deployments"]
    port = str(deployment["port"])
    return ["dagster", "code-server", "start", "-h", "0.0.0.0", "-p", port, *deployment["codeServerArgs"]]


def pins() -> dict[str, str]:
    """The versions of constraints.txt."""
    matches = re.findall(r"^([\w.-]+)==(\S+)$", text_of(ROOT / "constraints.txt"), re.MULTILINE)
    return {name.lower(): version for name, version in matches}


@cache
def variables_of_the_package() -> set[str]:
    """Every environment variable FAIRNESS_... that the package's source names."""
    source = "".join(map(text_of, (ROOT / "fairness_pipeline").rglob("*.py")))
    return set(re.findall(r"""["'](FAIRNESS_[A-Z_]+)["']""", source))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_the_package_reads_every_variable_that_is_set_for_it(file: Path) -> None:
    """A misspelt variable would be ignored silently."""
    named = set(re.findall(r"\bFAIRNESS_[A-Z_]+", text_of(file)))
    assert named
    assert named <= variables_of_the_package()


def test_missing_secrets_are_named() -> None:
    """Compose must stop instead of going on with an empty password."""
    for name in GIVEN:
        with pytest.raises(KeyError, match=f"{name}: export {name}"):
            compose({key: value for key, value in GIVEN.items() if key != name})


@pytest.mark.parametrize("file", (COMPOSE, HELM), ids=lambda file: file.name)
def test_the_files_hold_no_secret(file: Path) -> None:
    """Secrets come from the environment or from a secret of Kubernetes; examples say PASSWORD."""
    for key, value in settings(yaml.safe_load(text_of(file))):
        if re.search(r"(?i)(password|token)$", key):
            assert str(value).startswith("${"), key
    for password in re.findall(r"://\w+:([^@\n]+)@", text_of(file)):
        assert password.startswith("${") or password == "PASSWORD"


def test_services_refer_only_to_what_exists() -> None:
    """Services, volumes, configurations and checks of health that others rely on."""
    whole = compose()
    for service in whole["services"].values():
        assert service.get("depends_on", {}).keys() <= whole["services"].keys()
        for mount in service.get("volumes", []):
            source = mount.split(":")[0]
            assert source in whole["volumes"] or (ROOT / source).is_dir()
        for used in service.get("configs", []):
            assert used["source"] in whole["configs"]
            assert used["target"] in service["command"]
        for name, needed in service.get("depends_on", {}).items():
            if needed["condition"] == "service_healthy":
                assert "healthcheck" in whole["services"][name]


def test_services_are_addressed_where_they_listen() -> None:
    """Hosts, ports and the code location's name, which several places repeat."""
    listening = {"database": "5432", "definitions": "4000", "ray-head": "6379"}
    assert {"4000"} < set(services()["definitions"]["command"])
    assert {"--port=6379"} < set(services()["ray-head"]["command"])
    addressed = {match for text in texts(compose()) for match in re.findall(r"([a-z-]+):(\d{4})\b", text)}
    assert addressed == set(listening.items())
    (server,) = yaml.safe_load(compose()["configs"]["workspace"]["content"])["load_from"]
    grpc_server = server["grpc_server"]
    assert (grpc_server["host"], str(grpc_server["port"])) == ("definitions", listening["definitions"])
    assert grpc_server["location_name"] == option(services()["webserver"]["command"], "--location")
    assert grpc_server["location_name"] == option(services()["definitions"]["command"], "--location-name")


def option(words: list[str], name: str) -> str:
    """The value of an option."""
    return words[words.index(name) + 1]


def test_ray_has_the_lake_everywhere_and_the_web_server_is_for_this_machine_only() -> None:
    """A node without the lake is refused, and nobody else may reach a server without passwords."""
    ours = {name: service for name, service in services().items() if "build" in service}
    assert all("lake:/lake" in service["volumes"] for service in ours.values())
    assert len({str(service["environment"]) for service in ours.values()}) == 1
    assert all(
        address.startswith("127.0.0.1:") for service in services().values() for address in service.get("ports", [])
    )


def test_images_have_versions() -> None:
    """No image is unpinned; ours and Dagster's have the project's versions."""
    helm = yaml.safe_load(text_of(HELM))
    images = [service["image"] for service in services().values()]
    images += [f"{entry['repository']}:{entry['tag']}" for entry in images_in(helm)]
    images += re.findall(r"^ARG PYTHON_IMAGE=(\S+)", text_of(DOCKERFILE), re.MULTILINE)
    for image in images:
        name, _, tag = image.rpartition(":")
        assert name and re.match(r"\d", tag), image
        if name.endswith("fairness-pipeline"):
            assert tag == __version__
        if "dagster" in name:
            assert tag == pins()["dagster"]
    assert f"--version {pins()['dagster']} " in text_of(HELM)
    for file in (COMPOSE, DOCKERFILE):
        assert set(re.findall(r"fairness-pipeline:(\S+)", text_of(file))) == {__version__}


def images_in(value: Any) -> Iterator[dict[str, str]]:
    """Everything under a key `image`, at any depth."""
    if isinstance(value, dict):
        for key, child in value.items():
            yield from [child] if key == "image" else images_in(child)
    elif isinstance(value, list):
        for child in value:
            yield from images_in(child)


def test_the_image_has_the_versions_of_the_tests() -> None:
    """The Dockerfile's own pin is that of constraints.txt; all others come with hashes."""
    assert set(re.findall(r"\b([\w.-]+)==([\w.]+)", text_of(DOCKERFILE))) == {("torch", pins()["torch"])}
    installs = re.findall(r"pip install ([^;&\\\n]*)", text_of(DOCKERFILE))
    assert [install for install in installs if "--require-hashes" not in install] == [
        "torch==2.13.0",
        "--no-deps /wheels/*.whl ",
    ]


def test_the_image_copies_what_the_wheel_needs() -> None:
    """The Dockerfile copies what the wheel needs."""
    wheel = tomllib.loads(text_of(ROOT / "pyproject.toml"))["tool"]["hatch"]["build"]["targets"]["wheel"]
    copied = {
        name
        for line in re.findall(r"^COPY (?!--from)(.*)$", text_of(DOCKERFILE), re.MULTILINE)
        for name in line.split()[:-1]
    }
    ignored = set(text_of(ROOT / ".dockerignore").split())
    assert all((ROOT / name).exists() for name in copied)
    assert not copied & ignored
    assert {name.split("/")[0] for name in [*wheel["packages"], *wheel["force-include"]]} <= copied
    assert {"data/lake", ".venv", ".git", ".env"} <= ignored
    assert not set(wheel["force-include"]) & ignored


def test_modules_that_commands_name_can_be_found() -> None:
    """Modules that are started by name."""
    named = {word for words in calls() for before, word in pairwise(words) if is_module(before)}
    assert {"fairness_pipeline.definitions", "fairness_pipeline.defs.webserver", "dagster._daemon"} == named
    assert all(find_spec(name) for name in named)


def is_module(option: str) -> bool:
    """Whether what follows is the name of a module."""
    return option in ("-m", "--module-name")


def test_programs_accept_their_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    """The programs' own parsers accept the words of each command."""
    for words in calls():
        program, *rest = words
        if program == "fairness-pipeline":
            if rest != ["--help"]:
                assert _parser().parse_args(rest).sync
        elif program in ("dagster", "dagster-daemon"):
            check_call_of_dagster(program, rest)
        elif program == "python" and rest[:2] == ["-m", "dagster._daemon"]:
            check_call_of_dagster("dagster-daemon", rest[2:])
        elif program == "python" and rest[0] == "-m":
            assert served_by_our_web_server(rest[2:], monkeypatch) == ("definitions", 4000, None, "fairness_pipeline")
        elif program == "python":
            compile(rest[1], "<healthcheck>", "exec")
        else:
            assert program == "ray"


def check_call_of_dagster(program: str, words: list[str]) -> None:
    """Parses the words with click as the program would, which raises an error for an unknown option."""
    from dagster._cli import create_dagster_cli
    from dagster._daemon.cli import create_dagster_daemon_cli

    command: click.Command = create_dagster_cli() if program == "dagster" else create_dagster_daemon_cli()
    context = click.Context(command)
    while isinstance(command, click.Group):
        command, words = command.commands[words[0]], words[1:]
        context = click.Context(command, context)
    command.make_parser(context).parse_args(list(words))


class _Served(Exception):
    """Holds what the web server would serve."""


def served_by_our_web_server(words: list[str], patch: pytest.MonkeyPatch) -> tuple[Any, ...]:
    """The arguments with which the web server would load its definitions."""
    from fairness_pipeline.defs import webserver

    def stop(*arguments: Any) -> None:
        raise _Served(*arguments)

    patch.setattr(webserver, "GrpcServerTarget", stop)
    patch.setattr(sys, "argv", ["webserver", *words])
    with pytest.raises(_Served) as served:
        webserver.main()
    return served.value.args


@pytest.mark.verify
def test_ray_takes_its_options() -> None:
    """Apart from the other commands, since importing Ray takes long."""
    from ray.scripts.scripts import cli

    for words in calls():
        if words[0] == "ray":
            command = cli.commands[words[1]]
            command.make_parser(click.Context(command)).parse_args(words[2:])


def free_port() -> str:
    """A port on which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        return str(free.getsockname()[1])


class Stack:
    """The services of docker-compose.yaml as processes of this machine, without containers and without Ray.

    Args:
        project: The profile.
        database: The address of an empty database.
        folder: For the file that Compose would mount, and the output of processes.
    """

    def __init__(self, project: Project, database: str, folder: Path) -> None:
        self.ports = {"4000": free_port(), "3000": free_port()}
        self._folder = folder
        self._whole = compose(GIVEN | {"FAIRNESS_PROFILE": project.name})
        workspace = yaml.safe_load(self._whole["configs"]["workspace"]["content"])
        workspace["load_from"][0]["grpc_server"].update(host="127.0.0.1", port=int(self.ports["4000"]))
        self._workspace = folder / "workspace.yaml"
        self._workspace.write_text(yaml.safe_dump(workspace), encoding="utf-8")
        variables = self._whole["services"]["daemon"]["environment"]
        lake = {name: value.replace("/lake", os.environ["FAIRNESS_HOME"]) for name, value in variables.items()}
        self._environment = (
            os.environ
            | {name: value for name, value in lake.items() if not name.startswith("RAY_")}
            | {"FAIRNESS_DATA": os.environ["FAIRNESS_DATA"], "FAIRNESS_POSTGRES": database}
            | {"FAIRNESS_ENGINE": "embedded", "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
        )

    def call(self, service: str) -> subprocess.Popen[bytes]:
        """Starts a service in a new session."""
        definition = self._whole["services"][service]
        with (self._folder / f"{service}.txt").open("ab") as log:
            return subprocess.Popen(
                [*definition.get("entrypoint", []), *map(self._here, definition["command"])],
                env=self._environment, cwd=self._folder, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip

    def is_healthy(self, service: str) -> bool:
        """Whether a service passes its health check."""
        words = [self._here(word) for word in check_of_health(self._whole["services"][service])]
        with (self._folder / "health.txt").open("ab") as log:
            done = subprocess.run(words, env=self._environment, cwd=self._folder, stdout=log, stderr=log, check=False)
        return done.returncode == 0

    def output_of(self, service: str) -> str:
        """The output of a service."""
        return (self._folder / f"{service}.txt").read_text(encoding="utf-8", errors="replace")

    @contextmanager
    def running(self, service: str) -> Iterator[None]:
        """Runs a service, waits until it is healthy, and ends it as Docker does."""
        process = self.call(service)
        try:
            wait(lambda: self._is_up(service, process))
            yield
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(60)
                self._wait_for_the_end_of_all(process.pid)
            finally:
                if _lives(process.pid):
                    os.killpg(process.pid, signal.SIGKILL)

    def _is_up(self, service: str, process: "subprocess.Popen[bytes]") -> bool:
        """Whether a service is healthy; fails if it has ended."""
        assert process.poll() is None, self.output_of(service)
        return self.is_healthy(service)

    def _wait_for_the_end_of_all(self, group: int) -> None:
        """Waits until all processes that a service started have ended."""
        deadline = time.monotonic() + _PATIENCE
        while _lives(group):
            assert time.monotonic() < deadline, "a process has not ended"
            time.sleep(0.2)

    def _here(self, word: str) -> str:
        """Replaces hosts, ports and paths in a word of a command by those of this machine."""
        for inside, outside in self.ports.items():
            word = re.sub(rf"\b{inside}\b", outside, word)
        word = re.sub("^definitions:", "127.0.0.1:", word.replace("0.0.0.0", "127.0.0.1"))
        return str(self._workspace) if word == "/etc/fairness/workspace.yaml" else word


def _lives(group: int) -> bool:
    """Whether a process of the group is left."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.verify
def test_the_services_work_together(tiny: Project, tmp_path: Path) -> None:
    """Starts what Compose would, in its order: the assets are listed, a partition is made, and all ends on SIGTERM."""
    (tiny.workspace / "dagster" / "dagster.yaml").unlink()  # so that it is made for Postgres
    folder = tmp_path / "container"
    folder.mkdir()
    with postgres_server.started() as server:
        stack = Stack(tiny, server.database(), folder)
        prepare = stack.call("prepare")
        assert prepare.wait(_PATIENCE) == 0, stack.output_of("prepare")
        made = yaml.safe_load((tiny.workspace / "dagster" / "dagster.yaml").read_text(encoding="utf-8"))
        assert made["storage"]["postgres"]["postgres_url"] == {"env": "FAIRNESS_POSTGRES"}
        with ExitStack() as running:
            for service in ("definitions", "webserver", "daemon"):
                running.enter_context(stack.running(service))
            ui = Ui(int(stack.ports["3000"]))
            nodes = ui.ask("{ assetNodes { assetKey { path } } }")["assetNodes"]
            assert ["twitter_dialogues"] in [node["assetKey"]["path"] for node in nodes]
            backfill = ui.backfill("twitter_dialogues", "tiny")
            wait(lambda: ui.backfill_status(backfill) == "COMPLETED_SUCCESS")
            run = ui.run_of(backfill)
            assert run is not None and run["status"] == "SUCCESS"
            assert list((tiny.workspace / "tables" / "twitter_dialogues").rglob("*.parquet"))
