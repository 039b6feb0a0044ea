"""Measured and guessed durations, forecasts, and the order of steps that follows."""

import json
from pathlib import Path

import pytest

from fairness_pipeline.foundation.paths import data_file
from fairness_pipeline.lineage import durations
from fairness_pipeline.lineage.durations import Durations, Forecast
from fairness_pipeline.lineage.lineage import Lineage
from fairness_pipeline.lineage.plan import Plan, Selection
from fairness_pipeline.project.project import Project
from fairness_pipeline_tests.defs.test_workers import Recorder


def test_measured_durations_go_before_guessed_ones(tmp_path: Path) -> None:
    recorded = Durations(tmp_path)
    assert recorded.expected(("a", "x"), trains=False) < recorded.expected(("a", "x"), trains=True)
    recorded.note(("a", "x"), 3.0)
    recorded.note(("a", "y"), 0.0)
    recorded.save()
    loaded = Durations(tmp_path)
    assert [loaded.expected(("a", name), trains=True) for name in "xyz"] == [3.0, 0.0, 1.5]


@pytest.mark.parametrize(
    "content",
    ["", "[]", '{"a": 1}', '{"a": {"x": "long"}}', "\x00", '{"a": ' * 200_000, f'{{"a": {{"x": 1{"0" * 400}}}}}'],
)
def test_a_malformed_file_of_durations_is_ignored(tmp_path: Path, content: str) -> None:
    (tmp_path / "durations.json").write_text(content)
    assert Durations(tmp_path).expected(("a", "x"), trains=False) == Durations(tmp_path / "none").expected(
        ("a", "x"), trains=False
    )


def test_steps_that_were_never_run_here_take_the_samples_durations(tmp_path: Path) -> None:
    recorded = Durations(tmp_path)
    assert recorded.expected(("dialogue_models", "x"), trains=True) > 10 * recorded.expected(
        ("sentiment", "x"), trains=False
    )
    assets = Lineage(Project("sample")).assets
    assert set(json.loads(data_file("durations.json").read_bytes())) <= set(assets)


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, in seconds; tests move it."""
    time = [0.0]
    monkeypatch.setattr(durations.time, "monotonic", lambda: time[0])
    return time


def test_a_forecast_scales_expected_by_measured_durations(now: list[float]) -> None:
    steps = {("a", "x"): 60.0, ("a", "y"): 300.0, ("a", "z"): 60.0}
    forecast = Forecast(steps, steps, workers=2)
    forecast.began(("a", "x"))
    now[0] = 5.0
    assert forecast.seconds_left() is None  # too early
    now[0] = 30.0
    assert forecast.seconds_left() == 300  # as long as the longest step, however many workers there are
    forecast.ended(("a", "x"), 120.0)
    now[0] = 120.0
    forecast.began(("a", "y"))
    forecast.began(("a", "z"))
    assert forecast.seconds_left() == 1.5 * 300
    forecast.ended(("a", "y"), None)
    forecast.ended(("a", "z"), 1.0)
    assert forecast.seconds_left() == 0


def test_a_chain_is_no_shorter_for_many_workers(now: list[float]) -> None:
    steps = [("a", str(number)) for number in range(10)]
    chain = {step: 100.0 * (10 - number) for number, step in enumerate(steps)}
    forecast = Forecast(dict.fromkeys(steps, 100.0), chain, workers=16)
    forecast.began(steps[0])
    now[0] = 50.0
    assert forecast.seconds_left() == 950
    now[0] = 100.0
    forecast.ended(steps[0], 100.0)
    assert forecast.seconds_left() == 900
    for step in steps[1:6]:
        forecast.ended(step, None)  # skipped: that says nothing about the others' durations
    assert forecast.seconds_left() == 400
    independent = Forecast(dict.fromkeys(steps, 100.0), dict.fromkeys(steps, 100.0), workers=4)
    now[0] += 100
    assert independent.seconds_left() == 250


def test_the_pace_of_a_running_step_goes_before_its_expected_duration(now: list[float]) -> None:
    forecast = Forecast({("a", "x"): 50.0}, {("a", "x"): 50.0}, workers=2)
    forecast.began(("a", "x"))
    now[0] = 10.0
    forecast.progressed(("a", "x"), 0.40)  # it resumes after a kill
    now[0] = 40.0
    forecast.progressed(("a", "x"), 0.41)
    assert forecast.seconds_left() == 10  # a hundredth is too little to tell the pace
    now[0] = 110.0
    forecast.progressed(("a", "x"), 0.50)
    assert forecast.seconds_left() == pytest.approx(500)  # a thousandth a second
    now[0] = 120.0
    assert forecast.seconds_left() == pytest.approx(490)
    now[0] = 610.0
    forecast.progressed(("a", "x"), 1.0)
    assert forecast.seconds_left() == 0
    now[0] = 620.0
    forecast.progressed(("a", "x"), 0.0)  # another phase
    now[0] = 622.0
    forecast.progressed(("a", "x"), 0.5)
    assert forecast.seconds_left() == pytest.approx(2)


def test_steps_that_took_longer_begin_first(tiny: Project) -> None:
    def order() -> list[tuple[str, ...]]:
        workers = Recorder(1)
        list(Plan(Lineage(tiny), Selection()).run(workers, lambda step: None))
        return workers.begun

    def first(seconds: dict[str, float]) -> str:
        recorded = Durations(tiny.workspace)
        for name, value in seconds.items():
            recorded.note(("contexts", f"corpus=tiny/dimension={name}"), value)
        recorded.save()
        return next(begun[-1] for begun in order() if begun[0] == "contexts")

    tiny.workspace.mkdir(parents=True, exist_ok=True)
    assert first({"gender": 1.0, "dialect": 50.0}) == "dialect"
    assert first({"gender": 50.0, "dialect": 1.0}) == "gender"
