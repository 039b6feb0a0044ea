"""Two runs beside each other: pairs are known by what they were asked, and a baseline is what was signed."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.project.project import Project
from fairness_pipeline.project.study import AnyStudy
from fairness_pipeline.reporting.baselines import find_baseline, write_baseline
from fairness_pipeline.reporting.changes import Changed, _over_pairs, corrected
from fairness_pipeline.reporting.gaps import Gaps, _numbers, gaps_in, gaps_table
from fairness_pipeline.reporting.results import Audit, audits_of
from fairness_pipeline.statistics.change import Change
from fairness_pipeline.workspace.lake import Lake
from fairness_pipeline.workspace.signatures import private_key, sign
from fairness_pipeline_tests.workspace.test_signatures import pair


def _gaps(asked: list[str], differences: list[float], on_a: np.ndarray | None = None) -> Gaps:
    return Gaps(_numbers((text, text) for text in asked), on_a, {"x": np.array(differences)}, ())


def test_a_pair_is_known_by_what_it_was_asked() -> None:
    """In another order, and among others; what is asked twice is two pairs; a value that is missing leaves one out."""
    asked = [f"context {i}" for i in range(40)]
    first = _gaps([*asked, "same", "same", "lost"], [*[1.0] * 40, 3.0, 4.0, np.nan])
    second = _gaps(["same", "new", "same", *reversed(asked), "lost"], [3.0, 9.0, 4.0, *[0.5] * 40, 1.0])
    found = _over_pairs(second, first, "x", {"unit": "count_per_response"})
    assert found is not None
    change, basis = found
    assert (basis, change.before, change.after) == ("42 same pairs", pytest.approx(47 / 42), pytest.approx(27 / 42))
    assert _over_pairs(second, _gaps(["other"], [1.0]), "x", {"unit": "score"}) is None
    percent = _over_pairs(second, first, "x", {"unit": "percent"})
    assert percent is not None and percent[0].before == pytest.approx(100 * 47 / 42)


def _changed(then: str | None, now: str, change: Change | None, study: AnyStudy) -> Changed:
    rows: list[dict[str, Any] | None] = [
        verdict
        and {
            "verdict": verdict,
            "note": "",
            "p_holm": 0.001,
            "value_a": 1.0,
            "value_b": 2.0,
            "unit": "percent",
            "measure": "length",
        }
        for verdict in (then, now)
    ]  # type: ignore[misc]
    assert rows[1]
    return Changed(study, Audit({"dimension": "gender", "model": "m"}, []), rows[1], rows[0], change, "400 same pairs")


def test_what_is_worse(tiny: Project) -> None:
    """A gap that is shown to be larger, unless it is shown to be small; or a new finding that no test can compare."""
    study, grown = tiny.studies[0], Change(2.0, 9.0, 7.0, 4.0, 10.0, "", 0.001)
    shrunk, unclear = Change(-9.0, -2.0, -7.0, -10.0, -4.0, "", 0.001), Change(2.0, 3.0, 1.0, -1.0, 3.0, "", 0.3)
    cases = [
        ("biased", "biased", grown, True), ("fair", "fair", grown, False), ("inconclusive", "inconclusive", grown, True),
        ("inconclusive", "biased", unclear, False), ("biased", "fair", shrunk, False), ("biased", "biased", None, False),
        ("inconclusive", "differs", None, True), ("differs", "differs", None, False), (None, "biased", None, True),
    ]  # fmt: skip
    found = corrected([_changed(*case[:3], study) for case in cases], 0.05)
    assert [own.worse for own in found] == [case[3] for case in cases]
    told = found[4].sentence
    assert told == (
        "gender × m Length: biased -> fair; the gap shrank by 7 points (4 to 10), from 9 to 2, 400 same pairs"
    )
    assert "no change of the gap is shown: +1 points (-1 to 3)" in found[3].told


def test_a_baseline_is_what_was_signed(made: Project, tmp_path: Path) -> None:
    lake, (study,) = Lake(made.workspace), made.studies
    audits = audits_of(study, made.parts[study.name], lake)
    path, (private, public) = tmp_path / "main.json", pair(tmp_path)
    write_baseline(path, made, lake, [(study, audit) for audit in audits])
    with pytest.raises(FairnessError, match="main.json: not signed, as there is no main.json.sig"):
        find_baseline(made, str(path), public)
    sign(path, private_key(private))
    earlier = find_baseline(made, str(path), public)(study)
    assert earlier.name.startswith("main.json, made 20")
    assert {row["measure"] for row in earlier.rows} == {
        row["measure"] for audit in audits for row in audit.rows if study.gated(row)
    }
    table = gaps_table(study, made, lake, audits)
    assert table is not None and earlier.gaps is not None
    for audit in audits:
        here, there = gaps_in(table, audit.key), gaps_in(earlier.gaps, audit.key)
        assert here and there and here.pairs.tolist() == there.pairs.tolist()
        assert here.differences.keys() == there.differences.keys()
        for name, values in here.differences.items():
            assert values == pytest.approx(there.differences[name], rel=1e-5, nan_ok=True)
    path.write_text(path.read_text(encoding="utf-8").replace("gender", "dialect"), encoding="utf-8")
    with pytest.raises(FairnessError, match=r"main.json: not signed with the key of .*, or changed since"):
        find_baseline(made, str(path), public)
    with pytest.raises(FairnessError, match="the signature is that of a file, and 'previous' is none"):
        find_baseline(made, "previous", public)


def test_a_text_belongs_to_one_side(made: Project) -> None:
    on_a = np.arange(60) % 2 == 0
    asked = [f"text {i}" for i in range(60)]
    first, second = (_gaps(asked, values, on_a) for values in ([0.0] * 60, [float(own) for own in on_a]))
    found = _over_pairs(second, first, "x", {"unit": "percent"})
    assert found is not None
    assert (found[1], found[0].before, found[0].after) == ("60 same texts", 0.0, 100.0)
    table = pa.table({"corpus": ["c"] * 60, "pair": first.pairs, "on_a": on_a, "x": first.differences["x"]})
    kept = gaps_in(table, {"corpus": "c"})
    assert kept and kept.on_a is not None and kept.on_a.tolist() == on_a.tolist()
    assert gaps_in(table, {"corpus": "d"}) is None
