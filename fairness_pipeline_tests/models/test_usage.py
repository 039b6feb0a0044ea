"""Tokens and costs of endpoints: what servers report, prices, and a budget that holds across processes."""

import json
import re
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.models import usage
from fairness_pipeline.project.project import Project
from fairness_pipeline_tests.cli.test_first_impression import quick
from fairness_pipeline_tests.commands import command, process
from fairness_pipeline_tests.conftest import write_yaml
from fairness_pipeline_tests.local_server import answer, serve

__all__ = ["quick"]
IN, OUT = 100, 20


def paid(asked: list[str], *, tells: bool = True) -> Callable[[BaseHTTPRequestHandler], None]:
    """An endpoint that reports the tokens of each answer, if it `tells`."""

    def handle(request: BaseHTTPRequestHandler) -> None:
        if request.command == "GET":
            answer(request, 200, b'{"data": [{"id": "bot"}]}')
            return
        body = json.loads(request.rfile.read(int(request.headers["Content-Length"])))
        asked.append(body["messages"][-1]["content"])
        reply = {"choices": [{"message": {"content": f"I see, {len(asked[-1]) % 7}"}}]}
        reported = {"usage": {"prompt_tokens": IN, "completion_tokens": OUT, "total_tokens": IN + OUT}} if tells else {}
        answer(request, 200, json.dumps(reply | reported).encode())

    return handle


def audit(address: str, *more: str) -> tuple[str, ...]:
    return ("audit", f"{address}/v1", "--name", "our-bot", "--dimension", "gender", *more)


@pytest.mark.verify
def test_used_tokens_are_reported_and_priced(quick: Project, data: Path) -> None:
    asked: list[str] = []
    with serve(paid(asked)) as address:
        result = command(*audit(address, "--workers", "1"))
        assert result.returncode == 0, result.stderr
        line = f"bot: {len(asked):,} replies took {IN * len(asked):,} tokens in and {OUT * len(asked):,} out"
        assert line in result.stdout and "about" not in result.stdout.split(line)[1].splitlines()[0]
        assert "tokens in" not in command(*audit(address, "--workers", "1")).stdout  # nothing was asked
        write_yaml(
            data / "prices.yaml", {"currency": "EUR", "per_million_tokens": {"bot": {"input": 1000, "output": 5000}}}
        )
        before = len(asked)
        result = command(*audit(address, "--workers", "1", "--ask-again"))  # of one dimension
        assert result.returncode == 0, result.stderr
        new = len(asked) - before
        assert f"about {new * (IN * 1000 + OUT * 5000) / 1e6:.2f} EUR" in result.stdout


def test_a_budget_stops_a_run_and_its_answers_stay(quick: Project, data: Path, tmp_path: Path) -> None:
    asked: list[str] = []
    with serve(paid(asked)) as address:
        refused = command(*audit(address, "--workers", "1", "--budget", "1"))
        assert refused.returncode == 1 and "the price of 'bot' is not known" in refused.stderr
        assert not asked
        write_yaml(data / "prices.yaml", {"per_million_tokens": {"bot": {"input": 1000, "output": 5000}}})
        price = (IN * 1000 + OUT * 5000) / 1e6
        files = ("--fail-on", "biased", "--junit", str(tmp_path / "v.xml"), "--summary", str(tmp_path / "v.md"))
        result = command(*audit(address, "--workers", "1", "--budget", str(40 * price), *files))
        assert result.returncode == 1
        summary = (tmp_path / "v.md").read_text(encoding="utf-8")
        assert "stays closed**, as it lacks verdicts" in summary and "of 8.00 are spent" in summary
        assert '<error message="not measured; --budget: ' in (tmp_path / "v.xml").read_text(encoding="utf-8")
        assert re.search(r"--budget: \d+\.\d\d USD of 8\.00 are spent; the answers are kept", result.stderr)
        assert 40 <= len(asked) <= 40 + 16  # answers in flight are still kept: 8 at first, 16 where that was faster
        first = list(asked)
        result = command(*audit(address, "--workers", "1", "--budget", "1000"))
        assert result.returncode == 0, result.stderr
        assert len(asked) == len(set(asked)) > 120  # nothing is paid for twice
        assert asked[: len(first)] == first
    refused = command("run", "--profile", "audit", "--budget", "1", "--engine", "ray", "--address", "local")
    assert refused.returncode == 1 and "--budget does not reach" in refused.stderr
    for wrong in ("0", "-1", "much", "inf", "nan"):
        assert command("run", "--budget", wrong).returncode == 2


@pytest.mark.verify
def test_the_budget_holds_in_other_processes(quick: Project, data: Path) -> None:
    asked: list[str] = []
    write_yaml(data / "prices.yaml", {"per_million_tokens": {"bot": {"input": 1000, "output": 5000}}})
    with serve(paid(asked)) as address:
        arguments = ("audit", f"{address}/v1", "--name", "our-bot", "--workers", "2", "--budget", "8")
        run = process(*arguments)
        output, errors = run.communicate(timeout=120)
        assert run.returncode == 1
        assert "of 8.00 are spent" in output + errors
        assert 40 <= len(asked) <= 40 + 2 * 8


@pytest.mark.verify
def test_a_budget_needs_a_server_that_reports_tokens(quick: Project, data: Path) -> None:
    asked: list[str] = []
    write_yaml(data / "prices.yaml", {"per_million_tokens": {"bot": {"input": 1, "output": 1}}})
    with serve(paid(asked, tells=False)) as address:
        result = command(*audit(address, "--workers", "1", "--budget", "1"))
        assert result.returncode == 1 and "does not say how many tokens 'bot' took" in result.stderr
        assert len(asked) <= 2 * 8  # two partitions ask
        assert command(*audit(address, "--workers", "1")).returncode == 0


def test_an_incomplete_line_is_not_read_yet(tmp_path: Path) -> None:
    path = tmp_path / usage.FILE
    line = json.dumps({"at": "x", "model": "m", "input": 3, "output": 4}) + "\n"
    path.write_text(line + "broken\n" + line + line[:10], encoding="utf-8")
    assert usage.used_since(path, 0) == [usage.Used("m", 2, 6, 8)]
    assert usage.used_since(path, len(line)) == [usage.Used("m", 1, 3, 4)]
    assert usage.used_since(tmp_path / "none", 0) == []


@pytest.mark.parametrize(
    "invalid",
    [
        {},
        {"usage": None},
        {"usage": {"prompt_tokens": "many"}},
        {"usage": {"prompt_tokens": -1}},
        None,
        {"usage": {"prompt_tokens": 5}},
        {"usage": {"prompt_tokens": 1e300, "completion_tokens": 1}},
    ],
)
def test_invalid_usage_is_not_noted(tmp_path: Path, invalid: dict | None) -> None:
    usage.note_in(tmp_path)
    usage.note("m", invalid)
    assert not (tmp_path / usage.FILE).exists()
    usage.note("m", {"usage": {"prompt_tokens": 5, "total_tokens": 5}})
    assert usage.used_since(tmp_path / usage.FILE, 0) == [usage.Used("m", 1, 5, 0)]


def test_wrong_prices_are_named(data: Path) -> None:
    write_yaml(data / "prices.yaml", {"per_million_tokens": {"m": {"input": -1, "output": 1}}})
    with pytest.raises(FairnessError, match="prices.yaml"):
        usage.prices()
